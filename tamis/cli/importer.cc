#include "tamis/cli/importer.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <cmath>
#include <cstdio>

#include "tamis/base/hash.h"
#include "tamis/base/utf8.h"
#include "tamis/table/definition.h"
#include "tamis/table/key_format.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

namespace asio = boost::asio;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::string JoinNames(const std::vector<std::string>& names, const char* separator) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : separator) + name;
  return out;
}

size_t SizeBytes(const Record& record) {
  size_t size = sizeof(Record);
  for (const Field& field : record.fields) {
    size += sizeof(Field) + field.name.size() + (field.text ? field.text->size() : 0);
  }
  return size;
}

Status Interrupted() { return Cancelled("interrupted; run the same command again to go on"); }

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

// Where the options of --index begin, with the space before them. Names of fields may have spaces.
size_t OptionsOfIndex(std::string_view text) {
  size_t options = text.size();
  for (const std::string_view option :
       {" include ", " include(", " where ", " ranges", " fpr ", " expected_values ", " seed "}) {
    options = std::min(options, text.find(option));
  }
  return options;
}

}  // namespace

Importer::Importer(Session* session, ImportOptions options)
    : session_(session), engine_(session->engine.get()), options_(std::move(options)) {}

// Columns are named as the fields of the records are: "Installed-Size" is installed_size.
Status Importer::ReadOptions() {
  for (const std::string& text : options_.definition.key) {
    KeyOption key = ParseKeyOption(text);
    key.name = LowerSnake(key.name);
    key_.push_back(std::move(key));
  }
  for (const std::string& text : options_.definition.columns) {
    TAMIS_ASSIGN_OR_RETURN(ColumnOption column, ParseColumnOption(text));
    column.name = LowerSnake(column.name);
    columns_.push_back(std::move(column));
  }
  for (const std::string& text : options_.definition.indexes) {
    const size_t options = OptionsOfIndex(text);
    std::vector<std::string> names = Split(text.substr(0, options), ',');
    for (std::string& name : names) name = LowerSnake(name);
    indexes_.push_back(JoinNames(names, ",") + text.substr(options));
  }
  return Status::Ok();
}

Status Importer::Run(TextInput* in) {
  started_ = shown_ = engine_->executor().Now();
  input_ = in;
  std::istream stream(in);
  RecordReader reader(options_.format, &stream, options_.csv);
  TAMIS_RETURN_IF_ERROR(ReadOptions());
  TAMIS_RETURN_IF_ERROR(ReadFirst(&reader));
  TAMIS_RETURN_IF_ERROR(CheckFirst(reader));
  TAMIS_RETURN_IF_ERROR(PrepareTable(reader));
  Status status;
  while (status.ok()) {
    if (options_.cancelled != nullptr && *options_.cancelled) {
      status = Interrupted();
      break;
    }
    auto record = NextRecord(&reader);
    // A record that Ctrl-C cut off is not used.
    if (options_.cancelled != nullptr && *options_.cancelled) continue;
    // Nor is what the input's damage cut off.
    if (status = in->status(); !status.ok()) break;
    if (!record.ok()) {
      status = Bad(0, record.status(), !reader.ended());
      continue;
    }
    if (!record->has_value()) break;
    status = Add(**record);
    ShowProgress(false);
  }
  if (!status.ok() && made_table_ && written_ == 0 && !writing_.valid()) batch_ = {};
  const Status finished = Finish();
  ShowProgress(true);
  if (status.ok()) status = finished;
  if (status.ok()) status = in->status();
  if (status.ok() && rows_ == 0 && bad_ > 0) status = AllBad();
  if (status.ok() && written_ > 0) unfitted_ = FitCells();
  return LeaveTable(status);
}

Status Importer::AllBad() const {
  return InvalidArgument("nothing was imported: all " + std::to_string(bad_) +
                         " records of the input are bad");
}

