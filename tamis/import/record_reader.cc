#include "tamis/import/record_reader.h"

#include <set>

#include "tamis/import/json_record.h"

namespace tamis {

Result<RecordFormat> ParseRecordFormat(std::string_view name) {
  if (name == "csv") return RecordFormat::kCsv;
  if (name == "jsonl") return RecordFormat::kJsonl;
  if (name == "deb822") return RecordFormat::kDeb822;
  return InvalidArgument("there is no format \"" + std::string(name) +
                         "\"; the formats are csv, jsonl, deb822");
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
      case RecordFormat::kJsonl:
        return NextJsonl();
      case RecordFormat::kDeb822:
        break;
    }
    return NextDeb822();
  }();
  if (record.ok() && !record->has_value()) ended_ = true;
  return record;
}

// ---- CSV
// -----------------------------------------------------------------------------------------

// The fields of one record, which may take several lines; nullopt at the end.
Result<std::optional<std::vector<std::optional<std::string>>>> RecordReader::ReadCsvFields(
    uint64_t* line_number) {
  using Fields = std::vector<std::optional<std::string>>;
  std::optional<std::string> line;
  do {
    auto next = lines_.Next();
    *line_number = lines_.line();
    if (!next.ok()) return next.status();
    line = *std::move(next);
    if (!line) return std::optional<Fields>();
  } while (line->empty() || *line == "\r");  // an empty line is no record

  Fields fields;
  std::string field;
  bool in_quotes = false;
  bool was_quoted = false;
  const auto end_field = [&] {
    if (field.empty() && !was_quoted) {
      fields.emplace_back();
    } else {
      fields.emplace_back(std::move(field));
    }
    field.clear();
    was_quoted = false;
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
      } else if (c == ',') {
        end_field();
      } else if (c == '\r' && i + 1 == line->size()) {
        break;  // of the line's end; within quotes it is text
      } else if (c == '"' && field.empty() && !was_quoted) {
        in_quotes = was_quoted = true;
      } else if (was_quoted) {
        return InvalidArgument("there is text behind a closing quote");
      } else {
        field += c;
      }
    }
    if (!in_quotes) break;
    field += '\n';
    auto next = lines_.Next();
    if (!next.ok()) return next.status();
    line = *std::move(next);
    if (!line) return InvalidArgument("a quoted field does not end");
    if (total + line->size() > LineSource::kMaxRecordBytes) {
      return InvalidArgument("a quoted field is too long, or does not end");
    }
  }
  end_field();
  return std::optional<Fields>(std::move(fields));
}

Status RecordReader::ReadHeader() {
  header_read_ = true;
  uint64_t line = 0;
  auto fields = ReadCsvFields(&line);
  if (!fields.ok()) return AtLine(line, fields.status());
  if (!fields->has_value()) return Status::Ok();
  std::set<std::string> seen;
  for (const auto& field : **fields) {
    std::string_view name = field ? std::string_view(*field) : std::string_view();
    if (header_.empty() && name.starts_with("\xef\xbb\xbf")) name.remove_prefix(3);
    header_.push_back(LowerSnake(name));
    if (header_.back().empty() || !seen.insert(header_.back()).second) {
      return InvalidArgument("line " + std::to_string(line) + ": column " +
                             std::to_string(header_.size()) +
                             " of the header has no name, or one that is there already");
    }
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
  auto fields = ReadCsvFields(&record.line);
  if (!fields.ok()) return AtLine(record.line, fields.status());
  if (!fields->has_value()) return std::optional<Record>();
  if ((*fields)->size() != header_.size()) {
    return AtLine(record.line,
                  InvalidArgument("it has " + std::to_string((*fields)->size()) +
                                  " fields, the header has " + std::to_string(header_.size())));
  }
  for (size_t i = 0; i < header_.size(); ++i) {
    record.fields.push_back({header_[i], std::move((**fields)[i])});
  }
  return std::optional<Record>(std::move(record));
}

// ---- JSON Lines
// ----------------------------------------------------------------------------------

Result<std::optional<Record>> RecordReader::NextJsonl() {
  while (true) {
    auto line = lines_.Next();
    if (!line.ok()) return AtLine(lines_.line(), line.status());
    if (!line->has_value()) return std::optional<Record>();
    if ((*line)->find_first_not_of(" \t\r") == std::string::npos) continue;
    auto record = ParseJsonRecord(**line);
    if (!record.ok()) return AtLine(lines_.line(), record.status());
    record->line = lines_.line();
    return std::optional<Record>(*std::move(record));
  }
}

// ---- deb822
// --------------------------------------------------------------------------------------

Result<std::optional<Record>> RecordReader::NextDeb822() {
  Record record;
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
    if (line.ends_with('\r')) line.pop_back();
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
    record.fields.push_back({LowerSnake(line.substr(0, colon)), std::move(value)});
  }
  if (!bad.ok()) return bad;
  if (!any) return std::optional<Record>();
  return std::optional<Record>(std::move(record));
}

}  // namespace tamis
