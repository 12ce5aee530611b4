#include "papers/document.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace tamis {
namespace {

constexpr size_t kColumns = 115;  // of the text

std::string WithCommas(double value) {
  std::string digits = fmt::format("{:.0f}", value);
  for (size_t at = digits.size(); at > 3; at -= 3) {
    if (digits[at - 4] == '-') break;
    digits.insert(at - 3, ",");
  }
  return digits;
}

// Three digits, "7.15e-7".
std::string Rate(double value) {
  std::string text = fmt::format("{:.3g}", value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;
  const std::string exponent = text.substr(e + 1);
  return text.substr(0, e) + fmt::format("e{}", std::stoi(exponent));
}

std::string Number(double value, Table::Numbers numbers) {
  if (std::isnan(value)) return "";
  const bool whole = numbers == Table::Numbers::kCounts && std::abs(value) >= 100;
  return whole ? WithCommas(value) : Rate(value);
}

std::string Interval(const Measurement& measured, Table::Numbers numbers) {
  if (measured.exact()) return "";
  return Number(measured.low, numbers) + " to " + Number(measured.high, numbers);
}

// The cells of a table, heads first, without the columns that are empty in all rows.
std::vector<std::vector<std::string>> Cells(const Table& table) {
  std::vector<std::vector<std::string>> cells(1, table.what);
  cells[0].insert(cells[0].end(), {"printed", "print is"});
  cells[0].insert(cells[0].end(), table.formulas.begin(), table.formulas.end());
  cells[0].insert(cells[0].end(), {"measured", "95 % interval", "of"});
  for (const Row& row : table.rows) {
    std::vector<std::string> line = row.what;
    line.insert(line.end(), {row.printed, Verdict(table, row)});
    for (const double formula : row.formulas) line.push_back(Number(formula, table.numbers));
    if (row.measured) {
      const Measurement& measured = *row.measured;
      const auto trials = static_cast<double>(measured.trials);
      line.insert(line.end(),
                  {Number(measured.value, table.numbers), Interval(measured, table.numbers),
                   measured.trials == 0 ? "" : WithCommas(trials)});
    } else {
      line.insert(line.end(), {"", "", ""});
    }
    cells.push_back(std::move(line));
  }
  for (size_t c = cells[0].size(); c-- > 0;) {
    const bool empty = std::all_of(cells.begin() + 1, cells.end(),
                                   [c](const auto& line) { return line[c].empty(); });
    if (!empty) continue;
    for (auto& line : cells) line.erase(line.begin() + static_cast<ptrdiff_t>(c));
  }
  return cells;
}

// A line of Markdown must not begin with it: it would be a list, a heading or a quotation.
bool MayBeginLine(std::string_view word) {
  return word.empty() || std::string_view("-+*=#>").find(word[0]) == std::string_view::npos ||
         word.starts_with("**");
}

// Lines of about kColumns at most, broken at blanks.
std::string Wrapped(std::string_view text) {
  std::string wrapped;
  size_t column = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (column != 0 && column + 1 + word.size() > kColumns && MayBeginLine(word)) {
      wrapped += '\n';
      column = 0;
    } else if (column != 0) {
      wrapped += ' ';
      ++column;
    }
    wrapped += word;
    column += word.size();
  }
  return wrapped + "\n";
}

struct MarkdownWriter {
  std::string operator()(const std::string& paragraph) const { return Wrapped(paragraph); }
  std::string operator()(const Figure& figure) const {
    return fmt::format("![{}]({})\n", figure.caption, figure.path);
  }
  std::string operator()(const Table& table) const {
    std::string text = table.title.empty() ? "" : "**" + table.title + "**\n\n";
    const auto cells = Cells(table);
    for (size_t r = 0; r < cells.size(); ++r) {
      for (const std::string& cell : cells[r]) text += "| " + cell + (cell.empty() ? "" : " ");
      text += "|\n";
      if (r != 0) continue;
      for (size_t c = 0; c < cells[0].size(); ++c) text += c < table.what.size() ? "|---" : "|--:";
      text += "|\n";
    }
    return text;
  }
};

struct TerminalWriter {
  std::string operator()(std::string paragraph) const {
    for (size_t at = 0; (at = paragraph.find("**", at)) != std::string::npos;)
      paragraph.erase(at, 2);
    return Wrapped(paragraph);
  }
  std::string operator()(const Figure&) const { return ""; }
  std::string operator()(const Table& table) const {
    const auto cells = Cells(table);
    std::vector<size_t> widths(cells[0].size());
    for (const auto& line : cells) {
      for (size_t c = 0; c < line.size(); ++c) widths[c] = std::max(widths[c], line[c].size());
    }
    std::string text = table.title.empty() ? "" : table.title + "\n";
    for (const auto& line : cells) {
      std::string out;
      for (size_t c = 0; c < line.size(); ++c) {
        out += c < table.what.size() ? fmt::format("{:<{}}  ", line[c], widths[c])
                                     : fmt::format("{:>{}}  ", line[c], widths[c]);
      }
      text += out.substr(0, out.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }
};

}  // namespace

double PrintedValue(std::string_view printed) {
  std::string digits;
  for (const char c : printed) {
    if (c != ',') digits += c;
  }
  double value = NAN;
  const char* end = digits.data() + digits.size();
  const auto [rest, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || (rest != end && std::string_view(rest, end) != " %")) return NAN;
  return rest == end ? value : value / 100;
}

std::string Verdict(const Table& table, const Row& row) {
  const double printed = PrintedValue(row.printed);
  if (!row.verdict.empty() || std::isnan(printed)) return row.verdict;
  for (size_t i = row.formulas.size(); i-- > 0;) {
    if (!(std::abs(row.formulas[i] - printed) <= 0.01 * std::abs(printed))) continue;
    return i + 1 == row.formulas.size() ? "right" : "that of \"" + table.formulas[i] + "\"";
  }
  return "wrong";
}

std::string Markdown(const Document& document) {
  std::string text = "# " + document.title + "\n";
  for (const Section& section : document.sections) {
    if (!section.title.empty()) text += "\n## " + section.title + "\n";
    for (const Section::Block& block : section.blocks) {
      text += "\n" + std::visit(MarkdownWriter(), block);
    }
  }
  return text;
}

std::string ForTerminal(const Section& section) {
  std::string text = section.title + "\n" + std::string(section.title.size(), '-') + "\n";
  for (const Section::Block& block : section.blocks) {
    const std::string written = std::visit(TerminalWriter(), block);
    if (!written.empty()) text += "\n" + written;
  }
  return text;
}

}  // namespace tamis