Status Importer::LeaveTable(const Status& failure) {
  if (failure.ok() || !made_table_ || failure.code() == StatusCode::kCancelled) return failure;
  const std::string& table = schema_->name;
  const auto with = [&](const std::string& more) {
    return Status(failure.code(), failure.message() + more);
  };
  if (written_ > 0) {
    return with("; table \"" + table + "\" is new and has the rows before that: tamis table drop " +
                table + " drops it");
  }
  const Status dropped = session_->DoAtLength(
      [&](ClusterAdmin& admin, auto done) { admin.DropTable(table, {}, std::move(done)); });
  if (dropped.ok()) return failure;
  return with("; table \"" + table + "\" is new, empty and could not be dropped (" +
              dropped.message() + "): tamis table drop " + table);
}

// The records from which the columns of a new table are taken.
Status Importer::ReadFirst(RecordReader* reader) {
  size_t size = 0;
  while (first_.size() < kRecordsForColumns && size < kBatchBytes) {
    auto record = reader->Next();
    if (options_.cancelled != nullptr && *options_.cancelled) {
      return Cancelled("interrupted before anything was written");
    }
    if (!input_->status().ok()) break;  // see CheckFirst
    if (!record.ok()) {
      TAMIS_RETURN_IF_ERROR(Bad(0, record.status(), !reader->ended()));
      continue;
    }
    if (!record->has_value()) {
      all_read_ = true;
      break;
    }
    size += SizeBytes(**record);
    first_.push_back(**std::move(record));
  }
  return Status::Ok();
}

// Before anything is made or written.
Status Importer::CheckFirst(const RecordReader& reader) const {
  TAMIS_RETURN_IF_ERROR(input_->status());
  if (!first_.empty() || !reader.header().empty()) return Status::Ok();
  if (bad_ == 0) return InvalidArgument("the input is empty");
  return AllBad();
}

Result<std::optional<Record>> Importer::NextRecord(RecordReader* reader) {
  if (first_.empty()) return reader->Next();
  std::optional<Record> record = std::move(first_.front());
  first_.pop_front();
  return record;
}

// ---- The table

// A declared column of no field is most likely mistyped.
Status Importer::CheckFieldsExist(const std::vector<std::string>& fields) const {
  for (const ColumnOption& column : columns_) {
    if (!column.expression.empty()) continue;  // computed of another one
    if (std::ranges::find(fields, column.name) != fields.end()) continue;
    return InvalidArgument("cannot make table \"" + options_.table + "\": --column names \"" +
                           column.name + "\", and the fields of the file are " +
                           JoinNames(fields, ", ") +
                           "; correct it, or add the column afterwards with: tamis table "
                           "add-column " +
                           options_.table + " " + column.name);
  }
  return Status::Ok();
}

Result<TableSchema> Importer::WantedTable(const RecordReader& reader) const {
  std::vector<std::string> names = reader.header();
  std::set<std::string> seen(names.begin(), names.end());
  for (const Record& record : first_) {
    for (const Field& field : record.fields) {
      if (field.name.empty()) {
        return InvalidArgument("line " + std::to_string(record.line) +
                               ": the name of a field has no letter or digit of ASCII, so that no "
                               "column can be named so");
      }
      if (seen.insert(field.name).second) names.push_back(field.name);
    }
  }
  if (!reader.header().empty() || (all_read_ && !first_.empty())) {
    TAMIS_RETURN_IF_ERROR(CheckFieldsExist(names));
  }
  std::map<std::string, ColumnOption> declared;
  for (const ColumnOption& column : columns_) {
    declared[column.name] = column;
    if (seen.insert(column.name).second) names.push_back(column.name);
  }
  std::vector<std::string> definition;
  for (const std::string& name : names) {
    const auto column = declared.find(name);
    definition.push_back(
        DefinitionOf(column == declared.end() ? ColumnOption{.name = name} : column->second));
  }
  if (key_.empty()) {
    return InvalidArgument("table \"" + options_.table +
                           "\" is not there yet: name its key with --key COLUMN[,COLUMN]; the "
                           "columns are " +
                           JoinNames(names, ", "));
  }
  for (const KeyOption& part : key_) {
    if (seen.contains(part.name)) continue;
    return InvalidArgument("the input has no column \"" + part.name + "\" for the key; it has " +
                           JoinNames(names, ", "));
  }
  definition.push_back(DefinitionOf(key_));
  for (const std::string& index : indexes_) {
    definition.push_back(IndexDefinition(index, options_.definition.nulls));
  }
  if (!options_.definition.marker.empty()) {
    definition.push_back(MarkerDefinition(options_.definition.marker));
  }
  return ParseDefinition(options_.table, definition);
}

