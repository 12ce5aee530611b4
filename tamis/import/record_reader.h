// RecordReader: the records of a stream in one of three formats, one at a time.
//
//   csv     RFC 4180: a header, then one record a line; quoted fields may hold commas, quotes ("")
//           and line ends. An empty field is no value, a quoted empty one ("") is empty text.
//   jsonl   one JSON object a line; null is no value, numbers keep their digits, arrays and objects
//           are kept as JSON text.
//   deb822  "Name: value" lines, continued on lines that begin with a space; an empty line ends the
//           record; lines that begin with # are comments.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/import/line_source.h"
#include "tamis/import/record.h"

namespace tamis {

enum class RecordFormat { kCsv, kJsonl, kDeb822 };

Result<RecordFormat> ParseRecordFormat(std::string_view name);

class RecordReader {
 public:
  // The stream must outlive the reader.
  RecordReader(RecordFormat format, std::istream* in) : format_(format), lines_(in) {}

  // The next record; nullopt at the end. An error is about one record, its message begins with
  // "line N: ", and the next call goes on behind it; only a bad CSV header ends the stream.
  Result<std::optional<Record>> Next();

  // Of the CSV header, known after the first call of Next; empty for the other formats.
  const std::vector<std::string>& header() const { return header_; }
  uint64_t bytes_read() const { return lines_.bytes(); }

 private:
  Result<std::optional<Record>> NextCsv();
  Result<std::optional<Record>> NextJsonl();
  Result<std::optional<Record>> NextDeb822();
  Status ReadHeader();
  Result<std::optional<std::vector<std::optional<std::string>>>> ReadCsvFields(uint64_t* line);
  Status AtLine(uint64_t line, const Status& status) const;

  RecordFormat format_;
  LineSource lines_;
  std::vector<std::string> header_;
  bool header_read_ = false;
  bool ended_ = false;
};

}  // namespace tamis
