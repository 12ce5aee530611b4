#include "tamis/import/record_reader.h"

#include <strings.h>

#include <map>
#include <utility>

#include "tamis/import/json_record.h"

namespace tamis {

Result<RecordFormat> ParseRecordFormat(std::string_view name) {
  if (name == "csv") return RecordFormat::kCsv;
  if (name == "json" || name == "jsonl") return RecordFormat::kJson;
  if (name == "deb822") return RecordFormat::kDeb822;
  return InvalidArgument("there is no format \"" + std::string(name) +
                         "\"; the formats are csv, json, jsonl, deb822");
}

Status RecordReader::AtLine(uint64_t line, const Status& status) const {
  return status.WithContext("line " + std::to_string(line));
}

Result<std::optional<Record>> RecordReader::Next() {
  if (ended_) return std::optional<Record>();
  auto record = [&] {
    switch (format_) {
      case RecordFormat::kCsv:
        return NextCsv();
      case RecordFormat::kJson:
        return NextJson();
      case RecordFormat::kDeb822:
        break;
    }
    return NextDeb822();
  }();
  if (record.ok() && !record->has_value()) ended_ = true;
  return record;
}

// ---- CSV

Result<char> ParseDelimiter(std::string_view text) {
  if (text == "tab" || text == "\\t") return '\t';
  if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r") {
    return InvalidArgument("\"" + std::string(text) +
                           "\" is no delimiter: it is one character of ASCII, or tab");
  }
  return text[0];
}

RecordReader::RecordReader(RecordFormat format, std::istream* in, CsvOptions csv)
    : format_(format), csv_(std::move(csv)), lines_(in) {
  delimiter_ = csv_.delimiter.value_or(',');
}

// The fields of one record, which may take several lines; nullopt at the end.
Result<std::optional<RecordReader::CsvFields>> RecordReader::ReadCsvFields(uint64_t* line_number) {
  std::optional<std::string> line;
  do {
    auto next = lines_.Next();
    *line_number = lines_.line();
    if (!next.ok()) return next.status();
    line = *std::move(next);
    if (!line) return std::optional<CsvFields>();
  } while (line->empty());  // an empty line is no record

  CsvFields fields;
  std::string field;
  bool in_quotes = false;
  bool was_quoted = false;
  uint64_t quote_line = 0;
  const auto end_field = [&] {
    if (field.empty() && !was_quoted) {
      fields.emplace_back();
    } else {
      fields.emplace_back(std::move(field));
    }
    field.clear();
    was_quoted = false;
  };
  const auto does_not_end = [&] {
    ended_ = true;
    return InvalidArgument("a quoted field does not end: it begins in line " +
                           std::to_string(quote_line) + ", and nothing of lines " +
                           std::to_string(*line_number) + " to " + std::to_string(lines_.line()) +
                           " can be read");
  };
  for (size_t total = line->size();; total += line->size()) {
    for (size_t i = 0; i < line->size(); ++i) {
      const char c = (*line)[i];
      if (in_quotes) {
        if (c != '"') {
          field += c;
        } else if (i + 1 < line->size() && (*line)[i + 1] == '"') {
          field += '"';
          ++i;
        } else {
          in_quotes = false;
        }
      } else if (c == delimiter_) {
        end_field();
      } else if (c == '"' && field.empty() && !was_quoted) {
        in_quotes = was_quoted = true;
        quote_line = lines_.line();
      } else if (was_quoted) {
        std::string why = "there is text behind a closing quote";
        if (lines_.line() > *line_number) {
          why += "; with it lines " + std::to_string(*line_number) + " to " +
                 std::to_string(lines_.line()) + " are one bad record";
        }
        return InvalidArgument(why);
      } else {
        field += c;
      }
    }
    if (!in_quotes) break;
    field += lines_.ending();
    auto next = lines_.Next();
    if (!next.ok()) return next.status();
    line = *std::move(next);
    if (!line || total + line->size() > LineSource::kMaxRecordBytes) return does_not_end();
  }
  end_field();
  return std::optional<CsvFields>(std::move(fields));
}

