// Document: sections of text, tables and pictures, written as Markdown or for a terminal.
//
// A table compares: each row is one quantity as it was printed, as formulas give it, and as it was
// measured. Errors in print are found here, not declared by the author of the table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "papers/measurement.h"

namespace tamis {

struct Row {
  std::vector<std::string> what;  // one for each of Table::what
  std::string printed;            // as it stands there, "0.014 %"; "" = not printed
  std::vector<double> formulas;   // one for each of Table::formulas; NAN = none
  std::optional<Measurement> measured;
  std::string verdict;  // on the print; "" = found by comparing
};

struct Table {
  // How numbers are written: rates with three digits, counts in full.
  enum class Numbers { kRates, kCounts };

  std::string title;
  std::vector<std::string> what;      // heads of the columns that say which quantity it is
  std::vector<std::string> formulas;  // the last one is the one that holds
  std::vector<Row> rows;
  Numbers numbers = Numbers::kRates;
};

struct Figure {
  std::string path;  // beside the page
  std::string caption;
};

struct Section {
  using Block = std::variant<std::string, Table, Figure>;  // a string is a paragraph

  std::string title;
  std::vector<Block> blocks;
};

struct Document {
  std::string title;
  std::vector<Section> sections;  // the first has the title of the document when its own is ""
};

std::string Markdown(const Document& document);
std::string ForTerminal(const Section& section);  // pictures are left out

// The number that a printed figure stands for: "1.80E-4", "0.014 %", "25,639"; NAN when there is
// none.
double PrintedValue(std::string_view printed);
// "right", "that of FORMULA" or "wrong": which of the formulas gives the printed figure, to 1 %. ""
// where nothing was printed.
std::string Verdict(const Table& table, const Row& row);

}  // namespace tamis
