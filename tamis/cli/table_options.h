// TableOptions: a table as command lines define it: what `tamis table create` and `tamis import`
// share.
//
//   --column NAME[:TYPE]                              a column; text where no type is named
//   --column NAME=FAMILY:QUALIFIER:TYPE[:ENCODING]    a column that is a cell (docs/TABLES.md)
//   --key NAME[:FORM],...                             the key; FORM as docs/TABLES.md#keys
//   --index COLUMN[,COLUMN...] [OPTIONS]              an index, named after its columns; OPTIONS as
//                                                     tamis/table/definition.h
//   --nulls index|skip                                what these indexes do with NULL
//   --marker FAMILY:QUALIFIER|none
//
// A table that another program made is attached with the same options, with defaults that are
// likely for such a table: a key column may be defined where it is named, --key
// NAME:TYPE[:FORM],...; without FORM it has the type's first encoding, or the rest of the key; rows
// get no marker.
#pragma once

#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cli/command_line.h"
#include "tamis/table/schema.h"

namespace tamis {

struct ColumnOption {
  std::string name;
  std::string type;             // empty: not said
  std::string cell;             // "FAMILY:QUALIFIER[:ENCODING]" or empty
  std::string expression = {};  // "lower(other)" or empty
};

struct KeyOption {
  std::string name;
  std::string form;  // empty: not said
};

struct TableOptions {
  std::vector<std::string> columns;
  std::vector<std::string> key;
  std::vector<std::string> indexes;
  std::string nulls = "index";
  std::string marker;

  void AddTo(Command command);
  // The definition of a table of this name.
  Result<TableSchema> Define(const std::string& table) const;
  // A schema without columns when nothing is said: the table has a definition of its own.
  Result<TableSchema> DefineAttached(const std::string& table) const;
};

Result<ColumnOption> ParseColumnOption(const std::string& text);
KeyOption ParseKeyOption(const std::string& text);

// The form that CREATE VIRTUAL TABLE uses (tamis/table/definition.h).
std::string DefinitionOf(const ColumnOption& column);
std::string DefinitionOf(const std::vector<KeyOption>& key);
// The definition of an index on columns separated by commas, with its own options behind a space.
std::string IndexDefinition(const std::string& index, const std::string& nulls);
std::string MarkerDefinition(const std::string& marker);

}  // namespace tamis