Status RecordReader::ReadHeader() {
  header_read_ = true;
  uint64_t line = 0;
  auto fields = ReadCsvFields(&line);
  if (fields.ok() && fields->has_value()) {
    // Excel's line; with the delimiter a comma it is two fields.
    const std::string first = (**fields)[0].value_or("");
    const bool named = strncasecmp(first.c_str(), "sep=", 4) == 0;
    const bool comma = (*fields)->size() == 2 && named && first.size() == 4 && !(**fields)[1];
    if (comma || ((*fields)->size() == 1 && named && first.size() == 5)) {
      if (!comma && !csv_.delimiter) {
        auto delimiter = ParseDelimiter(first.substr(4));
        if (!delimiter.ok()) return AtLine(line, delimiter.status());
        delimiter_ = *delimiter;
      }
      csv_.delimiter = delimiter_;
      fields = ReadCsvFields(&line);
    }
  }
  if (!fields.ok()) return AtLine(line, fields.status());
  if (!fields->has_value()) return Status::Ok();
  for (const auto& name : **fields) {
    if (!csv_.has_header) break;
    if (Status status = CheckFieldName(name.value_or("")); !status.ok())
      return AtLine(line, status);
  }
  if (Status status = LookForOtherFormat(**fields); !status.ok()) return AtLine(line, status);
  if (Status status = NameColumns(**fields); !status.ok()) return AtLine(line, status);
  if (!csv_.has_header) first_ = *std::move(*fields);
  return Status::Ok();
}

// Whether the first line looks as if the file were of another kind.
Status RecordReader::LookForOtherFormat(const CsvFields& first) const {
  if (csv_.delimiter) return Status::Ok();
  const std::string text = first[0].value_or("");
  if (text.starts_with("{") || text.starts_with("[{")) {
    return InvalidArgument("it looks like JSON: give --format json");
  }
  if (first.size() > 1) return Status::Ok();
  constexpr std::pair<char, const char*> kOthers[] = {{';', "';'"}, {'\t', "tab"}, {'|', "'|'"}};
  for (const auto& [character, name] : kOthers) {
    if (text.find(character) == std::string::npos) continue;
    return InvalidArgument("its only field is \"" + text + "\"; if " + name +
                           " separates the fields, give --delimiter " + name +
                           ", and --delimiter , if it does not");
  }
  return Status::Ok();
}

// `first` is the header, or the first record where there is none.
Status RecordReader::NameColumns(const CsvFields& first) {
  if (!csv_.columns.empty() && csv_.columns.size() != first.size()) {
    return InvalidArgument("it has " + std::to_string(first.size()) + " fields, and --columns " +
                           std::to_string(csv_.columns.size()) + " names");
  }
  std::map<std::string, size_t> positions;
  const auto name_of = [&](size_t i) {
    if (!csv_.columns.empty()) return csv_.columns[i];
    return csv_.has_header ? first[i].value_or("") : "";
  };
  for (size_t i = 0; i < first.size(); ++i) {
    const std::string name = name_of(i);
    const std::string number = std::to_string(i + 1);
    std::string column = name.empty() ? "column_" + number : LowerSnake(name);
    if (column.empty()) {
      return InvalidArgument("column " + number + ", \"" + name +
                             "\", has no letter or digit of ASCII in its name; name all columns "
                             "with --columns");
    }
    const auto [before, is_new] = positions.emplace(column, i);
    if (!is_new) {
      return InvalidArgument("column " + number + ", \"" + name + "\", and column " +
                             std::to_string(before->second + 1) + ", \"" + name_of(before->second) +
                             "\", would both be \"" + column +
                             "\"; name all columns with --columns");
    }
    header_.push_back(std::move(column));
  }
  return Status::Ok();
}