// Only what was declared must agree: another file may have fewer columns.
Status Importer::CheckAgrees(const TableSchema& existing) const {
  const auto differs = [&](const std::string& what) {
    return AlreadyExists("table \"" + existing.name + "\" exists with another definition: " + what +
                         "; see it with: tamis table describe " + existing.name +
                         "; drop it and its rows with: tamis table drop " + existing.name);
  };
  const auto names_of = [&](const std::vector<uint32_t>& positions) {
    std::vector<std::string> names;
    for (const uint32_t position : positions) names.push_back(existing.columns[position].name);
    return names;
  };
  std::vector<std::string> key;
  for (const KeyOption& part : key_) key.push_back(part.name);
  if (!key.empty() && names_of(existing.key) != key) {
    return differs("its key is (" + JoinNames(names_of(existing.key), ", ") + ")");
  }
  for (size_t i = 0; i < key_.size(); ++i) {
    const Type type = existing.columns[existing.key[i]].type;
    const KeyPart part = existing.key_parts.empty() ? KeyPart() : existing.key_parts[i];
    if (key_[i].form.empty()) continue;
    TAMIS_ASSIGN_OR_RETURN(const KeyPart wanted, ParseKeyPart(type, key_[i].form));
    if (part != wanted) {
      return differs("key column \"" + key_[i].name + "\" is " + KeyPartText(type, part));
    }
  }
  for (const ColumnOption& column : columns_) {
    const auto position = existing.FindColumn(column.name);
    if (!position) return differs("it has no column \"" + column.name + "\"");
    const Column& there = existing.columns[*position];
    if (!column.type.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const Type type, ParseType(column.type));
      if (there.type != type) {
        return differs("column \"" + column.name + "\" is of type " +
                       std::string(TypeName(there.type)));
      }
    }
    if (!column.expression.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const Column wanted,
                             ParseColumnDefinition(existing, DefinitionOf(column)));
      if (there.expression != wanted.expression) {
        return differs("column \"" + column.name + "\" is not computed as " + column.expression);
      }
    }
    if (column.cell.empty()) continue;
    Column wanted{.name = column.name, .type = there.type};
    TAMIS_RETURN_IF_ERROR(ParseCell(column.cell, &wanted));
    if (there.cell != wanted.cell || there.encoding != wanted.encoding) {
      return differs("column \"" + column.name + "\" has another cell");
    }
  }
  for (const std::string& index : indexes_) {
    const std::vector<std::string> wanted = Split(index, ',');
    const bool there =
        std::any_of(existing.indexes.begin(), existing.indexes.end(),
                    [&](const IndexSpec& spec) { return names_of(spec.columns) == wanted; });
    if (!there) {
      return differs("it has no index on (" + index + "); tamis index create makes one");
    }
  }
  return Status::Ok();
}

Status Importer::PrepareTable(const RecordReader& reader) {
  auto existing = engine_->Table(options_.table);
  if (!existing.ok() && existing.status().code() != StatusCode::kNotFound) return existing.status();
  if (existing.ok()) {
    TAMIS_RETURN_IF_ERROR(CheckAgrees(**existing));
  } else {
    TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted, WantedTable(reader));
    TAMIS_RETURN_IF_ERROR(session_
                              ->Change<TableSchema>([&](ClusterAdmin& admin, auto done) {
                                admin.CreateTable(wanted, std::move(done));
                              })
                              .status());
    made_table_ = true;
    engine_->ForgetTable(options_.table);
    existing = engine_->Table(options_.table);
    if (!existing.ok()) return existing.status();
  }
  schema_ = *std::move(existing);
  given_.resize(schema_->columns.size());
  for (uint32_t i = 0; i < schema_->columns.size(); ++i) {
    if (!schema_->columns[i].is_computed()) positions_[schema_->columns[i].name] = i;
  }
  return Status::Ok();
}

