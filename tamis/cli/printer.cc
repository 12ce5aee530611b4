#include "tamis/cli/printer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tamis/base/terminal_text.h"
#include "tamis/base/utf8.h"
#include "tamis/table/value.h"

namespace tamis {
namespace {

constexpr size_t kRowsForWidths = 1000;

// Columns on a terminal, roughly: one a code point.
size_t Width(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

// Line ends and other control characters would break the table.
std::string OneLine(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return TerminalText(out);
}

std::string CsvField(std::string_view text) {
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(text);
  }
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

// SQLite's own text has 15 digits.
std::string NumberText(double number) {
  if (std::isinf(number)) return number > 0 ? "Inf" : "-Inf";
  return DoubleText(number);
}

std::string ColumnText(sqlite3_stmt* row, int i) {
  if (sqlite3_column_type(row, i) == SQLITE_FLOAT) return NumberText(sqlite3_column_double(row, i));
  if (sqlite3_column_type(row, i) == SQLITE_BLOB) {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, i));
    const int size = sqlite3_column_bytes(row, i);
    return Value::Bytes(size == 0 ? std::string() : std::string(bytes, size)).ToString();
  }
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(row, i));
  return text == nullptr ? std::string() : std::string(text, sqlite3_column_bytes(row, i));
}

}  // namespace

Result<Format> ParseFormat(std::string_view name) {
  if (name == "table") return Format::kTable;
  if (name == "csv") return Format::kCsv;
  if (name == "json") return Format::kJson;
  if (name == "jsonl") return Format::kJsonl;
  if (name == "line") return Format::kLine;
  return InvalidArgument("there is no format \"" + std::string(name) +
                         "\"; the formats are table, csv, json, jsonl and line");
}

std::vector<std::string> FormatNames() { return {"table", "csv", "json", "jsonl", "line"}; }

void AddFormatOption(const Command& command, std::string& format) {
  command.AddOption("--format", format, "How rows are printed").OneOf(FormatNames()).ShowDefault();
}

RowSink Printer::Sink() {
  return {.begin = [this](const std::vector<std::string>& columns) { Begin(columns); },
          .row =
              [this](sqlite3_stmt* row) {
                std::vector<Cell> cells(columns_.size());
                for (size_t i = 0; i < cells.size(); ++i) {
                  const int column = static_cast<int>(i);
                  cells[i].type = sqlite3_column_type(row, column);
                  cells[i].text = ColumnText(row, column);
                }
                Row(std::move(cells));
              },
          .end = [this] { End(); }};
}

// Text may hold zero bytes.
void Printer::Print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), out_); }

void Printer::Begin(const std::vector<std::string>& columns) {
  columns_ = columns;
  rows_ = 0;
  waiting_.clear();
  header_printed_ = false;
  widths_.clear();
  if (format_ == Format::kTable || format_ == Format::kLine) {
    for (std::string& column : columns_) column = OneLine(column);
  }
  for (const std::string& column : columns_) widths_.push_back(Width(column));
  if (format_ == Format::kJson) std::fputs("[", out_);
  if (format_ == Format::kCsv) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) Print(",");
      Print(CsvField(columns[i]));
    }
    std::fputs("\n", out_);
  }
}

void Printer::Row(std::vector<Cell> cells) {
  switch (format_) {
    case Format::kTable:
      for (size_t i = 0; i < cells.size(); ++i) {
        Cell& cell = cells[i];
        cell.text = cell.type == SQLITE_NULL ? "NULL" : OneLine(cell.text);
        if (!header_printed_) widths_[i] = std::max(widths_[i], Width(cell.text));
      }
      if (header_printed_) {
        PrintTableRow(cells);
      } else {
        waiting_.push_back(std::move(cells));
        if (waiting_.size() == kRowsForWidths) PrintTableHeader();
      }
      break;
    case Format::kCsv:
      for (size_t i = 0; i < cells.size(); ++i) {
        if (i > 0) std::fputc(',', out_);
        if (cells[i].type != SQLITE_NULL) Print(CsvField(cells[i].text));
      }
      std::fputs("\n", out_);
      break;
    case Format::kJson:
      Print(rows_ == 0 ? "\n" : ",\n");
      PrintObject(cells);
      break;
    case Format::kJsonl:
      PrintObject(cells);
      Print("\n");
      break;
    case Format::kLine: {
      if (rows_ > 0) std::fputs("\n", out_);
      const size_t width = *std::max_element(widths_.begin(), widths_.end());
      for (size_t i = 0; i < cells.size(); ++i) {
        std::fprintf(out_, "%*s%s = ", static_cast<int>(width - Width(columns_[i])), "",
                     columns_[i].c_str());
        Print(cells[i].type == SQLITE_NULL ? "NULL" : TerminalText(cells[i].text));
        Print("\n");
      }
      break;
    }
  }
  ++rows_;
}

void Printer::End() {
  if (format_ == Format::kTable) {
    PrintTableHeader();
    std::fprintf(out_, "(%llu row%s)\n", static_cast<unsigned long long>(rows_),
                 rows_ == 1 ? "" : "s");
  }
  if (format_ == Format::kJson) std::fputs(rows_ == 0 ? "]\n" : "\n]\n", out_);
  std::fflush(out_);
  if (replaced_ == 0) return;
  std::fprintf(stderr,
               "tamis: %llu texts are not UTF-8, which JSON must be; their other bytes are shown "
               "as U+FFFD, and as they are with --format csv\n",
               static_cast<unsigned long long>(replaced_));
  replaced_ = 0;
}

// JSON can hold nothing but Unicode.
std::string Printer::JsonText(std::string_view text) {
  if (FindInvalidUtf8(text) != std::string_view::npos) ++replaced_;
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Printer::PrintObject(const std::vector<Cell>& cells) {
  Print("{");
  for (size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const bool bare =
        cell.type == SQLITE_INTEGER ||
        (cell.type == SQLITE_FLOAT && !cell.text.ends_with("Inf"));  // which is not JSON
    Print((i == 0 ? "" : ", ") + JsonText(columns_[i]) + ": ");
    Print(cell.type == SQLITE_NULL ? "null" : bare ? cell.text : JsonText(cell.text));
  }
  Print("}");
}

void Printer::PrintTableHeader() {
  if (header_printed_) return;
  header_printed_ = true;
  std::vector<Cell> names;
  std::string rule;
  for (size_t i = 0; i < columns_.size(); ++i) {
    names.push_back({.type = SQLITE_TEXT, .text = columns_[i]});
    rule += (i == 0 ? "" : "  ") + std::string(widths_[i], '-');
  }
  PrintTableRow(names);
  std::fprintf(out_, "%s\n", rule.c_str());
  for (const std::vector<Cell>& cells : waiting_) PrintTableRow(cells);
  waiting_.clear();
}

void Printer::PrintTableRow(const std::vector<Cell>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    const size_t width = Width(cells[i].text);
    const std::string padding(width < widths_[i] ? widths_[i] - width : 0, ' ');
    const bool number = cells[i].type == SQLITE_INTEGER || cells[i].type == SQLITE_FLOAT;
    if (i > 0) line += "  ";
    line += number ? padding + cells[i].text : cells[i].text + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  std::fprintf(out_, "%s\n", line.c_str());
}

}  // namespace tamis
