#include "tamis/table/definition.h"

#include <algorithm>
#include <charconv>

#include "tamis/base/ascii.h"
#include "tamis/table/condition.h"
#include "tamis/table/schema_change.h"
#include "tamis/table/tokens.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

Status Unreadable(const std::string& part, const std::string& why) {
  return InvalidArgument("cannot read \"" + part + "\": " + why);
}

template <class T>
bool ParseNumber(const std::string& word, T* out) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), *out);
  return error == std::errc() && end == word.data() + word.size();
}

// Where `forms` is given, the form of a key part may follow each name.
Result<std::vector<std::string>> ParseColumnList(const std::string& part, Tokens* tokens,
                                                 std::vector<std::string>* forms = nullptr) {
  std::vector<std::string> names;
  if (!tokens->Take("(")) return Unreadable(part, "columns in parentheses are missing");
  do {
    names.push_back(tokens->TakeWord());
    if (forms == nullptr) continue;
    const bool has_form = !tokens->done() && tokens->word() != "," && tokens->word() != ")";
    forms->push_back(has_form ? tokens->TakeWord() : "");
  } while (tokens->Take(","));
  if (!tokens->Take(")")) return Unreadable(part, "the closing parenthesis is missing");
  return names;
}

Result<std::vector<uint32_t>> Positions(const TableSchema& schema, const std::string& what,
                                        const std::vector<std::string>& names) {
  std::vector<uint32_t> positions;
  for (const std::string& name : names) {
    const auto position = schema.FindColumn(name);
    if (!position) {
      return InvalidArgument(what + " names column \"" + name + "\", which table \"" + schema.name +
                             "\" does not have");
    }
    positions.push_back(*position);
  }
  return positions;
}

// Behind the word "ranges": the cells for each value, if a number follows. They are fitted when
// there are values.
Result<std::shared_ptr<const CellMap>> ParseRanges(const std::string& part, Tokens* tokens) {
  uint32_t cells = kDefaultCellsPerValue;
  const std::string& word = tokens->word();
  const bool numbered = !word.empty() && !tokens->quoted() && IsDigit(word[0]);
  if (numbered &&
      (!ParseNumber(tokens->TakeWord(), &cells) || cells < 1 || cells > kMaxCellsPerValue)) {
    return Unreadable(part, "ranges takes 1 to " + std::to_string(kMaxCellsPerValue) +
                                " cells for each value; " + std::to_string(kDefaultCellsPerValue) +
                                " where none are named");
  }
  return std::make_shared<const CellMap>(UnfittedCellMap(cells));
}

// Behind the word "index", of a schema that has its columns.
Result<IndexSpec> ParseIndex(const TableSchema& schema, const std::string& part, Tokens* tokens) {
  IndexSpec index;
  if (tokens->word() != "(") index.name = tokens->TakeWord();
  TAMIS_ASSIGN_OR_RETURN(const std::vector<std::string> columns, ParseColumnList(part, tokens));
  if (index.name.empty()) {
    for (const std::string& column : columns)
      index.name += (index.name.empty() ? "" : "_") + column;
  }
  const std::string what = "index \"" + index.name + "\"";
  TAMIS_ASSIGN_OR_RETURN(index.columns, Positions(schema, what, columns));
  while (!tokens->done()) {
    const std::string option = tokens->TakeWord();
    if (option == "include") {
      TAMIS_ASSIGN_OR_RETURN(const auto include, ParseColumnList(part, tokens));
      TAMIS_ASSIGN_OR_RETURN(index.include, Positions(schema, what, include));
      continue;
    }
    if (option == "where") {
      auto condition = ParseCondition(schema, tokens);
      if (!condition.ok()) return condition.status().WithContext(what);
      index.where = *std::move(condition);
      continue;
    }
    if (option == "ranges") {
      TAMIS_ASSIGN_OR_RETURN(index.cell_map, ParseRanges(part, tokens));
      continue;
    }
    const std::string value = tokens->TakeWord();
    bool good = false;
    if (option == "fpr") good = ParseNumber(value, &index.fpr);
    if (option == "expected_values") good = ParseNumber(value, &index.expected_values);
    if (option == "seed") good = ParseNumber(value, &index.seed);
    if (option == "nulls") {
      good = value == "index" || value == "skip";
      index.nulls = value == "skip" ? IndexNulls::kSkip : IndexNulls::kIndex;
    }
    if (!good) {
      return Unreadable(part, "\"" + option + " " + value +
                                  "\" is no option of an index; they are fpr NUMBER, "
                                  "expected_values NUMBER, seed NUMBER, nulls index or skip, "
                                  "include (COLUMN, ...), ranges [CELLS], where CONDITION");
    }
  }
  return index;
}

