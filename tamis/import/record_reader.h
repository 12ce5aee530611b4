// RecordReader: the records of a stream in one of three formats, one at a time.
//
//   csv     RFC 4180: a header, then one record a line; quoted fields may hold commas, quotes ("")
//           and line ends. An empty field is no value, a quoted empty one ("") is empty text. A
//           first line `sep=;` names the delimiter, as Excel has it. CsvOptions say what is
//           different.
//   json    one JSON object a line (JSON Lines), or an array of objects; null is no value, numbers
//   keep their digits, arrays and objects
//           are kept as JSON text.
//   deb822  "Name: value" lines, continued on lines that begin with a space or a tab, where a
//   single
//           `.` stands for an empty line; an empty line ends the record; lines that begin with #
//           are comments.
//
// Empty lines of csv and json are skipped. Lines end with LF, CR LF or CR. Fields of one record
// whose names make the same column are an error.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/import/json_array.h"
#include "tamis/import/line_source.h"
#include "tamis/import/record.h"

namespace tamis {

enum class RecordFormat { kCsv, kJson, kDeb822 };

Result<RecordFormat> ParseRecordFormat(std::string_view name);

struct CsvOptions {
  std::optional<char> delimiter;     // nullopt: the one that a line `sep=` names, else a comma
  bool has_header = true;            // false: the first line is a record
  std::vector<std::string> columns;  // replace the names of the header; empty = use the header
};

// A character, "tab" or "\\t".
Result<char> ParseDelimiter(std::string_view text);

class RecordReader {
 public:
  // The stream must outlive the reader.
  RecordReader(RecordFormat format, std::istream* in, CsvOptions csv = {});

  // Returns the next record; nullopt at the end. An error concerns one record, and its message
  // begins with "line N: ". The next call continues with the record after it, unless ended() is
  // true.
  Result<std::optional<Record>> Next();

  // True when no more records can be read: at the end, after an error in the CSV header, and after
  // a quoted field or a JSON array that does not end, since the limits of later records are then
  // unknown.
  bool ended() const { return ended_; }

  // The header of a CSV, known after the first call of Next; empty for the other formats.
  const std::vector<std::string>& header() const { return header_; }

 private:
  Result<std::optional<Record>> NextCsv();
  Result<std::optional<Record>> NextJson();
  Result<std::optional<Record>> NextOfArray();
  Result<std::optional<Record>> NextDeb822();
  using CsvFields = std::vector<std::optional<std::string>>;

  Status ReadHeader();
  Status NameColumns(const CsvFields& first);
  Status LookForOtherFormat(const CsvFields& first) const;
  Result<std::optional<CsvFields>> ReadCsvFields(uint64_t* line);
  Status AtLine(uint64_t line, const Status& status) const;

  RecordFormat format_;
  CsvOptions csv_;
  char delimiter_ = ',';
  LineSource lines_;
  bool any_line_ = false;           // a line of JSON has been read, so the input is no array
  std::optional<JsonArray> array_;  // the input is one
  std::vector<std::string> header_;
  bool header_read_ = false;
  std::optional<CsvFields> first_;  // record of a file without a header, already read
  bool ended_ = false;
};

}  // namespace tamis
