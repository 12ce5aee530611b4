// Importer: puts the records of a stream into a table.
//
// The columns of a new table are those of the CSV header or of the first 1,000 records (or 8 MB of
// them), plus the declared columns, all in lower_snake; fields that come later are counted and
// left out. A declared column that the header, or a whole short file, lacks is an error. A present
// table is kept if the declarations agree with it. A new table without a row is dropped when the
// import fails. Records are read while the batch before them is written.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "tamis/cli/batch_writer.h"
#include "tamis/cli/declared_table.h"
#include "tamis/cli/record_rows.h"
#include "tamis/cli/table_options.h"
#include "tamis/import/record_reader.h"
#include "tamis/import/text_input.h"
#include "tamis/query/engine.h"
#include "tamis/sql/session.h"

namespace tamis {

struct ImportOptions {
  std::string table;
  RecordFormat format = RecordFormat::kCsv;
  CsvOptions csv;
  TableOptions definition;
  bool skip_bad = false;     // a bad record is reported and left out; else it stops the import
  uint64_t input_bytes = 0;  // the file's size, for the progress; 0 = not known
  const std::atomic<bool>* cancelled = nullptr;
};

class Importer {
 public:
  Importer(Session* session, ImportOptions options);

  Status Run(TextInput* in);

  // A summary for people, several lines. Also after a failure.
  std::string Summary() const;

 private:
  static constexpr size_t kRecordsForColumns = 1000;
  static constexpr uint64_t kReportedErrors = 20;

  Status ReadFirst(RecordReader* reader);
  Status CheckFirst(const RecordReader& reader) const;
  Result<std::optional<Record>> NextRecord(RecordReader* reader);
  Status PrepareTable(const DeclaredTable& declared, const RecordReader& reader);
  // After a failure: drops a table that this import made and put no row into. Adds what is to be
  // done about one that stays.
  Status LeaveTable(const Status& failure);
  Status Add(const Record& record);
  // Fits the cells of indexes whose definition wants them, by the values that there are now.
  Status FitCells();
  Status Bad(uint64_t line, const Status& status, bool go_on = true);
  Status AllBad() const;
  void ShowProgress(bool last);

  Session* const session_;
  Engine* const engine_;
  ImportOptions options_;
  SchemaPtr schema_;
  bool made_table_ = false;
  std::deque<Record> first_;
  bool all_read_ = false;  // `first_` are all records
  const TextInput* input_ = nullptr;
  // Set once the table is there:
  std::optional<RecordRows> records_;
  std::optional<BatchWriter> writer_;
  uint64_t bad_ = 0;
  Status unfitted_;  // why cells could not be fitted
  Time started_{};
  Time shown_{};
};

}  // namespace tamis
