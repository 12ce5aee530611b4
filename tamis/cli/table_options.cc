#include "tamis/cli/table_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tamis/table/cell_encoding.h"
#include "tamis/table/definition.h"

namespace tamis {
namespace {

// In single quotes: cells and forms may hold anything but those, which are bytes like others there.
std::string QuotedText(const std::string& text) {
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

// How a key part of the type stands in tables of others.
Result<std::string> LikelyForm(const std::string& column, const std::string& type, bool last) {
  Type parsed = Type::kText;
  if (!type.empty()) {
    const auto named = ParseType(type);
    if (!named.ok()) return named.status().WithContext("cannot read key column \"" + column + "\"");
    parsed = *named;
  }
  const CellEncoding encoding = DefaultEncoding(parsed);
  if (EncodingWidth(parsed, encoding)) return std::string(EncodingName(encoding));
  if (last) return std::string("rest");
  return InvalidArgument("cannot read the key: columns follow on \"" + column +
                         "\", so say where it ends, --key " + column + ":" +
                         std::string(TypeName(parsed)) + ":width=N or :until=DELIMITER");
}

}  // namespace

void TableOptions::AddTo(Command command) {
  command
      .AddOption("--key", key,
                 "Columns of the key. NAME:FORM for a key of another format than ours: an "
                 "encoding of fixed width, width=N, until=DELIMITER, or rest")
      .Delimiter(',');
  command.AddOption("--column", columns,
                    "NAME or NAME:TYPE; types are text, bytes, int64, double, bool, timestamp, "
                    "decimal. NAME=FAMILY:QUALIFIER:TYPE[:ENCODING] for a column that is a cell. "
                    "NAME=FUNCTION(COLUMN) for one that is computed: lower(COLUMN), "
                    "substr(COLUMN, 1, LENGTH), date(COLUMN), hour(COLUMN), "
                    "json_text(COLUMN, 'PATH')");
  command.AddOption("--index", indexes,
                    "COLUMN[,COLUMN...]: an index, named after its columns; behind a space its own "
                    "options, such as \"include (COLUMN, ...)\"");
  command
      .AddOption("--nulls", nulls,
                 "Whether rows whose first indexed column is NULL have an entry: index or skip")
      .OneOf({"index", "skip"})
      .ShowDefault();
  command.AddOption("--marker", marker,
                    "FAMILY:QUALIFIER of the cell that each row of cells has, or none");
}

Result<TableSchema> TableOptions::Define(const std::string& table) const {
  std::vector<std::string> definition;
  for (const std::string& text : columns) {
    TAMIS_ASSIGN_OR_RETURN(const ColumnOption column, ParseColumnOption(text));
    definition.push_back(DefinitionOf(column));
  }
  std::vector<KeyOption> parts;
  for (const std::string& text : key) parts.push_back(ParseKeyOption(text));
  if (!parts.empty()) definition.push_back(DefinitionOf(parts));
  for (const std::string& index : indexes) definition.push_back(IndexDefinition(index, nulls));
  if (!marker.empty()) definition.push_back(MarkerDefinition(marker));
  return ParseDefinition(table, definition);
}

Result<TableSchema> TableOptions::DefineAttached(const std::string& table) const {
  if (columns.empty() && key.empty() && indexes.empty() && marker.empty()) {
    TableSchema named;
    named.name = table;
    return named;
  }
  TableOptions full = *this;
  std::map<std::string, std::string> types;  // by column
  for (const std::string& text : columns) {
    TAMIS_ASSIGN_OR_RETURN(const ColumnOption column, ParseColumnOption(text));
    types[column.name] = column.type;
  }
  for (size_t i = 0; i < key.size(); ++i) {
    KeyOption part = ParseKeyOption(key[i]);
    if (!types.contains(part.name)) {
      const KeyOption typed = ParseKeyOption(part.form);
      full.columns.push_back(part.name + ":" + typed.name);
      types[part.name] = typed.name;
      part.form = typed.form;
    }
    if (part.form.empty()) {
      TAMIS_ASSIGN_OR_RETURN(part.form,
                             LikelyForm(part.name, types[part.name], i + 1 == key.size()));
    }
    full.key[i] = part.name + ":" + part.form;
  }
  if (marker.empty()) full.marker = "none";
  return full.Define(table);
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
  // A cell has a colon before any parenthesis.
  if (text.find('(', end) < text.find(':', end)) {
    column.expression = text.substr(end + 1);
    return column;
  }
  const size_t qualifier = text.find(':', end);
  const size_t type = qualifier == std::string::npos ? qualifier : text.find(':', qualifier + 1);
  if (type == std::string::npos) {
    return InvalidArgument("cannot read column \"" + text +
                           "\": write NAME=FAMILY:QUALIFIER:TYPE[:ENCODING] or "
                           "NAME=FUNCTION(COLUMN)");
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
  if (!column.expression.empty()) return "\"" + column.name + "\" = " + column.expression;
  return fmt::format("\"{}\" {}{}", column.name, column.type.empty() ? "text" : column.type,
                     column.cell.empty() ? "" : " cell " + QuotedText(column.cell));
}

std::string DefinitionOf(const std::vector<KeyOption>& key) {
  std::string parts;
  for (const KeyOption& part : key) {
    parts += fmt::format("{}\"{}\"{}", parts.empty() ? "" : ", ", part.name,
                         part.form.empty() ? "" : " " + QuotedText(part.form));
  }
  return "key (" + parts + ")";
}

std::string IndexDefinition(const std::string& index, const std::string& nulls) {
  size_t columns = 0;  // the size of their part
  while (columns < index.size() &&
         (index[columns] != ' ' || columns == 0 || index[columns + 1] == ' ' ||
          index[columns + 1] == ',' || index[columns - 1] == ',')) {
    ++columns;
  }
  return "index (" + index.substr(0, columns) + ") nulls " + nulls + index.substr(columns);
}

std::string MarkerDefinition(const std::string& marker) { return "marker " + QuotedText(marker); }

}  // namespace tamis