// Nothing is said of any part: all are ordered.
Status SetKeyParts(const std::vector<std::string>& forms, TableSchema* schema) {
  if (std::all_of(forms.begin(), forms.end(), [](const auto& form) { return form.empty(); })) {
    return Status::Ok();
  }
  for (size_t i = 0; i < schema->key.size(); ++i) {
    TAMIS_ASSIGN_OR_RETURN(KeyPart part,
                           ParseKeyPart(schema->columns[schema->key[i]].type, forms[i]));
    schema->key_parts.push_back(std::move(part));
  }
  return Status::Ok();
}

// A table of cells has a marker in its first family, of no qualifier, unless another is named or
// none is wanted.
Status SetMarker(const std::optional<std::string>& text, TableSchema* schema) {
  if (text == "none") return Status::Ok();
  if (text) {
    Column marker{.name = "marker", .type = Type::kBytes};
    TAMIS_RETURN_IF_ERROR(ParseCell(*text, &marker));
    schema->cells = true;
    schema->marker = marker.cell;
    return Status::Ok();
  }
  for (const Column& column : schema->columns) {
    if (column.encoding == CellEncoding::kNone) continue;
    schema->marker = CellName{column.cell.family, ""};
    break;
  }
  return Status::Ok();
}

struct FunctionName {
  std::string_view name;
  Expression::Function function;
};

constexpr FunctionName kFunctions[] = {{"lower", Expression::Function::kLower},
                                       {"substr", Expression::Function::kSubstr},
                                       {"date", Expression::Function::kDate},
                                       {"hour", Expression::Function::kHour},
                                       {"json_text", Expression::Function::kJsonText}};

struct ColumnPart {
  Column column;
  bool is_key = false;
  std::string source = {};  // computed columns: the name of the other one
};

// Reads "lower(maintainer)", "substr(maintainer, 1, 3)", "json_text(note, '$.a')".
Status ReadExpression(const std::string& part, Tokens* tokens, ColumnPart* out) {
  const std::string name = tokens->TakeWord();
  const auto* const known = std::ranges::find(kFunctions, name, &FunctionName::name);
  if (known == std::end(kFunctions)) {
    return Unreadable(part, "\"" + name +
                                "\" is no function of a computed column; they are lower(COLUMN), "
                                "substr(COLUMN, 1, LENGTH), date(COLUMN), hour(COLUMN) and "
                                "json_text(COLUMN, 'PATH')");
  }
  Expression expression{.function = known->function};
  bool good = tokens->Take("(");
  out->source = tokens->TakeWord();
  if (known->function == Expression::Function::kSubstr) {
    good = good && tokens->Take(",") && tokens->Take("1") && tokens->Take(",") &&
           ParseNumber(tokens->TakeWord(), &expression.length);
  } else if (known->function == Expression::Function::kJsonText) {
    good = good && tokens->Take(",") && tokens->quoted();
    if (good) {
      TAMIS_ASSIGN_OR_RETURN(expression.path, JsonPath::Parse(tokens->TakeWord()));
    }
  }
  if (!good || !tokens->Take(")")) {
    return Unreadable(part,
                      "write lower(COLUMN), substr(COLUMN, 1, LENGTH), date(COLUMN), "
                      "hour(COLUMN) or json_text(COLUMN, 'PATH')");
  }
  if (Status status = expression.Validate(); !status.ok()) {
    return Unreadable(part, status.message());
  }
  out->column.expression = std::move(expression);
  return Status::Ok();
}