Result<std::optional<Record>> RecordReader::NextCsv() {
  if (!header_read_) {
    if (Status status = ReadHeader(); !status.ok()) {
      ended_ = true;
      return status;
    }
  }
  Record record;
  std::optional<CsvFields> fields;
  if (first_) {
    record.line = lines_.line();
    fields = std::exchange(first_, std::nullopt);
  } else {
    auto read = ReadCsvFields(&record.line);
    if (!read.ok()) return AtLine(record.line, read.status());
    fields = *std::move(read);
  }
  if (!fields) return std::optional<Record>();
  if (fields->size() != header_.size()) {
    return AtLine(record.line,
                  InvalidArgument("it has " + std::to_string(fields->size()) + " fields, " +
                                  (csv_.has_header ? "the header has " : "the first record has ") +
                                  std::to_string(header_.size())));
  }
  for (size_t i = 0; i < header_.size(); ++i) {
    record.fields.push_back({header_[i], std::move((*fields)[i])});
  }
  return std::optional<Record>(std::move(record));
}

// ---- JSON

Result<std::optional<Record>> RecordReader::NextJson() {
  while (!array_) {
    auto line = lines_.Next();
    if (!line.ok()) return AtLine(lines_.line(), line.status());
    if (!line->has_value()) return std::optional<Record>();
    if ((*line)->find_first_not_of(" \t") == std::string::npos) continue;
    if (!any_line_ && JsonArray::BeginsIn(**line)) {
      array_.emplace(*std::move(*line), &lines_);
      break;
    }
    any_line_ = true;
    auto record = ParseJsonRecord(**line);
    if (!record.ok()) return AtLine(lines_.line(), record.status());
    record->line = lines_.line();
    return std::optional<Record>(*std::move(record));
  }
  return NextOfArray();
}

Result<std::optional<Record>> RecordReader::NextOfArray() {
  auto element = array_->Next();
  if (!element.ok()) {
    ended_ = true;
    return AtLine(lines_.line(), element.status());
  }
  if (!element->has_value()) return std::optional<Record>();
  auto record = ParseJsonRecord(**element);
  if (!record.ok()) return AtLine(array_->line(), record.status());
  record->line = array_->line();
  return std::optional<Record>(*std::move(record));
}

// ---- deb822

Result<std::optional<Record>> RecordReader::NextDeb822() {
  Record record;
  FieldNames names;
  Status bad;  // the record is read to its end all the same
  size_t size = 0;
  const auto refuse = [&](const std::string& why) {
    if (bad.ok()) bad = AtLine(lines_.line(), InvalidArgument(why));
  };
  bool any = false;
  while (true) {
    auto next = lines_.Next();
    if (!next.ok()) {
      any = true;
      refuse(next.status().message());
      continue;
    }
    if (!next->has_value()) break;
    std::string& line = **next;
    if (line.find_first_not_of(" \t") == std::string::npos) {
      if (any) break;
      continue;
    }
    if (line[0] == '#') continue;
    if (!any) record.line = lines_.line();
    any = true;
    size += line.size();
    if (size > LineSource::kMaxRecordBytes) {
      refuse("the record is too long");
      record.fields.clear();
      size = 0;
    }
    if (!bad.ok()) continue;
    if (line[0] == ' ' || line[0] == '\t') {
      if (record.fields.empty()) {
        refuse("a continuation line continues nothing");
        continue;
      }
      std::string_view more = std::string_view(line).substr(1);
      if (more == ".") more = "";  // how deb822 writes an empty line
      std::string& text = *record.fields.back().text;
      if (!text.empty()) text += '\n';
      text += more;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0) {
      refuse("it is not \"Name: value\"");
      continue;
    }
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    const size_t end = line.find_last_not_of(" \t");
    std::string value = begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
    auto name = names.Add(std::string_view(line).substr(0, colon));
    if (!name.ok()) {
      refuse(name.status().message());
      continue;
    }
    record.fields.push_back({*std::move(name), std::move(value)});
  }
  if (!bad.ok()) return bad;
  if (!any) return std::optional<Record>();
  return std::optional<Record>(std::move(record));
}

}  // namespace tamis
