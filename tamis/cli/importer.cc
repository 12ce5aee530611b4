#include "tamis/cli/importer.h"

#include <fmt/core.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tamis/base/terminal_text.h"
#include "tamis/cli/index_waiting.h"
#include "tamis/table/key_format.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

size_t SizeBytes(const Record& record) {
  size_t size = sizeof(Record);
  for (const Field& field : record.fields) {
    size += sizeof(Field) + field.name.size() + (field.text ? field.text->size() : 0);
  }
  return size;
}

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

Importer::Importer(Session* session, ImportOptions options)
    : session_(session), engine_(session->engine.get()), options_(std::move(options)) {}

Status Importer::Run(TextInput* in) {
  started_ = shown_ = engine_->executor().Now();
  input_ = in;
  std::istream stream(in);
  RecordReader reader(options_.format, &stream, options_.csv);
  TAMIS_ASSIGN_OR_RETURN(const DeclaredTable declared,
                         DeclaredTable::Parse(options_.table, options_.definition));
  TAMIS_RETURN_IF_ERROR(ReadFirst(&reader));
  TAMIS_RETURN_IF_ERROR(CheckFirst(reader));
  TAMIS_RETURN_IF_ERROR(PrepareTable(declared, reader));
  Status status;
  while (status.ok()) {
    if (options_.cancelled != nullptr && *options_.cancelled) {
      status = BatchWriter::Interrupted();
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
  if (!status.ok() && made_table_) writer_->DropUnlessWriting();
  const Status finished = writer_->Finish();
  ShowProgress(true);
  if (status.ok()) status = finished;
  if (status.ok()) status = in->status();
  if (status.ok() && writer_->added() == 0 && bad_ > 0) status = AllBad();
  if (status.ok() && writer_->written() > 0) unfitted_ = FitCells();
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
  if (writer_->written() > 0) {
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
  while (first_.size() < kRecordsForColumns && size < BatchWriter::kBatchBytes) {
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

Status Importer::PrepareTable(const DeclaredTable& declared, const RecordReader& reader) {
  auto existing = engine_->Table(options_.table);
  if (!existing.ok() && existing.status().code() != StatusCode::kNotFound) return existing.status();
  if (existing.ok()) {
    TAMIS_RETURN_IF_ERROR(declared.CheckAgrees(**existing));
  } else {
    TAMIS_ASSIGN_OR_RETURN(const TableSchema wanted,
                           declared.SchemaFor(reader.header(), first_, all_read_));
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
  records_.emplace(schema_);
  writer_.emplace(engine_, schema_, options_.cancelled);
  return Status::Ok();
}

// ---- Rows

// `go_on` = the record can be left out.
Status Importer::Bad(uint64_t line, const Status& status, bool go_on) {
  const Status bad = line == 0 ? status : status.WithContext("line " + std::to_string(line));
  const uint64_t number = ++bad_;
  if (!go_on) return bad;
  if (!options_.skip_bad) {
    return InvalidArgument(bad.message() + " (--on-error skip leaves bad records out)");
  }
  if (number <= kReportedErrors)
    std::fprintf(stderr, "skipped: %s\n", TerminalText(bad.message()).c_str());
  if (number == kReportedErrors) std::fputs("further bad records are only counted\n", stderr);
  return Status::Ok();
}

Status Importer::FitCells() {
  for (const IndexSpec& index : schema_->indexes) {
    if (index.cell_map == nullptr || IsFitted(*index.cell_map)) continue;
    Status status = WaitForIndex(session_, schema_->name, index.name).status();
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

Status Importer::Add(const Record& record) {
  auto row = records_->ToRow(record);
  if (!row.ok()) return Bad(record.line, row.status());
  auto key = KeyFormat(*schema_).Encode(*row);
  if (!key.ok()) return Bad(record.line, key.status());
  return writer_->Add(*std::move(key), *std::move(row), record.line, SizeBytes(record));
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
  const uint64_t rows = writer_->added();
  std::string line = std::to_string(rows) + " rows, " +
                     std::to_string(static_cast<uint64_t>(static_cast<double>(rows) / seconds)) +
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
  const uint64_t written = writer_->written();
  const uint64_t replaced = writer_->replaced();
  std::string out = fmt::format("{}: {} rows put in {:.1f} s ({:.0f} rows/s), {} bad records\n",
                                schema_->name, written - std::min(written, replaced), seconds,
                                static_cast<double>(written) / seconds, bad_);
  if (replaced > 0) {
    out += fmt::format("{}{} of these records replaced one before it with the same key\n",
                       writer_->knows_all_keys() ? "" : "at least ", replaced);
  }
  out += records_->Notes(writer_->added() > 0);
  if (!unfitted_.ok()) out += unfitted_.message() + "\n";
  return out;
}

}  // namespace tamis