// The column with the position of the column that it is computed from, if it is.
Result<Column> Resolved(const TableSchema& schema, ColumnPart part) {
  if (part.column.is_computed()) {
    const auto source = schema.FindColumn(part.source);
    if (!source) {
      return InvalidArgument("column \"" + part.column.name + "\" is computed from column \"" +
                             part.source + "\", which table \"" + schema.name + "\" does not have");
    }
    part.column.expression->source = *source;
  }
  return std::move(part.column);
}

// Reads the words after a column's name, as far as they are understood.
Result<ColumnPart> ReadColumn(const std::string& part, const std::string& name, Tokens* tokens) {
  ColumnPart out{.column = {.name = name}};
  Column& column = out.column;
  bool has_type = false;
  if (!tokens->done() && tokens->word() != "not" && tokens->word() != "primary" &&
      tokens->word() != "cell" && tokens->word() != "=") {
    const auto type = ParseType(tokens->TakeWord());
    if (!type.ok()) return Unreadable(part, type.status().message());
    column.type = *type;
    has_type = true;
  }
  while (!tokens->done()) {
    if (tokens->Take("not") && tokens->Take("null")) {
      column.nullable = false;
    } else if (tokens->Take("primary") && tokens->Take("key")) {
      out.is_key = true;
    } else if (tokens->Take("cell")) {
      TAMIS_RETURN_IF_ERROR(ParseCell(tokens->TakeWord(), &column));
    } else if (tokens->Take("=")) {
      TAMIS_RETURN_IF_ERROR(ReadExpression(part, tokens, &out));
      if (!has_type) column.type = column.expression->ResultType();
    } else {
      break;
    }
  }
  return out;
}

std::string FormOf(const TableSchema& schema, size_t part) {
  if (schema.key_parts.empty()) return "ordered";
  return KeyPartText(schema.columns[schema.key[part]].type, schema.key_parts[part]);
}

std::string ExpressionOf(const TableSchema& schema, const Column& column) {
  if (!column.is_computed()) return "none";
  return column.expression->ToString(schema.columns[column.expression->source].name);
}

std::string CellOf(const Column& column) {
  if (column.encoding == CellEncoding::kNone) return "none";
  return CellNameText(column.cell) + ":" + std::string(EncodingName(column.encoding));
}

}  // namespace

Result<TableSchema> ParseDefinition(const std::string& table,
                                    const std::vector<std::string>& parts) {
  TableSchema schema;
  schema.name = table;
  std::vector<std::string> key;
  std::vector<std::string> key_forms;  // the forms in `key`, or none
  std::optional<std::string> marker;
  std::vector<std::string> indexes;
  std::vector<ColumnPart> columns;
  for (const std::string& part : parts) {
    Tokens tokens(part);
    const std::string first = tokens.TakeWord();
    if ((first == "primary" && tokens.Take("key")) || (first == "key" && tokens.word() == "(")) {
      key_forms.clear();
      TAMIS_ASSIGN_OR_RETURN(key, ParseColumnList(part, &tokens, &key_forms));
    } else if (first == "marker" && tokens.quoted()) {
      marker = tokens.TakeWord();
    } else if (first == "index") {
      indexes.push_back(part);
      continue;
    } else {
      TAMIS_ASSIGN_OR_RETURN(ColumnPart column, ReadColumn(part, first, &tokens));
      if (column.is_key) key.push_back(first);
      column.column.id = schema.next_column_id++;
      if (column.column.encoding != CellEncoding::kNone) schema.cells = true;
      schema.columns.push_back(column.column);
      columns.push_back(std::move(column));
    }
    if (!tokens.done()) return Unreadable(part, "\"" + tokens.word() + "\" is not understood");
  }
  for (size_t i = 0; i < columns.size(); ++i) {
    TAMIS_ASSIGN_OR_RETURN(schema.columns[i], Resolved(schema, std::move(columns[i])));
  }
  if (key.empty()) {
    return InvalidArgument("table \"" + table + "\" has no key; add key (COLUMN, ...)");
  }
  TAMIS_ASSIGN_OR_RETURN(schema.key, Positions(schema, "the key", key));
  for (const uint32_t position : schema.key) schema.columns[position].nullable = false;
  TAMIS_RETURN_IF_ERROR(SetKeyParts(key_forms, &schema));
  TAMIS_RETURN_IF_ERROR(SetMarker(marker, &schema));
  for (const std::string& part : indexes) {
    Tokens tokens(part);
    tokens.TakeWord();  // index
    TAMIS_ASSIGN_OR_RETURN(IndexSpec index, ParseIndex(schema, part, &tokens));
    schema.indexes.push_back(std::move(index));
  }
  TAMIS_RETURN_IF_ERROR(schema.Validate());
  return schema;
}

