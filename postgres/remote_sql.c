#include "remote_sql.h"

#include "access/transam.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"

#include "values.h"

// A comparison in a template: kBegin column kMiddle comparison kMiddle parameter kEnd.
#define BEGIN_MARK '\x01'
#define MIDDLE_MARK '\x02'
#define END_MARK '\x03'
// A parameter alone, as LIMIT has it: kValue parameter kEnd.
#define VALUE_MARK '\x04'
// The server permits expressions of depth 200, and SQLite 32766 parameters. Longer arrays of values
// that JSON holds exactly are one parameter.
#define MAX_TERMS 150
#define MAX_VALUES 30000
#define MAX_MARKS 1000
#define ALL_MARKS "\x01\x02\x03\x04"

// ---- What can be sent

static Node* WithoutRelabel(Node* node) {
  while (node != NULL && IsA(node, RelabelType)) node = (Node*)((RelabelType*)node)->arg;
  return node;
}

int TamisColumnOf(const TamisSql* sql, Node* expression) {
  Var* var = (Var*)WithoutRelabel(expression);
  if (var == NULL || !IsA(var, Var) || var->varno != sql->rtindex || var->varlevelsup != 0 ||
      var->varattno <= 0 || var->vartypmod != -1) {
    return -1;
  }
  // A varchar is a text here; other relabelling changes what is compared.
  if ((Node*)var != expression && exprType(expression) != TEXTOID) return -1;
  const int column = TamisFindColumn(sql->table, TamisColumnName(sql->table_id, var->varattno));
  if (column < 0 || !TamisIsSame(var->vartype, sql->table->columns[column].type)) return -1;
  // No store has such a name, and a template cannot have it.
  if (strpbrk(sql->table->columns[column].name, ALL_MARKS) != NULL) return -1;
  return column;
}

static bool IsText(const TamisSql* sql, int column) {
  return sql->table->columns[column].type == kTamisTextType;
}

static bool IsCCollation(Oid collation) {
#if PG_VERSION_NUM >= 180000
  return OidIsValid(collation) && pg_newlocale_from_collation(collation)->collate_is_c;
#else
  return OidIsValid(collation) && lc_collate_is_c(collation);
#endif
}

static bool IsDeterministic(Oid collation) {
  return OidIsValid(collation) && get_collation_isdeterministic(collation);
}

// Texts that PostgreSQL shows as NULL are texts to the server.
bool TamisOrdersAlike(const TamisSql* sql, int column, Oid collation) {
  switch (sql->table->columns[column].type) {
    case kTamisTextType:
      return IsCCollation(collation) && !sql->invalid_text_is_null;
    case kTamisTimestamp:
    case kTamisDecimal:
    case kTamisOther:
      return false;
    default:
      return true;
  }
}

bool TamisGroupsAlike(const TamisSql* sql, int column, Oid collation) {
  if (IsText(sql, column)) return IsDeterministic(collation) && !sql->invalid_text_is_null;
  return sql->table->columns[column].type != kTamisOther;
}

static bool HasForbidden(Node* node, void* context) {
  if (node == NULL) return false;
  switch (nodeTag(node)) {
    case T_Aggref:
    case T_GroupingFunc:
    case T_WindowFunc:
    case T_SubLink:
    case T_SubPlan:
    case T_AlternativeSubPlan:
    case T_CurrentOfExpr:
    case T_NextValueExpr:
      return true;
    default:
      return expression_tree_walker(node, HasForbidden, context);
  }
}

bool TamisIsParameter(const TamisSql* sql, Node* expression) {
  return !bms_overlap(pull_varnos(sql->root, expression), sql->relids) &&
         !contain_volatile_functions(expression) && !HasForbidden(expression, NULL);
}

int TamisAddParameter(TamisSql* sql, Expr* expression, TamisType type) {
  ListCell* cell;
  int number = 0;
  foreach (cell, sql->parameters) {
    if (equal(lfirst(cell), expression) && list_nth_int(sql->types, number) == (int)type) {
      return number;
    }
    ++number;
  }
  sql->parameters = lappend(sql->parameters, expression);
  sql->types = lappend_int(sql->types, type);
  return number;
}

