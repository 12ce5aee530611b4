#include "import.h"

#include "commands/defrem.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "settings.h"
#include "table.h"

typedef struct ImportOptions {
  bool computed;        // computed columns too
  bool not_null;        // NOT NULL as the store has it
  bool is_c_collation;  // texts COLLATE "C", as the store orders them
} ImportOptions;

static bool ReadBool(DefElem* option) {
  bool truth = false;
  if (!parse_bool(defGetString(option), &truth)) {
    ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_ATTRIBUTE_VALUE),
                    errmsg("option \"%s\" must be true or false", option->defname)));
  }
  return truth;
}

static ImportOptions ReadOptions(List* list) {
  ImportOptions options = {.computed = true, .not_null = true, .is_c_collation = true};
  ListCell* cell;
  foreach (cell, list) {
    DefElem* option = lfirst(cell);
    if (strcmp(option->defname, "computed") == 0) {
      options.computed = ReadBool(option);
    } else if (strcmp(option->defname, "not_null") == 0) {
      options.not_null = ReadBool(option);
    } else if (strcmp(option->defname, "c_collation") == 0) {
      options.is_c_collation = ReadBool(option);
    } else {
      ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
                      errmsg("\"%s\" is no option of IMPORT FOREIGN SCHEMA", option->defname),
                      errhint("Its options are: computed, not_null, c_collation.")));
    }
  }
  return options;
}

static void CheckName(const char* noun, const char* name) {
  if (strlen(name) < NAMEDATALEN) return;
  ereport(ERROR, (errcode(ERRCODE_NAME_TOO_LONG),
                  errmsg("the name of %s \"%s\" has more than %d bytes, which PostgreSQL cuts",
                         noun, name, NAMEDATALEN - 1),
                  errhint("Leave the table out (EXCEPT), and create its foreign table with the "
                          "options table_name and column_name.")));
}

static char* CreateStatement(const TamisTable* table, const char* server,
                             const ImportOptions* options) {
  StringInfoData sql;
  const char* separator = "";
  initStringInfo(&sql);
  CheckName("table", table->name);
  appendStringInfo(&sql, "CREATE FOREIGN TABLE %s (", quote_identifier(table->name));
  for (int i = 0; i < table->column_count; ++i) {
    const TamisColumn* column = &table->columns[i];
    if ((column->computed && !options->computed) || column->type == kTamisOther) continue;
    CheckName("column", column->name);
    appendStringInfo(&sql, "%s%s %s", separator, quote_identifier(column->name),
                     TamisSqlType(column->type));
    if (column->type == kTamisTextType && options->is_c_collation) {
      appendStringInfoString(&sql, " COLLATE pg_catalog.\"C\"");
    }
    if (!column->nullable && !column->computed && options->not_null) {
      appendStringInfoString(&sql, " NOT NULL");
    }
    separator = ", ";
  }
  appendStringInfo(&sql, ") SERVER %s OPTIONS (table_name %s)", quote_identifier(server),
                   quote_literal_cstr(table->name));
  return sql.data;
}

static bool IsListed(const List* tables, const char* name) {
  ListCell* cell;
  foreach (cell, tables) {
    if (strcmp(((const RangeVar*)lfirst(cell))->relname, name) == 0) return true;
  }
  return false;
}

List* TamisImportForeignSchema(ImportForeignSchemaStmt* statement, Oid server_id) {
  const ImportOptions options = ReadOptions(statement->options);
  const TamisSettings* settings = TamisSettingsOf(server_id, GetUserId(), InvalidOid);
  List* statements = NIL;
  ListCell* cell;
  foreach (cell, TamisListTables(settings)) {
    const TamisTable* table = lfirst(cell);
    const bool is_listed = IsListed(statement->table_list, table->name);
    if (statement->list_type == FDW_IMPORT_SCHEMA_LIMIT_TO && !is_listed) continue;
    if (statement->list_type == FDW_IMPORT_SCHEMA_EXCEPT && is_listed) continue;
    statements = lappend(statements, CreateStatement(table, settings->server_name, &options));
  }
  return statements;
}
