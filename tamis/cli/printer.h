// Printer: the rows of a statement as a table, CSV, JSON or lines.
//
// CSV and JSON Lines are what `tamis import` reads: the values that it makes of them are those that
// were printed. Numbers have the digits for that (DoubleText).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cli/connection.h"

namespace tamis {

enum class Format {
  kTable,  // aligned columns; the first 1,000 rows settle the widths; TerminalText
  kCsv,    // RFC 4180 with a header; NULL is empty, empty text is ""
  kJson,   // an array of objects, one a line; bytes as 0x-prefixed hexadecimal text
  kJsonl,  // the same objects without the array
  kLine,   // "column = value" lines, an empty line between rows; TerminalText
};

Result<Format> ParseFormat(std::string_view name);
std::vector<std::string> FormatNames();
// --format; `format` holds what it is when it is not given.
void AddFormatOption(const Command& command, std::string& format);

class Printer {
 public:
  Printer(Format format, std::FILE* out) : format_(format), out_(out) {}

  // Takes the rows of one statement after the other. The printer must outlive it.
  RowSink Sink();

 private:
  struct Cell {
    int type = 0;  // SQLITE_INTEGER, ...
    std::string text;
  };
  void Print(std::string_view text);
  void Begin(const std::vector<std::string>& columns);
  void Row(std::vector<Cell> cells);
  void End();
  void PrintObject(const std::vector<Cell>& cells);
  std::string JsonText(std::string_view text);
  void PrintTableHeader();
  void PrintTableRow(const std::vector<Cell>& cells);

  Format format_;
  std::FILE* out_;
  std::vector<std::string> columns_;
  std::vector<std::vector<Cell>> waiting_;  // kTable: until the widths are settled
  std::vector<size_t> widths_;
  bool header_printed_ = false;
  uint64_t rows_ = 0;
  uint64_t replaced_ = 0;  // JSON: texts that are not UTF-8
};

}  // namespace tamis