static void AppendColumn(const TamisSql* sql, int column, StringInfo out) {
  TamisAppendName(out, sql->table->columns[column].name);
}

static void AppendComparison(const TamisSql* sql, int column, const char* comparison, int parameter,
                             StringInfo out) {
  appendStringInfoChar(out, BEGIN_MARK);
  AppendColumn(sql, column, out);
  appendStringInfo(out, "%c%s%c%d%c", MIDDLE_MARK, comparison, MIDDLE_MARK, parameter, END_MARK);
}

void TamisAppendLimit(int parameter, StringInfo out) {
  appendStringInfo(out, "%c%d%c", VALUE_MARK, parameter, END_MARK);
}

// ---- Conditions

// The name of a comparison of PostgreSQL's own; NULL for other operators.
static const char* ComparisonName(Oid comparison) {
  static const char* const kNames[] = {"=", "<>", "<", "<=", ">", ">="};
  if (comparison >= FirstGenbkiObjectId) return NULL;
  const char* name = get_opname(comparison);
  for (int i = 0; name != NULL && i < lengthof(kNames); ++i) {
    if (strcmp(name, kNames[i]) == 0) return kNames[i];
  }
  return NULL;
}

static const char* Mirrored(const char* comparison) {
  switch (comparison[0]) {
    case '<':
      return comparison[1] == '>' ? "<>" : comparison[1] == '=' ? ">=" : ">";
    case '>':
      return comparison[1] == '=' ? "<=" : "<";
    default:
      return comparison;
  }
}

// Whether the server compares the column by the comparison as PostgreSQL does.
static bool ComparesAlike(const TamisSql* sql, int column, const char* comparison, Oid collation,
                          bool is_inside) {
  const bool is_equality = strcmp(comparison, "=") == 0;
  const bool is_range = comparison[0] != '=' && strcmp(comparison, "<>") != 0;
  switch (sql->table->columns[column].type) {
    case kTamisTextType:
      if (!is_equality && sql->invalid_text_is_null) return false;
      if (is_inside && sql->invalid_text_is_null) return false;
      return is_range ? IsCCollation(collation) : IsDeterministic(collation);
    case kTamisDecimal:
      return !is_inside && (is_equality || is_range);
    case kTamisOther:
      return false;
    default:
      return true;
  }
}

// LIKE 'abc%' and ^@ 'abc': the range of the texts that begin with abc. Its bounds are constants.
static bool AppendPrefixRange(TamisSql* sql, int column, const char* prefix, StringInfo out) {
  const int size = (int)strlen(prefix);
  if (size == 0) return false;
  // The last character that has a next one takes it; what follows is cut off.
  const char* end = NULL;
  int keep = size;
  while (keep > 0) {
    int begin = keep - 1;
    while (begin > 0 && (prefix[begin] & 0xC0) == 0x80) --begin;
    pg_wchar character = utf8_to_unicode((const unsigned char*)prefix + begin);
    keep = begin;
    if (character >= 0x10FFFF) continue;
    character = character == 0xD7FF ? 0xE000 : character + 1;
    unsigned char bytes[5] = {0};
    unicode_to_utf8(character, bytes);
    end = psprintf("%.*s%s", begin, prefix, (char*)bytes);
    break;
  }
  Const* low =
      makeConst(TEXTOID, -1, C_COLLATION_OID, -1, CStringGetTextDatum(prefix), false, false);
  AppendComparison(sql, column, ">=", TamisAddParameter(sql, (Expr*)low, kTamisTextType), out);
  if (end != NULL) {
    Const* high =
        makeConst(TEXTOID, -1, C_COLLATION_OID, -1, CStringGetTextDatum(end), false, false);
    appendStringInfoString(out, " AND ");
    ++sql->terms;
    AppendComparison(sql, column, "<", TamisAddParameter(sql, (Expr*)high, kTamisTextType), out);
  }
  return true;
}

