#include "table.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "http.h"
#include "json.h"

#define KEPT_SECONDS 60

typedef struct KeptTable {
  MemoryContext context;
  char* url;
  char* token;
  Oid user_id;
  TimestampTz since;
  TamisTable* table;
} KeptTable;

static List* kept_tables = NIL;

// ---- Types

typedef struct TypeNames {
  TamisType type;
  const char* name;
  const char* declared;
  const char* sql;
  Oid pg_types[5];  // types that compare alike come first, then 0, then types that only hold it
} TypeNames;

static const TypeNames kTypes[] = {
    {kTamisTextType, "text", "TEXT", "text", {TEXTOID, VARCHAROID}},
    {kTamisBytes, "bytes", "BLOB", "bytea", {BYTEAOID}},
    {kTamisInt64, "int64", "INTEGER", "bigint", {INT8OID, INT4OID, INT2OID, 0, NUMERICOID}},
    {kTamisDouble, "double", "REAL", "double precision", {FLOAT8OID, 0, FLOAT4OID}},
    {kTamisBool, "bool", "BOOLEAN", "boolean", {BOOLOID}},
    {kTamisTimestamp, "timestamp", "TIMESTAMP TEXT", "timestamp with time zone", {TIMESTAMPTZOID}},
    {kTamisDecimal, "decimal", "DECIMAL", "numeric", {NUMERICOID}},
};

static const TypeNames* NamesOf(TamisType type) {
  for (int i = 0; i < lengthof(kTypes); ++i) {
    if (kTypes[i].type == type) return &kTypes[i];
  }
  return NULL;
}

static TamisType TypeOf(const char* name) {
  for (int i = 0; i < lengthof(kTypes); ++i) {
    if (name != NULL && strcmp(kTypes[i].name, name) == 0) return kTypes[i].type;
  }
  return kTamisOther;
}

const char* TamisTypeName(TamisType type) { return NamesOf(type)->name; }
const char* TamisDeclaredType(TamisType type) { return NamesOf(type)->declared; }
const char* TamisSqlType(TamisType type) { return NamesOf(type)->sql; }

bool TamisIsSame(Oid pg_type, TamisType type) {
  const TypeNames* names = NamesOf(type);
  for (int i = 0; names != NULL && i < lengthof(names->pg_types); ++i) {
    if (names->pg_types[i] == InvalidOid) return false;
    if (names->pg_types[i] == pg_type) return true;
  }
  return false;
}

// A text can be read as any type that has a text form.
bool TamisCanHold(Oid pg_type, TamisType type) {
  const TypeNames* names = NamesOf(type);
  if (names == NULL) return false;
  if (type == kTamisTextType) return true;
  for (int i = 0; i < lengthof(names->pg_types); ++i) {
    if (names->pg_types[i] != InvalidOid && names->pg_types[i] == pg_type) return true;
  }
  return false;
}

void TamisAppendName(StringInfo out, const char* name) {
  appendStringInfoChar(out, '`');
  for (; *name != '\0'; ++name) {
    if (*name == '`') appendStringInfoChar(out, '`');
    appendStringInfoChar(out, *name);
  }
  appendStringInfoChar(out, '`');
}

// ---- Descriptions

int TamisFindColumn(const TamisTable* table, const char* name) {
  for (int i = 0; i < table->column_count; ++i) {
    if (strcmp(table->columns[i].name, name) == 0) return i;
  }
  return -1;
}

static TamisOrder ReadOrder(const TamisTable* table, const JsonbValue* names) {
  TamisOrder order = {.has_all_rows = true};
  JsonbValue* elements = TamisElements(names, &order.count);
  order.columns = palloc(sizeof(int) * Max(order.count, 1));
  for (int i = 0; i < order.count; ++i) {
    order.columns[i] = TamisFindColumn(table, TamisTextOf(&elements[i]));
    if (order.columns[i] < 0) order.count = i;
  }
  return order;
}