Result<Column> ParseColumnDefinition(const TableSchema& table, const std::string& text) {
  Tokens tokens(text);
  const std::string name = tokens.TakeWord();
  TAMIS_ASSIGN_OR_RETURN(ColumnPart column, ReadColumn(text, name, &tokens));
  if (column.is_key) return Unreadable(text, "a key is given to a table when it is made");
  if (!tokens.done()) return Unreadable(text, "\"" + tokens.word() + "\" is not understood");
  return Resolved(table, std::move(column));
}

Status CheckSameDefinition(const TableSchema& there, const TableSchema& wanted) {
  const TableSchema existing = WithoutDroppedColumns(there);
  const auto differs = [&](const std::string& what) {
    return AlreadyExists("table \"" + existing.name + "\" exists with another definition: " + what +
                         "; see it with: tamis table describe " + existing.name);
  };
  // A definition without cells leaves the columns where they stand.
  const bool placed = existing.cells && !wanted.cells;
  if (existing.columns.size() != wanted.columns.size()) {
    return differs("it has " + std::to_string(existing.columns.size()) + " columns, not " +
                   std::to_string(wanted.columns.size()));
  }
  for (size_t i = 0; i < wanted.columns.size(); ++i) {
    const Column& a = existing.columns[i];
    const Column& b = wanted.columns[i];
    if (a.name != b.name || a.type != b.type || a.nullable != b.nullable) {
      return differs("column " + std::to_string(i + 1) + " is \"" + a.name + "\" of type " +
                     std::string(TypeName(a.type)) + (a.nullable ? "" : " not null") + ", not \"" +
                     b.name + "\" of type " + std::string(TypeName(b.type)) +
                     (b.nullable ? "" : " not null"));
    }
    if (ExpressionOf(existing, a) != ExpressionOf(wanted, b)) {
      return differs("column \"" + a.name + "\" is computed as " + ExpressionOf(existing, a) +
                     ", not as " + ExpressionOf(wanted, b));
    }
    if (!placed && CellOf(a) != CellOf(b)) {
      return differs("column \"" + a.name + "\" has the cell '" + CellOf(a) + "', not '" +
                     CellOf(b) + "'");
    }
  }
  if (existing.key != wanted.key) return differs("its key is of other columns");
  for (size_t i = 0; i < wanted.key.size(); ++i) {
    if (FormOf(existing, i) == FormOf(wanted, i)) continue;
    return differs("key column \"" + existing.columns[existing.key[i]].name + "\" is '" +
                   FormOf(existing, i) + "', not '" + FormOf(wanted, i) + "'");
  }
  if (!placed && (existing.cells != wanted.cells || existing.marker != wanted.marker)) {
    return differs("its rows have another marker, or are no cells");
  }
  for (const IndexSpec& index : wanted.indexes) {
    const IndexSpec* same = existing.FindIndex(index.name);
    if (same == nullptr) return differs("it has no index \"" + index.name + "\"");
    if (same->columns != index.columns || same->fpr != index.fpr || same->nulls != index.nulls ||
        same->expected_values != index.expected_values || same->include != index.include ||
        same->where != index.where) {
      return differs("index \"" + index.name + "\" has other columns or options");
    }
    // A definition without cells leaves those that were fitted later.
    if (index.cell_map != nullptr && same->cell_map == nullptr) {
      return differs("index \"" + index.name +
                     "\" has no cells for ranges; fit them with: tamis "
                     "index ranges " +
                     existing.name + " " + index.name);
    }
  }
  if (existing.indexes.size() != wanted.indexes.size()) {
    return differs("it has " + std::to_string(existing.indexes.size()) + " indexes, not " +
                   std::to_string(wanted.indexes.size()));
  }
  return Status::Ok();
}

}  // namespace tamis