// The literal text before the first wildcard of a LIKE pattern.
static char* PrefixOfPattern(const char* pattern) {
  StringInfoData prefix;
  initStringInfo(&prefix);
  for (; *pattern != '\0' && *pattern != '%' && *pattern != '_'; ++pattern) {
    if (*pattern == '\\' && *++pattern == '\0') break;
    appendStringInfoChar(&prefix, *pattern);
  }
  return prefix.data;
}

static TamisReach DeparsePattern(TamisSql* sql, OpExpr* expression, StringInfo out) {
  const int column = TamisColumnOf(sql, linitial(expression->args));
  const Const* pattern = (Const*)WithoutRelabel(lsecond(expression->args));
  if (column < 0 || !IsText(sql, column) || !IsDeterministic(expression->inputcollid) ||
      !IsA(pattern, Const) || pattern->constisnull || pattern->consttype != TEXTOID) {
    return kTamisNotAtAll;
  }
  char* prefix = TextDatumGetCString(pattern->constvalue);
  if (expression->opfuncid == F_TEXTLIKE) prefix = PrefixOfPattern(prefix);
  return AppendPrefixRange(sql, column, prefix, out) ? kTamisMore : kTamisNotAtAll;
}

// Whether the value, or an element of the array, is known now to be a time that has no place among
// those that conditions find.
static bool IsUnordered(Node* value, TamisType type) {
  const Const* constant = (const Const*)value;
  StringInfoData ignored;
  Datum* elements = NULL;
  bool* nulls = NULL;
  int count = 0;
  if (type != kTamisTimestamp || !IsA(value, Const) || constant->constisnull) return false;
  initStringInfo(&ignored);
  if (constant->consttype == TIMESTAMPTZOID) {
    return TamisAppendParameter(&ignored, type, TIMESTAMPTZOID, constant->constvalue) ==
           kTamisUnordered;
  }
  deconstruct_array(DatumGetArrayTypeP(constant->constvalue), TIMESTAMPTZOID, sizeof(TimestampTz),
                    FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements, &nulls, &count);
  for (int i = 0; i < count; ++i) {
    if (!nulls[i] &&
        TamisAppendParameter(&ignored, type, TIMESTAMPTZOID, elements[i]) == kTamisUnordered) {
      return true;
    }
  }
  return false;
}

static TamisReach DeparseOperator(TamisSql* sql, OpExpr* expression, bool is_inside,
                                  StringInfo out) {
  if (list_length(expression->args) != 2) return kTamisNotAtAll;
  set_opfuncid(expression);
  if (!is_inside && (expression->opfuncid == F_TEXTLIKE || expression->opfuncid == F_STARTS_WITH)) {
    return DeparsePattern(sql, expression, out);
  }
  const char* comparison = ComparisonName(expression->opno);
  if (comparison == NULL) return kTamisNotAtAll;
  Node* value = lsecond(expression->args);
  int column = TamisColumnOf(sql, linitial(expression->args));
  if (column < 0) {
    value = linitial(expression->args);
    column = TamisColumnOf(sql, lsecond(expression->args));
    comparison = Mirrored(comparison);
  }
  if (column < 0 || !ComparesAlike(sql, column, comparison, expression->inputcollid, is_inside) ||
      !TamisIsSame(exprType(value), sql->table->columns[column].type) ||
      !TamisIsParameter(sql, value) || IsUnordered(value, sql->table->columns[column].type)) {
    return kTamisNotAtAll;
  }
  const int parameter = TamisAddParameter(sql, (Expr*)value, sql->table->columns[column].type);
  AppendComparison(sql, column, comparison, parameter, out);
  return kTamisExactly;
}

// Whether JSON holds all values of the type, and SQLite reads them back exactly.
static bool IsJson(TamisType type) {
  return type == kTamisInt64 || type == kTamisBool || type == kTamisTextType ||
         type == kTamisTimestamp;
}

