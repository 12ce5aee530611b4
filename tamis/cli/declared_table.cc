#include "tamis/cli/declared_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "tamis/import/record.h"
#include "tamis/table/definition.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

// The places where options of --index may begin, each at the space before a word, and the end.
std::vector<size_t> PlacesOfOptions(std::string_view text) {
  static const std::set<std::string_view> words = {"include",         "where", "ranges", "fpr",
                                                   "expected_values", "seed",  "nulls"};
  std::vector<size_t> places;
  for (size_t space = text.find(' '); space != text.npos; space = text.find(' ', space + 1)) {
    const std::string_view word =
        text.substr(space + 1, text.find_first_of(" (", space + 1) - space - 1);
    const bool ends_text = space + 1 + word.size() == text.size();
    // The others take a value.
    if (words.contains(word) && (!ends_text || word == "ranges")) places.push_back(space);
  }
  places.push_back(text.size());
  return places;
}

std::vector<std::string> ColumnsIn(const std::string& text) {
  std::vector<std::string> names = Split(text, ',');
  for (std::string& name : names) name = LowerSnake(name);
  return names;
}

std::string Join(const std::vector<std::string>& names, const char* separator) {
  return fmt::format("{}", fmt::join(names, separator));
}

}  // namespace

// Columns are named as the fields of the records are: "Installed-Size" is installed_size.
Result<DeclaredTable> DeclaredTable::Parse(std::string table, const TableOptions& options) {
  DeclaredTable declared(std::move(table), options);
  for (const std::string& text : options.key) {
    KeyOption key = ParseKeyOption(text);
    key.name = LowerSnake(key.name);
    declared.key_.push_back(std::move(key));
  }
  for (const std::string& text : options.columns) {
    TAMIS_ASSIGN_OR_RETURN(ColumnOption column, ParseColumnOption(text));
    column.name = LowerSnake(column.name);
    declared.columns_.push_back(std::move(column));
  }
  return declared;
}

// Names of fields may have spaces and be words of options: the options begin at the first place
// after names of columns only, or, where names are unknown, at the first place.
std::vector<DeclaredTable::Index> DeclaredTable::IndexesOf(
    const std::function<bool(const std::string&)>& is_column) const {
  std::vector<Index> indexes;
  for (const std::string& text : options_.indexes) {
    const std::vector<size_t> places = PlacesOfOptions(text);
    const auto known = std::ranges::find_if(places, [&](size_t place) {
      return std::ranges::all_of(ColumnsIn(text.substr(0, place)), is_column);
    });
    const size_t place = known == places.end() ? places.front() : *known;
    indexes.push_back({.columns = ColumnsIn(text.substr(0, place)), .options = text.substr(place)});
  }
  return indexes;
}

// A declared column of no field is most likely mistyped.
Status DeclaredTable::CheckFieldsExist(const std::vector<std::string>& fields) const {
  for (const ColumnOption& column : columns_) {
    if (!column.expression.empty()) continue;  // computed of another one
    if (std::ranges::find(fields, column.name) != fields.end()) continue;
    return InvalidArgument("cannot make table \"" + table_ + "\": --column names \"" + column.name +
                           "\", and the fields of the file are " + Join(fields, ", ") +
                           "; correct it, or add the column afterwards with: tamis table "
                           "add-column " +
                           table_ + " " + column.name);
  }
  return Status::Ok();
}

