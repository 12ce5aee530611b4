// Importer: puts the records of a stream into a table.
//
// The columns of a new table are those of the CSV header or of the first 1,000 records (or 8 MB of
// them), and those that are declared, all in lower_snake; fields that come later are counted and
// left out. A declared column that the header, or a whole short file, lacks is an error. A present
// table is kept if the declarations agree with it. A new table without a row is dropped when the
// import fails. Records are read while the batch before them is written.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <future>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

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
  uint64_t input_bytes = 0;  // of the file, for the progress; 0 = not known
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
  static constexpr size_t kBatch = 1000;
  static constexpr size_t kBatchBytes = size_t{8} << 20;
  static constexpr uint64_t kReportedErrors = 20;
  static constexpr size_t kCountedKeys = 1'000'000;  // some 40 bytes each

  struct Batch {
    std::vector<Write> writes;
    std::vector<uint64_t> lines;  // of the records
    std::set<std::string> keys;
    size_t size_bytes = 0;
  };

  Status ReadOptions();
  Status ReadFirst(RecordReader* reader);
  Status CheckFirst(const RecordReader& reader) const;
  Result<std::optional<Record>> NextRecord(RecordReader* reader);
  Status PrepareTable(const RecordReader& reader);
  Result<TableSchema> WantedTable(const RecordReader& reader) const;
  Status CheckFieldsExist(const std::vector<std::string>& fields) const;
  // After a failure: drops a table that this import made and put no row into. Adds what is to be
  // done about one that stays.
  Status LeaveTable(const Status& failure);
  Status CheckAgrees(const TableSchema& existing) const;
  Result<Row> ToRow(const Record& record);
  Status Add(const Record& record);
  // Hands the batch to the writer, once it has done with the one before.
  Status Flush();
  Status Deliver(Batch batch);
  Status Finish();
  // Fits the cells of indexes whose definition wants them, by the values that there are now.
  Status FitCells();
  Status Bad(uint64_t line, const Status& status, bool go_on = true);
  Status AllBad() const;
  void NoteKey(const std::string& key);
  void NoteText(const Record& record, const Field& field);
  void ShowProgress(bool last);

  Session* const session_;
  Engine* const engine_;
  ImportOptions options_;
  std::vector<KeyOption> key_;  // names in lower_snake, as the fields of the records
  std::vector<ColumnOption> columns_;
  std::vector<std::string> indexes_;  // COLUMN,COLUMN...
  SchemaPtr schema_;
  std::map<std::string, uint32_t> positions_;  // of the columns, by name
  std::vector<bool> given_;                    // the columns that a record had a field for
  bool made_table_ = false;
  std::deque<Record> first_;
  bool all_read_ = false;  // `first_` are all records
  Batch batch_;
  boost::asio::thread_pool writer_{1};
  std::future<Status> writing_;
  const TextInput* input_ = nullptr;
  std::unordered_set<uint64_t> keys_;           // hashes of those put so far, kCountedKeys at most
  uint64_t replaced_ = 0;                       // records whose key came again
  std::map<std::string, uint64_t> undeclared_;  // fields left out, with their numbers
  uint64_t not_utf8_ = 0;                       // texts
  std::string not_utf8_at_;                     // the first of them
  uint64_t rows_ = 0;
  std::atomic<uint64_t> written_ = 0;
  std::atomic<uint64_t> bad_ = 0;
  Status unfitted_;  // why cells could not be fitted
  Time started_{};
  Time shown_{};
};

}  // namespace tamis