static TamisReach DeparseArray(TamisSql* sql, ScalarArrayOpExpr* expression, bool is_inside,
                               StringInfo out) {
  const char* comparison = ComparisonName(expression->opno);
  const int column = TamisColumnOf(sql, linitial(expression->args));
  Node* array = lsecond(expression->args);
  if (comparison == NULL || strcmp(comparison, expression->useOr ? "=" : "<>") != 0 || column < 0) {
    return kTamisNotAtAll;
  }
  const TamisType type = sql->table->columns[column].type;
  if (type == kTamisDecimal ||
      !ComparesAlike(sql, column, comparison, expression->inputcollid, is_inside) ||
      !TamisIsSame(get_element_type(exprType(array)), type) || !TamisIsParameter(sql, array) ||
      IsUnordered(array, type)) {
    return kTamisNotAtAll;
  }
  if (IsA(array, Const) && !((Const*)array)->constisnull) {
    const ArrayType* values = DatumGetArrayTypeP(((Const*)array)->constvalue);
    const int count = ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values));
    sql->values += count > MAX_MARKS && IsJson(type) ? 1 : count;
    if (sql->values > MAX_VALUES) return kTamisNotAtAll;
  }
  AppendComparison(sql, column, expression->useOr ? "IN" : "NOT IN",
                   TamisAddParameter(sql, (Expr*)array, type), out);
  return kTamisExactly;
}

static TamisReach DeparseNullTest(TamisSql* sql, NullTest* test, StringInfo out) {
  const int column = TamisColumnOf(sql, (Node*)test->arg);
  if (column < 0 || test->argisrow || (IsText(sql, column) && sql->invalid_text_is_null)) {
    return kTamisNotAtAll;
  }
  AppendColumn(sql, column, out);
  appendStringInfoString(out, test->nulltesttype == IS_NULL ? " IS NULL" : " IS NOT NULL");
  return kTamisExactly;
}

static bool IsBoolColumn(const TamisSql* sql, Node* node, int* column) {
  *column = TamisColumnOf(sql, node);
  return *column >= 0 && sql->table->columns[*column].type == kTamisBool;
}

static TamisReach DeparseBooleanTest(TamisSql* sql, BooleanTest* test, StringInfo out) {
  static const char* const kTests[] = {" IS 1",     " IS NOT 1", " IS 0",
                                       " IS NOT 0", " IS NULL",  " IS NOT NULL"};
  int column = -1;
  if (!IsBoolColumn(sql, (Node*)test->arg, &column)) return kTamisNotAtAll;
  AppendColumn(sql, column, out);
  appendStringInfoString(out, kTests[test->booltesttype]);
  return kTamisExactly;
}

static TamisReach Deparse(TamisSql* sql, Node* node, bool is_inside, StringInfo out);

static TamisReach DeparseBoolean(TamisSql* sql, BoolExpr* expression, bool is_inside,
                                 StringInfo out) {
  const bool is_and = expression->boolop == AND_EXPR;
  TamisReach reach = kTamisExactly;
  ListCell* cell;
  if (expression->boolop == NOT_EXPR) {
    appendStringInfoString(out, "NOT (");
    if (Deparse(sql, linitial(expression->args), true, out) != kTamisExactly) return kTamisNotAtAll;
    appendStringInfoChar(out, ')');
    return kTamisExactly;
  }
  appendStringInfoChar(out, '(');
  foreach (cell, expression->args) {
    if (cell != list_head(expression->args)) appendStringInfoString(out, is_and ? " AND " : " OR ");
    const TamisReach one = Deparse(sql, lfirst(cell), is_inside || !is_and, out);
    if (one == kTamisNotAtAll) return kTamisNotAtAll;
    reach = Min(reach, one);
  }
  appendStringInfoChar(out, ')');
  return reach;
}

static TamisReach Deparse(TamisSql* sql, Node* node, bool is_inside, StringInfo out) {
  int column = -1;
  if (++sql->terms > MAX_TERMS) return kTamisNotAtAll;
  switch (nodeTag(node)) {
    case T_OpExpr:
      return DeparseOperator(sql, (OpExpr*)node, is_inside, out);
    case T_ScalarArrayOpExpr:
      return DeparseArray(sql, (ScalarArrayOpExpr*)node, is_inside, out);
    case T_NullTest:
      return DeparseNullTest(sql, (NullTest*)node, out);
    case T_BooleanTest:
      return DeparseBooleanTest(sql, (BooleanTest*)node, out);
    case T_BoolExpr:
      return DeparseBoolean(sql, (BoolExpr*)node, is_inside, out);
    case T_Var:
      if (!IsBoolColumn(sql, node, &column)) return kTamisNotAtAll;
      AppendColumn(sql, column, out);
      appendStringInfoString(out, " = 1");
      return kTamisExactly;
    default:
      return kTamisNotAtAll;
  }
}

