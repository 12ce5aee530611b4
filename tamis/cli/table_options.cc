#include "tamis/cli/table_options.h"

#include <fmt/format.h>

namespace tamis {
namespace {

// In single quotes: cells and forms may hold anything but those, which are bytes like others there.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "\\x27";
    } else {
      out += c;
    }
  }
  return out + "'";
}

}  // namespace

void TableOptions::AddTo(Command command) {
  command.AddOption("--key", key,
                    "Columns of the key. NAME:FORM for a key of another format than ours: an "
                    "encoding of fixed width, width=N, until=DELIMITER, or rest").Delimiter(',');
  command.AddOption("--column", columns,
                    "NAME or NAME:TYPE; types are text, bytes, int64, double, bool, timestamp, "
                    "decimal. NAME=FAMILY:QUALIFIER:TYPE[:ENCODING] for a column that is a cell");
  command.AddOption("--index", indexes, "COLUMN[,COLUMN...]: an index, named after its columns");
  command
      .AddOption("--nulls", nulls,
                 "Whether rows whose first indexed column is NULL have an entry: index or skip")
      .OneOf({"index", "skip"})
      .ShowDefault();
  command.AddOption("--marker", marker,
                    "FAMILY:QUALIFIER of the cell that each row of cells has, or none");
}

Result<ColumnOption> ParseColumnOption(const std::string& text) {
  ColumnOption column;
  const size_t end = text.find_first_of(":=");
  column.name = text.substr(0, end);
  if (end == std::string::npos) return column;
  if (text[end] == ':') {
    column.type = text.substr(end + 1);
    return column;
  }
  const size_t qualifier = text.find(':', end);
  const size_t type = qualifier == std::string::npos ? qualifier : text.find(':', qualifier + 1);
  if (type == std::string::npos) {
    return InvalidArgument("cannot read column \"" + text +
                           "\": write NAME=FAMILY:QUALIFIER:TYPE[:ENCODING]");
  }
  const size_t encoding = text.find(':', type + 1);
  column.cell = text.substr(end + 1, type - end - 1);
  column.type = text.substr(type + 1, encoding - type - 1);
  if (encoding != std::string::npos) column.cell += text.substr(encoding);
  return column;
}

KeyOption ParseKeyOption(const std::string& text) {
  const size_t colon = text.find(':');
  return {text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
}

std::string DefinitionOf(const ColumnOption& column) {
  return fmt::format("\"{}\" {}{}", column.name, column.type.empty() ? "text" : column.type,
                     column.cell.empty() ? "" : " cell " + Quoted(column.cell));
}

std::string DefinitionOf(const std::vector<KeyOption>& key) {
  std::string parts;
  for (const KeyOption& part : key) {
    parts += fmt::format("{}\"{}\"{}", parts.empty() ? "" : ", ", part.name,
                         part.form.empty() ? "" : " " + Quoted(part.form));
  }
  return "key (" + parts + ")";
}

std::string IndexDefinition(const std::string& columns, const std::string& nulls) {
  return "index (" + columns + ") nulls " + nulls;
}

std::string MarkerDefinition(const std::string& marker) { return "marker " + Quoted(marker); }

}  // namespace tamis