static TamisTable* ReadTable(JsonbContainer* document) {
  TamisTable* table = palloc0(sizeof(TamisTable));
  table->name = TamisTextMember(document, "name");
  JsonbValue* columns = TamisElements(TamisMember(document, "columns"), &table->column_count);
  if (table->name == NULL || columns == NULL) return NULL;
  table->columns = palloc0(sizeof(TamisColumn) * Max(table->column_count, 1));
  for (int i = 0; i < table->column_count; ++i) {
    JsonbContainer* column = columns[i].type == jbvBinary ? columns[i].val.binary.data : NULL;
    if (column == NULL) return NULL;
    table->columns[i].name = TamisTextMember(column, "name");
    table->columns[i].type = TypeOf(TamisTextMember(column, "type"));
    table->columns[i].nullable = TamisTrueMember(column, "nullable");
    table->columns[i].computed = TamisMember(column, "computed") != NULL;
    if (table->columns[i].name == NULL) return NULL;
  }
  int index_count = 0;
  JsonbValue* indexes = TamisElements(TamisMember(document, "indexes"), &index_count);
  table->orders = palloc0(sizeof(TamisOrder) * (index_count + 1));
  table->orders[table->order_count++] = ReadOrder(table, TamisMember(document, "key"));
  for (int i = 0; i < index_count; ++i) {
    if (indexes[i].type != jbvBinary) continue;
    JsonbContainer* index = indexes[i].val.binary.data;
    const char* nulls = TamisTextMember(index, "nulls");
    TamisOrder order = ReadOrder(table, TamisMember(index, "columns"));
    order.has_all_rows =
        TamisMember(index, "where") == NULL && (nulls == NULL || strcmp(nulls, "skip") != 0);
    table->orders[table->order_count++] = order;
  }
  table->id = (uint32)TamisNumberMember(document, "id", 0);
  table->estimated_rows = TamisNumberMember(document, "estimated_rows", 1000);
  return table;
}

static void RaiseNoDescription(const TamisSettings* settings) {
  ereport(ERROR, (errcode(ERRCODE_FDW_ERROR),
                  errmsg("server \"%s\" does not describe its tables as tamis serve does",
                         settings->server_name),
                  errhint("Look at the option \"url\": %s.", settings->url)));
}

static Jsonb* AskForDocument(const TamisSettings* settings, const char* path) {
  TamisRequest* request = TamisBegin(settings, (TamisCall){.path = path});
  char* answer = TamisWholeAnswer(request);
  TamisEnd(request);
  Jsonb* document = TamisReadDocument(answer);
  if (document == NULL) RaiseNoDescription(settings);
  return document;
}

static bool IsOf(const KeptTable* kept, const TamisSettings* settings, const char* name) {
  const bool same_token = kept->token == NULL || settings->token == NULL
                              ? kept->token == settings->token
                              : strcmp(kept->token, settings->token) == 0;
  return same_token && kept->user_id == settings->user_id &&
         strcmp(kept->url, settings->url) == 0 && strcmp(kept->table->name, name) == 0;
}

static char* PathOfTable(const char* name) {
  StringInfoData path;
  initStringInfo(&path);
  appendStringInfoString(&path, "/v1/tables/");
  for (const unsigned char* c = (const unsigned char*)name; *c != '\0'; ++c) {
    if (isalnum(*c) || *c == '_' || *c == '-') {
      appendStringInfoChar(&path, (char)*c);
    } else {
      appendStringInfo(&path, "%%%02X", *c);
    }
  }
  return path.data;
}