// ---- Rows

Result<Row> Importer::ToRow(const Record& record) {
  Row row(schema_->columns.size());
  for (const Field& field : record.fields) {
    const auto position = positions_.find(field.name);
    if (position == positions_.end()) {
      ++undeclared_[field.name];
      continue;
    }
    given_[position->second] = true;
    if (!field.text) continue;
    const Column& column = schema_->columns[position->second];
    // Nothing is written where a number has no value.
    if (field.text->empty() && column.type != Type::kText) continue;
    auto value = Value::Parse(column.type, *field.text);
    if (!value.ok()) return value.status().WithContext("field \"" + field.name + "\"");
    if (column.type == Type::kText) NoteText(record, field);
    row[position->second] = *std::move(value);
  }
  for (uint32_t i = 0; i < row.size(); ++i) {
    if (row[i].is_null() && !schema_->columns[i].nullable) {
      return InvalidArgument("field \"" + schema_->columns[i].name +
                             "\" is missing; every row needs it");
    }
  }
  return row;
}

// Text of another encoding is stored as it is, so that an exported table comes back.
void Importer::NoteText(const Record& record, const Field& field) {
  const size_t at = FindInvalidUtf8(*field.text);
  if (at == std::string_view::npos || ++not_utf8_ > 1) return;
  not_utf8_at_ = fmt::format("line {}, field \"{}\", byte {}", record.line, field.name, at + 1);
}

// `go_on` = the record can be left out.
Status Importer::Bad(uint64_t line, const Status& status, bool go_on) {
  const Status bad = line == 0 ? status : status.WithContext("line " + std::to_string(line));
  const uint64_t number = ++bad_;
  if (!go_on) return bad;
  if (!options_.skip_bad) {
    return InvalidArgument(bad.message() + " (--on-error skip leaves bad records out)");
  }
  if (number <= kReportedErrors) std::fprintf(stderr, "skipped: %s\n", bad.message().c_str());
  if (number == kReportedErrors) std::fputs("further bad records are only counted\n", stderr);
  return Status::Ok();
}

Status Importer::Add(const Record& record) {
  auto row = ToRow(record);
  if (!row.ok()) return Bad(record.line, row.status());
  auto encoded = KeyFormat(*schema_).Encode(*row);
  if (!encoded.ok()) return Bad(record.line, encoded.status());
  std::string key = *std::move(encoded);
  // The later of two records with one key must win.
  if (batch_.keys.contains(key) || batch_.writes.size() >= kBatch ||
      batch_.size_bytes >= kBatchBytes) {
    TAMIS_RETURN_IF_ERROR(Flush());
  }
  NoteKey(key);
  batch_.size_bytes += SizeBytes(record);
  batch_.keys.insert(std::move(key));
  batch_.lines.push_back(record.line);
  batch_.writes.push_back({.kind = Write::Kind::kPut, .row = *std::move(row)});
  ++rows_;
  return Status::Ok();
}

// Counts records that replace one of the same input.
void Importer::NoteKey(const std::string& key) {
  const uint64_t hash = Hash(key, 0);
  if (keys_.contains(hash)) {
    ++replaced_;
  } else if (keys_.size() < kCountedKeys) {
    keys_.insert(hash);
  }
}

Status Importer::Flush() {
  if (writing_.valid()) TAMIS_RETURN_IF_ERROR(writing_.get());
  if (batch_.writes.empty()) return Status::Ok();
  auto write = [this, batch = std::move(batch_)]() mutable { return Deliver(std::move(batch)); };
  writing_ = asio::post(writer_, asio::use_future(std::move(write)));
  batch_ = {};
  return Status::Ok();
}

Status Importer::Deliver(Batch batch) {
  const std::vector<Status> results =
      engine_->Apply(schema_, std::move(batch.writes), options_.cancelled);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].ok()) {
      ++written_;
      continue;
    }
    if (options_.cancelled != nullptr && *options_.cancelled) return Interrupted();
    const Status status = results[i].WithContext("line " + std::to_string(batch.lines[i]));
    // A request that is wrong fails again.
    const bool again = status.code() != StatusCode::kInvalidArgument;
    return again ? Status(status.code(), status.message() + "; run the same command again to go on")
                 : status;
  }
  return Status::Ok();
}

