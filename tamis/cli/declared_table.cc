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

// Where the options of --index begin, with the space before them. Names of fields may have spaces.
size_t OptionsOfIndex(std::string_view text) {
  size_t options = text.size();
  for (const std::string_view option :
       {" include ", " include(", " where ", " ranges", " fpr ", " expected_values ", " seed "}) {
    options = std::min(options, text.find(option));
  }
  return options;
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
  for (const std::string& text : options.indexes) {
    const size_t rest = OptionsOfIndex(text);
    std::vector<std::string> names = Split(text.substr(0, rest), ',');
    for (std::string& name : names) name = LowerSnake(name);
    declared.indexes_.push_back(Join(names, ",") + text.substr(rest));
  }
  return declared;
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
  for (const std::string& index : indexes_) {
    definition.push_back(IndexDefinition(index, options_.nulls));
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
  for (const std::string& index : indexes_) {
    const std::vector<std::string> wanted = Split(index, ',');
    const bool there =
        std::any_of(existing.indexes.begin(), existing.indexes.end(),
                    [&](const IndexSpec& spec) { return names_of(spec.columns) == wanted; });
    if (!there) {
      return differs("it has no index on (" + index + "); tamis index create makes one");
    }
  }
  return Status::Ok();
}

}  // namespace tamis