static KeptTable* Keep(const TamisSettings* settings, const char* name) {
  Jsonb* document = AskForDocument(settings, PathOfTable(name));
  MemoryContext context =
      AllocSetContextCreate(CurrentMemoryContext, "tamis table", ALLOCSET_SMALL_SIZES);
  const MemoryContext before = MemoryContextSwitchTo(context);
  KeptTable* kept = palloc0(sizeof(KeptTable));
  kept->context = context;
  kept->url = pstrdup(settings->url);
  kept->token = settings->token == NULL ? NULL : pstrdup(settings->token);
  kept->user_id = settings->user_id;
  kept->since = GetCurrentTimestamp();
  kept->table = ReadTable(&document->root);
  MemoryContextSwitchTo(before);
  if (kept->table == NULL) RaiseNoDescription(settings);
  MemoryContextSetParent(context, CacheMemoryContext);
  MemoryContextSwitchTo(CacheMemoryContext);
  kept_tables = lappend(kept_tables, kept);
  MemoryContextSwitchTo(before);
  return kept;
}

// A description that is replaced lives as long as the message whose statement may still use it.
static void Forget(KeptTable* kept) {
  kept_tables = list_delete_ptr(kept_tables, kept);
  MemoryContextSetParent(kept->context, MessageContext != NULL ? MessageContext : TopMemoryContext);
}

void TamisForgetTables(void) {
  while (kept_tables != NIL) Forget(linitial(kept_tables));
}

const TamisTable* TamisFindTable(const TamisSettings* settings, const char* name) {
  ListCell* cell;
  foreach (cell, kept_tables) {
    KeptTable* kept = lfirst(cell);
    if (!IsOf(kept, settings, name)) continue;
    if (!TimestampDifferenceExceeds(kept->since, GetCurrentTimestamp(), KEPT_SECONDS * 1000)) {
      return kept->table;
    }
    Forget(kept);
    break;
  }
  return Keep(settings, name)->table;
}

List* TamisListTables(const TamisSettings* settings) {
  Jsonb* document = AskForDocument(settings, "/v1/tables");
  JsonbValue* list = TamisMember(&document->root, "tables");
  int count = 0;
  JsonbValue* elements = TamisElements(list, &count);
  List* tables = NIL;
  if (list == NULL) RaiseNoDescription(settings);
  for (int i = 0; i < count; ++i) {
    TamisTable* table =
        elements[i].type == jbvBinary ? ReadTable(elements[i].val.binary.data) : NULL;
    if (table == NULL) RaiseNoDescription(settings);
    tables = lappend(tables, table);
  }
  return tables;
}

int TamisColumnOfAttribute(const TamisTable* table, Oid table_id, int attribute) {
  const char* name = TamisColumnName(table_id, attribute);
  const int column = TamisFindColumn(table, name);
  if (column < 0) {
    TamisForgetTables();
    ereport(
        ERROR,
        (errcode(ERRCODE_FDW_COLUMN_NAME_NOT_FOUND),
         errmsg("foreign table \"%s\" has a column \"%s\", and table \"%s\" of the store has not",
                get_rel_name(table_id), name, table->name),
         errhint("ALTER FOREIGN TABLE ... DROP COLUMN, or ALTER COLUMN ... OPTIONS (column_name "
                 "'...').")));
  }
  Oid type = InvalidOid;
  int32 typmod = -1;
  Oid collation = InvalidOid;
  get_atttypetypmodcoll(table_id, (AttrNumber)attribute, &type, &typmod, &collation);
  if (!TamisCanHold(getBaseType(type), table->columns[column].type)) {
    if (table->columns[column].type == kTamisOther) {
      ereport(ERROR, (errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
                      errmsg("column \"%s\" of table \"%s\" has a type that this version of "
                             "tamis_fdw does not know",
                             name, table->name)));
    }
    ereport(ERROR,
            (errcode(ERRCODE_FDW_INVALID_DATA_TYPE),
             errmsg("column \"%s\" of foreign table \"%s\" is %s, which cannot hold the %s of "
                    "the store",
                    get_attname(table_id, (AttrNumber)attribute, false), get_rel_name(table_id),
                    format_type_be(type), TamisTypeName(table->columns[column].type)),
             errhint("Declare it as %s.", TamisSqlType(table->columns[column].type))));
  }
  return column;
}