TamisReach TamisDeparseCondition(TamisSql* sql, Expr* condition, StringInfo out) {
  const int length = out->len;
  const int parameters = list_length(sql->parameters);
  const int terms = sql->terms;
  const int values = sql->values;
  const TamisReach reach = Deparse(sql, (Node*)condition, false, out);
  if (reach == kTamisNotAtAll) {
    out->len = length;
    out->data[length] = '\0';
    sql->terms = terms;
    sql->values = values;
    sql->parameters = list_truncate(sql->parameters, parameters);
    sql->types = list_truncate(sql->types, parameters);
  }
  return reach;
}

// ---- Templates

static void AppendPlaceholder(StringInfo out, StringInfo parameters, const char* json) {
  if (parameters->len > 0) appendStringInfoChar(parameters, ',');
  appendStringInfoString(parameters, json);
  appendStringInfoChar(out, '?');
}

// The comparison's result for all values of the column: true, false, and NULL for NULL.
static void AppendConstant(StringInfo out, const char* column, bool truth) {
  appendStringInfo(out, "(CASE WHEN %s IS NOT NULL THEN %d END)", column, truth ? 1 : 0);
}

// Constants of this kind are compared here; of a parameter it is known too late.
static void RefuseUnordered(const char* column) {
  ereport(ERROR, (errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
                  errmsg("cannot compare column %s of the store with a parameter outside of the "
                         "years 0 to 9999",
                         column),
                  errhint("'infinity' is above all times, '-infinity' below.")));
}

static void ExpandOneValue(const char* column, const char* comparison,
                           const TamisArgument* argument, StringInfo out, StringInfo parameters) {
  StringInfoData json;
  initStringInfo(&json);
  TamisPlace place = kTamisInside;
  if (argument->is_null) {
    appendStringInfoString(&json, "null");
  } else {
    place = TamisAppendParameter(&json, argument->type, argument->pg_type, argument->value);
  }
  if (place == kTamisUnordered) RefuseUnordered(column);
  if (place == kTamisInside) {
    appendStringInfo(out, "%s %s ", column, comparison);
    AppendPlaceholder(out, parameters, json.data);
  } else {
    AppendConstant(
        out, column,
        strcmp(comparison, "<>") == 0 || comparison[0] == (place == kTamisAbove ? '<' : '>'));
  }
  pfree(json.data);
}

// Appends the values as a list of marks, or as one JSON array.
static void AppendValues(StringInfo out, StringInfo parameters, List* values, bool is_json) {
  StringInfoData array;
  ListCell* value;
  const char* separator = "";
  if (is_json) initStringInfo(&array);
  foreach (value, values) {
    if (is_json) {
      appendStringInfo(&array, "%s%s", separator, (char*)lfirst(value));
    } else {
      appendStringInfoString(out, separator);
      AppendPlaceholder(out, parameters, lfirst(value));
    }
    separator = ", ";
  }
  if (is_json) {
    StringInfoData text;
    initStringInfo(&text);
    TamisAppendText(&text, psprintf("[%s]", array.data));
    appendStringInfoString(out, "SELECT value FROM json_each(");
    AppendPlaceholder(out, parameters, text.data);
    appendStringInfoChar(out, ')');
    pfree(text.data);
    pfree(array.data);
  }
}