Result<TableSchema> DeclaredTable::SchemaFor(const std::vector<std::string>& header,
                                             const std::deque<Record>& first, bool all_read) const {
  std::vector<std::string> names = header;
  std::set<std::string> seen(names.begin(), names.end());
  for (const Record& record : first) {
    for (const Field& field : record.fields) {
      if (field.name.empty()) {
        return InvalidArgument("line " + std::to_string(record.line) +
                               ": the name of a field has no letter or digit of ASCII, so that no "
                               "column can be named so");
      }
      if (seen.insert(field.name).second) names.push_back(field.name);
    }
  }
  if (!header.empty() || (all_read && !first.empty())) {
    TAMIS_RETURN_IF_ERROR(CheckFieldsExist(names));
  }
  std::map<std::string, ColumnOption> declared;
  for (const ColumnOption& column : columns_) {
    declared[column.name] = column;
    if (seen.insert(column.name).second) names.push_back(column.name);
  }
  std::vector<std::string> definition;
  for (const std::string& name : names) {
    const auto column = declared.find(name);
    definition.push_back(
        DefinitionOf(column == declared.end() ? ColumnOption{.name = name} : column->second));
  }
  if (key_.empty()) {
    return InvalidArgument("table \"" + table_ +
                           "\" is not there yet: name its key with --key COLUMN[,COLUMN]; the "
                           "columns are " +
                           Join(names, ", "));
  }
  for (const KeyOption& part : key_) {
    if (seen.contains(part.name)) continue;
    return InvalidArgument("the input has no column \"" + part.name + "\" for the key; it has " +
                           Join(names, ", "));
  }
  definition.push_back(DefinitionOf(key_));
  const auto is_column = [&](const std::string& name) { return seen.contains(name); };
  for (const Index& index : IndexesOf(is_column)) {
    definition.push_back(IndexDefinition(Join(index.columns, ",") + index.options, options_.nulls));
  }
  if (!options_.marker.empty()) {
    definition.push_back(MarkerDefinition(options_.marker));
  }
  return ParseDefinition(table_, definition);
}

// Only what was declared must agree: another file may have fewer columns.
Status DeclaredTable::CheckAgrees(const TableSchema& existing) const {
  const auto differs = [&](const std::string& what) {
    return AlreadyExists("table \"" + existing.name + "\" exists with another definition: " + what +
                         "; see it with: tamis table describe " + existing.name +
                         "; drop it and its rows with: tamis table drop " + existing.name);
  };
  const auto names_of = [&](const std::vector<uint32_t>& positions) {
    std::vector<std::string> names;
    for (const uint32_t position : positions) names.push_back(existing.columns[position].name);
    return names;
  };
  std::vector<std::string> key;
  for (const KeyOption& part : key_) key.push_back(part.name);
  if (!key.empty() && names_of(existing.key) != key) {
    return differs("its key is (" + Join(names_of(existing.key), ", ") + ")");
  }
  for (size_t i = 0; i < key_.size(); ++i) {
    const Type type = existing.columns[existing.key[i]].type;
    const KeyPart part = existing.key_parts.empty() ? KeyPart() : existing.key_parts[i];
    if (key_[i].form.empty()) continue;
    TAMIS_ASSIGN_OR_RETURN(const KeyPart wanted, ParseKeyPart(type, key_[i].form));
    if (part != wanted) {
      return differs("key column \"" + key_[i].name + "\" is " + KeyPartText(type, part));
    }
  }
  for (const ColumnOption& column : columns_) {
    const auto position = existing.FindColumn(column.name);
    if (!position) return differs("it has no column \"" + column.name + "\"");
    const Column& there = existing.columns[*position];
    if (!column.type.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const Type type, ParseType(column.type));
      if (there.type != type) {
        return differs("column \"" + column.name + "\" is of type " +
                       std::string(TypeName(there.type)));
      }
    }
    if (!column.expression.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const Column wanted,
                             ParseColumnDefinition(existing, DefinitionOf(column)));
      if (there.expression != wanted.expression) {
        return differs("column \"" + column.name + "\" is not computed as " + column.expression);
      }
    }
    if (column.cell.empty()) continue;
    Column wanted{.name = column.name, .type = there.type};
    TAMIS_RETURN_IF_ERROR(ParseCell(column.cell, &wanted));
    if (there.cell != wanted.cell || there.encoding != wanted.encoding) {
      return differs("column \"" + column.name + "\" has another cell");
    }
  }
  const auto is_column = [&](const std::string& name) {
    return existing.FindColumn(name).has_value();
  };
  for (const Index& index : IndexesOf(is_column)) {
    const bool there =
        std::any_of(existing.indexes.begin(), existing.indexes.end(),
                    [&](const IndexSpec& spec) { return names_of(spec.columns) == index.columns; });
    if (!there) {
      return differs("it has no index on (" + Join(index.columns, ",") +
                     "); tamis index create makes one");
    }
  }
  return Status::Ok();
}

}  // namespace tamis