Status Importer::Finish() {
  Status status = Flush();
  if (writing_.valid()) {
    const Status last = writing_.get();
    if (status.ok()) status = last;
  }
  return status;
}

Status Importer::FitCells() {
  for (const IndexSpec& index : schema_->indexes) {
    if (index.cell_map == nullptr || IsFitted(*index.cell_map)) continue;
    Status status = session_->AwaitIndex(schema_->name, index.name).status();
    if (status.ok()) {
      status = session_
                   ->Run({.kind = JobSpec::Kind::kFitCells,
                          .table = schema_->name,
                          .index = index.name,
                          .cells_per_value = CellsPerValueFor(index.cell_map.get())})
                   .status();
    }
    TAMIS_RETURN_IF_ERROR(status.WithContext("ranges of index \"" + index.name +
                                             "\" ask all regions until its cells are fitted (tamis "
                                             "index ranges " +
                                             schema_->name + " " + index.name + ")"));
  }
  return Status::Ok();
}

// ---- What the user sees

void Importer::ShowProgress(bool last) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  const Time now = engine_->executor().Now();
  const Duration pause = terminal ? std::chrono::milliseconds(200) : std::chrono::seconds(10);
  if (!last && now - shown_ < pause) return;
  if (last && !terminal) return;
  shown_ = now;
  const double seconds = std::max(1e-3, Seconds(now - started_));
  std::string line = std::to_string(rows_) + " rows, " +
                     std::to_string(static_cast<uint64_t>(static_cast<double>(rows_) / seconds)) +
                     " rows/s";
  if (options_.input_bytes > 0 && input_->source_bytes() > 0) {
    const double part =
        static_cast<double>(input_->source_bytes()) / static_cast<double>(options_.input_bytes);
    line += ", " + std::to_string(static_cast<int>(100 * part)) + " %, " +
            std::to_string(static_cast<int>(std::lround(seconds / part - seconds))) + " s left";
  }
  if (last) {
    std::fputs("\r\033[K", stderr);
  } else if (terminal) {
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
  } else {
    std::fprintf(stderr, "%s\n", line.c_str());
  }
  std::fflush(stderr);
}

std::string Importer::Summary() const {
  if (schema_ == nullptr) return "";
  const double seconds = std::max(1e-3, Seconds(engine_->executor().Now() - started_));
  const uint64_t written = written_;
  std::string out = fmt::format("{}: {} rows put in {:.1f} s ({:.0f} rows/s), {} bad records\n",
                                schema_->name, written - std::min(written, replaced_), seconds,
                                static_cast<double>(written) / seconds, bad_.load());
  if (replaced_ > 0) {
    out += fmt::format("{}{} of these records replaced one before it with the same key\n",
                       keys_.size() < kCountedKeys ? "" : "at least ", replaced_);
  }
  if (!undeclared_.empty()) {
    out += "fields left out, since the table has no such columns:";
    for (const auto& [name, count] : undeclared_) {
      out += " " + name + " (" + std::to_string(count) + ")";
    }
    out += "\n";
  }
  if (!unfitted_.ok()) out += unfitted_.message() + "\n";
  std::vector<std::string> missing;
  for (size_t i = 0; i < given_.size() && rows_ > 0; ++i) {
    const bool computed = schema_->columns[i].is_computed();
    if (!given_[i] && !computed) missing.push_back(schema_->columns[i].name);
  }
  if (!missing.empty()) {
    out += "columns that the file does not have, NULL in the rows put: " + JoinNames(missing, " ") +
           "\n";
  }
  if (not_utf8_ > 0) {
    out += fmt::format(
        "texts that are not UTF-8, stored as they are: {} (the first: {}); iconv -t UTF-8 converts "
        "a file\n",
        not_utf8_, not_utf8_at_);
  }
  return out;
}

}  // namespace tamis