static void ExpandArray(const char* column, const char* comparison, const TamisArgument* argument,
                        StringInfo out, StringInfo parameters) {
  if (argument->is_null) {
    appendStringInfoString(out, "NULL");
    return;
  }
  ArrayType* array = DatumGetArrayTypeP(argument->value);
  int16 size = 0;
  bool by_value = false;
  char align = 0;
  Datum* elements = NULL;
  bool* nulls = NULL;
  int count = 0;
  List* values = NIL;
  get_typlenbyvalalign(ARR_ELEMTYPE(array), &size, &by_value, &align);
  deconstruct_array(array, ARR_ELEMTYPE(array), size, by_value, align, &elements, &nulls, &count);
  for (int i = 0; i < count; ++i) {
    StringInfoData json;
    initStringInfo(&json);
    // No row equals a value that the store cannot have.
    const TamisPlace place =
        nulls[i] ? kTamisInside
                 : TamisAppendParameter(&json, argument->type, ARR_ELEMTYPE(array), elements[i]);
    if (place == kTamisUnordered) RefuseUnordered(column);
    if (place == kTamisInside) values = lappend(values, nulls[i] ? "null" : json.data);
  }
  if (count > 0 && values == NIL) {
    // An empty list is no NULL for NULL.
    AppendConstant(out, column, *comparison == 'N');
    return;
  }
  appendStringInfo(out, "%s %s (", column, comparison);
  AppendValues(out, parameters, values, list_length(values) > MAX_MARKS && IsJson(argument->type));
  appendStringInfoChar(out, ')');
}

// SQLite takes a negative LIMIT for none and a negative OFFSET for 0, which NULL means here.
static void ExpandLimit(const TamisArgument* argument, StringInfo out) {
  const int64 rows = argument->is_null ? -1 : DatumGetInt64(argument->value);
  if (!argument->is_null && rows < 0) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_ROW_COUNT_IN_LIMIT_CLAUSE),
                    errmsg("LIMIT and OFFSET must not be negative")));
  }
  appendStringInfo(out, INT64_FORMAT, rows);
}

// For people: the constant, or "?".
static void AppendForPeople(List* expressions, List* types, int number, StringInfo out) {
  const Const* constant = list_nth(expressions, number);
  Oid function = InvalidOid;
  bool is_varlena = false;
  if (!IsA(constant, Const)) {
    appendStringInfoChar(out, '?');
    return;
  }
  if (constant->constisnull) {
    appendStringInfoString(out, "NULL");
    return;
  }
  getTypeOutputInfo(constant->consttype, &function, &is_varlena);
  const char* text = OidOutputFunctionCall(function, constant->constvalue);
  const TamisType type = (TamisType)list_nth_int(types, number);
  if (OidIsValid(get_element_type(constant->consttype))) {
    appendStringInfo(out, "(%s)", text);
  } else if (type == kTamisInt64 || type == kTamisDouble || type == kTamisDecimal) {
    appendStringInfoString(out, text);
  } else {
    appendStringInfoString(out, quote_literal_cstr(text));
  }
}

static char* TakeUntil(const char** at, char mark) {
  const char* end = strchr(*at, mark);
  char* text = pnstrdup(*at, end - *at);
  *at = end + 1;
  return text;
}

void TamisExpand(const char* template, const TamisArgument* arguments, List* expressions,
                 List* types, StringInfo out, StringInfo parameters) {
  const char* at = template;
  while (*at != '\0') {
    if (*at == VALUE_MARK) {
      ++at;
      const int number = atoi(TakeUntil(&at, END_MARK));
      if (arguments == NULL) {
        AppendForPeople(expressions, types, number, out);
        continue;
      }
      ExpandLimit(&arguments[number], out);
      continue;
    }
    if (*at != BEGIN_MARK) {
      appendStringInfoChar(out, *at++);
      continue;
    }
    ++at;
    const char* column = TakeUntil(&at, MIDDLE_MARK);
    const char* comparison = TakeUntil(&at, MIDDLE_MARK);
    const int number = atoi(TakeUntil(&at, END_MARK));
    const bool is_array = strstr(comparison, "IN") != NULL;
    if (arguments == NULL) {
      appendStringInfo(out, "%s %s ", column, comparison);
      AppendForPeople(expressions, types, number, out);
    } else if (is_array) {
      ExpandArray(column, comparison, &arguments[number], out, parameters);
    } else {
      ExpandOneValue(column, comparison, &arguments[number], out, parameters);
    }
  }
}
