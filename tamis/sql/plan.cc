#include "tamis/sql/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "tamis/query/index_order.h"
#include "tamis/sql/values.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

using Kind = SqlPlan::Term::Kind;
using Op = Predicate::Op;
using Groups = SearchOptions::Groups;

// sqlite3_vtab_distinct: 1 for GROUP BY, this for DISTINCT, 3 for DISTINCT with ORDER BY.
constexpr int kDistinctInAnyOrder = 2;

bool IsRange(Op op) { return op != Op::kEq; }

// ---- Which constraints go down
//
// A constraint may come from SQLite instead of the statement: a range from LIKE or GLOB, the halves
// of BETWEEN, an IN from an OR. `omit` promises that the search tests the constraint as SQLite
// would, for every operand; SQLite then leaves out its own test, and for a derived constraint that
// of the term it came from. Omitted are comparisons of numbers and bytes, and tests for NULL.
// Constraints on columns shown as text are tested again by SQLite, which knows the affinity of the
// other side.
//
// Not taken at all are <>, IS NOT, IS NOT NULL, LIKE, GLOB and, for the same reason, functions that
// xFindFunction could offer. SQLite (3.40) hands those to the
// left table of a LEFT JOIN too, from an ON clause that must not narrow it; and LIKE and GLOB are
// functions that an application may replace. No lookup is lost: few indexes help with the former,
// and for its own LIKE and GLOB SQLite derives a range.

// SQLite compares these as text or, with an expression that is a number, as numbers; a virtual
// table is not told which.
bool IsShownAsText(const TableSchema& schema, const SqlPlan::Term& term) {
  if (!term.OnColumn()) return false;
  const Type type = schema.columns[term.column].type;
  return type == Type::kText || type == Type::kTimestamp;
}

bool IsNumber(sqlite3_value* value) {
  const int type = sqlite3_value_type(value);
  return type == SQLITE_INTEGER || type == SQLITE_FLOAT;
}

// The other side when it is a literal or a bound parameter, and a text.
std::optional<std::string> KnownText(sqlite3_index_info* info, int i) {
  sqlite3_value* right = nullptr;
  if (sqlite3_vtab_rhs_value(info, i, &right) != SQLITE_OK || right == nullptr ||
      sqlite3_value_type(right) != SQLITE_TEXT) {
    return std::nullopt;
  }
  return FromSqlite(right).str();
}

std::optional<Op> OpOf(unsigned char constraint) {
  switch (constraint) {
    case SQLITE_INDEX_CONSTRAINT_EQ:
    case SQLITE_INDEX_CONSTRAINT_IS:
      return Op::kEq;
    case SQLITE_INDEX_CONSTRAINT_LT:
      return Op::kLt;
    case SQLITE_INDEX_CONSTRAINT_LE:
      return Op::kLe;
    case SQLITE_INDEX_CONSTRAINT_GT:
      return Op::kGt;
    case SQLITE_INDEX_CONSTRAINT_GE:
      return Op::kGe;
    default:
      return std::nullopt;
  }
}

// The column that has the other one's text in lower case, if there is one.
std::optional<uint32_t> FindLower(const TableSchema& schema, uint32_t column) {
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    const auto& expression = schema.columns[i].expression;
    if (expression.has_value() && expression->function == Expression::Function::kLower &&
        expression->source == column && !schema.columns[i].is_dropped()) {
      return i;
    }
  }
  return std::nullopt;
}

// A comparison of a column that is shown as text, by the collation that SQLite uses for it. Times
// are shown without letters, so that NOCASE orders them as BINARY does.
std::optional<SqlPlan::Term> TermOfText(const TableSchema& schema, sqlite3_index_info* info, int i,
                                        const SqlPlan::Term& term) {
  const std::string_view collation = sqlite3_vtab_collation(info, i);
  const bool time = schema.columns[term.column].type == Type::kTimestamp;
  if (collation == "BINARY" || (time && collation == "NOCASE")) return term;
  if (collation != "NOCASE") return std::nullopt;
  const auto lower = FindLower(schema, term.column);
  if (lower.has_value() && term.kind == Kind::kCompare) {
    return SqlPlan::Term{.kind = Kind::kLower, .op = term.op, .column = *lower};
  }
  if (!IsRange(term.op)) return std::nullopt;
  const auto text = KnownText(info, i);
  if (!text || !NoCaseRange(term.column, term.op, *text)) return std::nullopt;
  return SqlPlan::Term{.kind = Kind::kNoCase, .op = term.op, .column = term.column};
}

std::optional<SqlPlan::Term> TermFor(const TableSchema& schema, sqlite3_index_info* info, int i) {
  const auto& constraint = info->aConstraint[i];
  if (constraint.op == SQLITE_INDEX_CONSTRAINT_LIMIT) return SqlPlan::Term{.kind = Kind::kLimit};
  if (constraint.op == SQLITE_INDEX_CONSTRAINT_OFFSET) return SqlPlan::Term{.kind = Kind::kOffset};
  if (constraint.iColumn < 0) return std::nullopt;
  const auto column = static_cast<uint32_t>(constraint.iColumn);
  if (column >= schema.columns.size()) {
    if (constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) return std::nullopt;
    return SqlPlan::Term{.kind = Kind::kKey};
  }
  if (constraint.op == SQLITE_INDEX_CONSTRAINT_ISNULL) {
    return SqlPlan::Term{.kind = Kind::kIsNull, .column = column};
  }
  const auto op = OpOf(constraint.op);
  if (!op) return std::nullopt;
  const Kind kind = constraint.op == SQLITE_INDEX_CONSTRAINT_IS ? Kind::kIs : Kind::kCompare;
  const SqlPlan::Term term{.kind = kind, .op = *op, .column = column};
  if (IsShownAsText(schema, term)) return TermOfText(schema, info, i, term);
  // SQLite derives `n >= 'xy' AND n < 'xz'` from n LIKE 'xy%' and n GLOB 'xy*'. The range is true
  // for other values of a column that is not text than the pattern is, and when both halves are
  // omitted SQLite tests LIKE against the row of NULLs of an outer join.
  if (IsRange(*op)) {
    if (const auto text = KnownText(info, i); text && !NumberOfText(*text)) return std::nullopt;
  }
  return term;
}

// The search tests the constraint as SQLite would.
bool IsExact(const TableSchema& schema, const SqlPlan::Term& term) {
  return term.kind != Kind::kKey && !IsShownAsText(schema, term);
}

bool HasEquality(const SqlPlan& plan, uint32_t column) {
  return std::any_of(plan.terms.begin(), plan.terms.end(), [&](const SqlPlan::Term& term) {
    return term.column == column && ((term.kind == Kind::kCompare && term.op == Op::kEq) ||
                                     term.kind == Kind::kIs || term.kind == Kind::kIsNull);
  });
}

bool HasLowerEquality(const SqlPlan& plan, uint32_t column) {
  return std::ranges::any_of(plan.terms, [&](const SqlPlan::Term& term) {
    return term.column == column && term.kind == Kind::kLower && term.op == Op::kEq;
  });
}

bool HasIn(const SqlPlan& plan, uint32_t column) {
  return std::ranges::any_of(plan.terms, [&](const SqlPlan::Term& term) {
    return term.column == column && term.kind == Kind::kIn;
  });
}

// Whether terms of the plan, whose values are not known yet, may imply the condition of an index.
bool MayImply(const SqlPlan& plan, const TableSchema& schema, const Predicate& condition) {
  std::vector<bool> columns(schema.columns.size());
  condition.AddColumns(&columns);
  for (const SqlPlan::Term& term : plan.terms) {
    if (term.column < columns.size()) columns[term.column] = false;
  }
  return std::ranges::find(columns, true) == columns.end();
}

// Whether a condition may be looked up by the index.
bool MayFind(const TableSchema& schema, const SqlPlan& plan, const IndexSpec& index) {
  return MayImply(plan, schema, index.where) &&
         std::ranges::any_of(plan.terms, [&](const SqlPlan::Term& term) {
           return term.OnColumn() && term.column == index.columns[0] &&
                  !(term.kind == Kind::kIsNull && index.nulls == IndexNulls::kSkip);
         });
}

// Whether every row of the answer has the same value in the column. A text equal to a number may be
// '10' or '010', so that the value on the other side must be known.
bool IsHeld(const TableSchema& schema, const SqlPlan& plan, uint32_t column,
            sqlite3_index_info* info) {
  if (!HasEquality(plan, column)) return false;
  if (!IsShownAsText(schema, {.column = column})) return true;
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (!constraint.usable || constraint.iColumn != static_cast<int>(column)) continue;
    if (constraint.op == SQLITE_INDEX_CONSTRAINT_ISNULL) return true;
    sqlite3_value* right = nullptr;
    if ((constraint.op == SQLITE_INDEX_CONSTRAINT_EQ ||
         constraint.op == SQLITE_INDEX_CONSTRAINT_IS) &&
        sqlite3_vtab_in(info, i, -1) == 0 && sqlite3_vtab_rhs_value(info, i, &right) == SQLITE_OK &&
        right != nullptr && sqlite3_value_type(right) == SQLITE_TEXT &&
        std::strcmp(sqlite3_vtab_collation(info, i), "BINARY") == 0) {
      return true;
    }
  }
  return false;
}

// Whether every column of ORDER BY is held: rows in any order are in this one.
bool IsAnyOrder(const TableSchema& schema, const SqlPlan& plan, sqlite3_index_info* info) {
  for (int i = 0; i < info->nOrderBy; ++i) {
    const int column = info->aOrderBy[i].iColumn;
    if (column < 0 || column >= static_cast<int>(schema.columns.size())) return false;
    if (!IsHeld(schema, plan, static_cast<uint32_t>(column), info)) return false;
  }
  return info->nOrderBy > 0;
}

// Whether ORDER BY asks for what key order, or its reverse, gives: the key columns in one
// direction, those that are held by an equality anywhere, in either direction, or nowhere. A part
// whose bytes are not in the order of its values ends the order, unless it is held.
bool OrderIsKeyOrder(const TableSchema& schema, const SqlPlan& plan, sqlite3_index_info* info,
                     bool descending) {
  size_t next = 0;
  for (int i = 0; i < info->nOrderBy; ++i) {
    const auto& term = info->aOrderBy[i];
    if (term.iColumn < 0) return false;
    const auto column = static_cast<uint32_t>(term.iColumn);
    if (column < schema.columns.size() && IsHeld(schema, plan, column, info)) continue;
    if ((term.desc != 0) != descending) return false;
    while (next < schema.key.size() && schema.key[next] != column &&
           IsHeld(schema, plan, schema.key[next], info)) {
      ++next;
    }
    if (next == schema.key.size() || schema.key[next] != column) return false;
    if (!KeyFormat(schema).IsOrdered(next)) return false;
    ++next;
  }
  return info->nOrderBy > 0;
}

std::vector<OrderTerm> TermsOf(const sqlite3_index_info& info) {
  std::vector<OrderTerm> order;
  for (int i = 0; i < info.nOrderBy; ++i) {
    order.push_back({.column = static_cast<uint32_t>(info.aOrderBy[i].iColumn),
                     .descending = info.aOrderBy[i].desc != 0});
  }
  return order;
}

// The facts live no longer than what they are made of.
ColumnFacts FactsOf(const TableSchema& schema, const SqlPlan& plan, sqlite3_index_info* info) {
  return {.is_held = [&schema, &plan,
                      info](uint32_t column) { return IsHeld(schema, plan, column, info); },
          .is_null =
              [&plan](uint32_t column) {
                return std::ranges::any_of(plan.terms, [&](const SqlPlan::Term& term) {
                  return term.kind == Kind::kIsNull && term.column == column;
                });
              },
          .is_not_null =
              [&plan](uint32_t column) {
                return std::ranges::any_of(plan.terms, [&](const SqlPlan::Term& term) {
                  return term.OnColumn() && term.column == column && term.kind != Kind::kIsNull &&
                         term.kind != Kind::kIs;
                });
              }};
}

bool IsLimited(const sqlite3_index_info& info) {
  return std::any_of(
      info.aConstraint, info.aConstraint + info.nConstraint, [](const auto& constraint) {
        return constraint.usable != 0 && constraint.op == SQLITE_INDEX_CONSTRAINT_LIMIT;
      });
}

// Whether the search should return the rows in key order. Such a search uses an index only if its
// entries come in key order, hence if an equality is on each of its columns. The rows that another
// index finds are sorted by SQLite, except that
// * an equality on the first column of the key leaves few rows to be scanned;
// * a scan for a LIMIT ends early where the index would find the many rows of a range.
bool IsKeyOrder(const TableSchema& schema, const SqlPlan& plan, sqlite3_index_info* info) {
  if (!OrderIsKeyOrder(schema, plan, info, /*descending=*/false)) return false;
  if (std::ranges::any_of(plan.terms,
                          [](const SqlPlan::Term& term) { return term.kind == Kind::kKey; }) ||
      HasEquality(plan, schema.key[0])) {
    return true;
  }
  const auto is_equal = [&](uint32_t column) {
    return HasEquality(plan, column) || HasLowerEquality(plan, column);
  };
  bool is_better = false;  // an index whose entries are in another order
  for (const IndexSpec& index : schema.indexes) {
    if (!MayFind(schema, plan, index)) continue;
    const bool in_key_order = std::ranges::all_of(index.columns, is_equal);
    if (in_key_order && !index.IsPartial()) return true;
    const bool of_range = !is_equal(index.columns[0]) && !HasIn(plan, index.columns[0]);
    is_better = is_better || !(in_key_order || (of_range && IsLimited(*info)));
  }
  return !is_better;
}

// Whether the rows can be read from the last key to the first. Where a condition may be looked up
// by an index, or by keys, SQLite sorts the rows that are found so.
bool IsReverseKeyOrder(const TableSchema& schema, const SqlPlan& plan, const ColumnFacts& facts,
                       sqlite3_index_info* info) {
  if (!OrderIsKeyOrder(schema, plan, info, /*descending=*/true)) return false;
  if (!FindReverseKeyOrder(schema, TermsOf(*info), facts)) return false;
  for (const SqlPlan::Term& term : plan.terms) {
    if (term.kind == Kind::kKey) return false;
    if (!term.OnColumn()) continue;
    const auto begins_with = [&](const IndexSpec& index) {
      return index.columns[0] == term.column;
    };
    if (std::ranges::any_of(schema.indexes, begins_with)) return false;
  }
  // SQLite orders decimals as numbers and texts.
  return std::ranges::none_of(
      schema.key, [&](uint32_t column) { return schema.columns[column].type == Type::kDecimal; });
}

// Whether the search can return the rows in the order that ORDER BY asks for: that of an index
// whose values are in the order that SQLite gives them. Values of a decimal column may be numbers
// or texts, and the texts of times before the year 0 or after 9999 sort in another order than the
// times. A collation or a place of NULL that is not the default is no order that SQLite hands down.
//
// For GROUP BY, and DISTINCT with an order, groups are put into the order; the index is there for
// the case that they are too many. Rows that cannot come as groups are left to SQLite, which sorts
// them quicker than they are read in the order of an index.
void PlanOrder(const TableSchema& schema, sqlite3_index_info* info, SqlPlan* plan) {
  if (info->nOrderBy == 0 || plan->key_order) return;
  const int distinct = sqlite3_vtab_distinct(info);
  if (distinct == kDistinctInAnyOrder) return;
  if (distinct != 0 && plan->groups == Groups::kNone) return;
  const ColumnFacts facts = FactsOf(schema, *plan, info);
  if (distinct == 0 && IsReverseKeyOrder(schema, *plan, facts, info)) {
    plan->order = TermsOf(*info);
    return;
  }
  std::vector<OrderTerm> order;
  plan->sort = SqlPlan::Sort::kNoIndex;
  for (int i = 0; i < info->nOrderBy; ++i) {
    const auto& term = info->aOrderBy[i];
    if (term.iColumn < 0 || term.iColumn >= static_cast<int>(schema.columns.size())) return;
    const auto column = static_cast<uint32_t>(term.iColumn);
    order.push_back({.column = column, .descending = term.desc != 0});
    if (facts.is_held(column)) continue;
    const Type type = schema.columns[column].type;
    if (type == Type::kDecimal) plan->sort = SqlPlan::Sort::kDecimal;
    if (type == Type::kTimestamp) plan->sort = SqlPlan::Sort::kTime;
  }
  if (plan->sort != SqlPlan::Sort::kNoIndex) return;
  if (!FindIndexOrder(schema, order, facts)) return;
  plan->sort = SqlPlan::Sort::kNone;
  plan->order = std::move(order);
}

std::string SortText(SqlPlan::Sort sort) {
  switch (sort) {
    case SqlPlan::Sort::kNone:
      return "";
    case SqlPlan::Sort::kNoIndex:
      return "SQLite sorts the rows, since no index gives the order";
    case SqlPlan::Sort::kDecimal:
      return "SQLite sorts the rows, since it orders a decimal column as numbers and texts";
    case SqlPlan::Sort::kTime:
      return "SQLite sorts the rows, since it orders a timestamp column by its text";
  }
  return "";
}

// ---- Costs
//
// In units of "one row read by a scan". Nothing is known of the values, so that these are guesses;
// they need only be good enough for the order of a join.

constexpr double kSearchCost = 30;  // the requests of one search
constexpr double kLookupCost = 3;   // a row found by index: entry and row
constexpr double kInValues = 5;

double EqualitySelectivity(const SqlPlan& plan, uint32_t column, double equality) {
  double best = 1;
  for (const SqlPlan::Term& term : plan.terms) {
    if (term.column != column) continue;
    switch (term.kind) {
      case Kind::kCompare:
      case Kind::kLower:
        if (term.op == Op::kEq) best = std::min(best, equality);
        break;
      case Kind::kIs:
      case Kind::kIsNull:
        best = std::min(best, equality);
        break;
      case Kind::kIn:
        best = std::min(best, kInValues * equality);
        break;
      default:
        break;
    }
  }
  return best;
}

double RangeSelectivity(const SqlPlan& plan, uint32_t column) {
  double selectivity = 1;
  for (const SqlPlan::Term& term : plan.terms) {
    if (term.column != column) continue;
    if (term.kind == Kind::kNoCase) selectivity *= 0.3;
    if (term.kind == Kind::kLower && IsRange(term.op)) selectivity *= 0.3;
    if (term.kind == Kind::kCompare && IsRange(term.op)) selectivity *= 0.3;
  }
  return selectivity;
}

// The share of the table that a lookup on these columns reads: equalities on leading columns, then
// a range.
double LookupSelectivity(const SqlPlan& plan, const std::vector<uint32_t>& columns,
                         double equality) {
  double selectivity = 1;
  for (const uint32_t column : columns) {
    const double one = EqualitySelectivity(plan, column, equality);
    if (one == 1) return selectivity * RangeSelectivity(plan, column);
    selectivity *= one;
  }
  return selectivity;
}

void EstimateCost(const SqlPlan& plan, const TableSchema& schema, double table_rows,
                  sqlite3_index_info* info) {
  const bool by_name = std::ranges::any_of(
      plan.terms, [](const SqlPlan::Term& term) { return term.kind == Kind::kKey; });
  if (by_name ||
      std::ranges::all_of(schema.key, [&](uint32_t c) { return HasEquality(plan, c); })) {
    info->estimatedCost = kSearchCost / 2;
    info->estimatedRows = 1;
    // From a unique answer SQLite takes the first row and asks for no other: it writes that row
    // alone.
    if (by_name || std::ranges::all_of(schema.key,
                                       [&](uint32_t c) { return IsHeld(schema, plan, c, info); })) {
      info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    }
    return;
  }
  double lookup = LookupSelectivity(plan, schema.key, 0.01);
  for (const IndexSpec& index : schema.indexes) {
    if (!MayImply(plan, schema, index.where)) continue;
    lookup = std::min(lookup, LookupSelectivity(plan, index.columns, 0.001));
  }
  double rows = table_rows * lookup;
  const double cost = lookup < 1 ? std::min(rows * kLookupCost, table_rows) : table_rows;
  for (const SqlPlan::Term& term : plan.terms) {  // conditions that are filtered only
    if (lookup == 1 && (term.kind == Kind::kCompare || term.kind == Kind::kIn)) rows *= 0.3;
  }
  info->estimatedCost = kSearchCost + cost;
  info->estimatedRows = static_cast<sqlite3_int64>(std::max(1.0, std::ceil(rows)));
}

// Rows may come as groups where the statement uses no column of the key and no hidden key, as far
// as SQLite tells. It does not tell whether the statement is an aggregate, unless it has GROUP BY
// or DISTINCT, or uses no column at all.
Groups GroupsFor(const SqlPlan& plan, const TableSchema& schema, sqlite3_index_info* info) {
  if (plan.key_order) return Groups::kNone;
  if (schema.columns.size() >= 63) return Groups::kNone;
  if (std::ranges::any_of(plan.terms,
                          [](const SqlPlan::Term& term) { return term.kind == Kind::kKey; })) {
    return Groups::kNone;
  }
  const sqlite3_uint64 used = info->colUsed;
  if ((used >> schema.columns.size()) != 0) return Groups::kNone;
  for (const uint32_t column : schema.key) {
    if ((used >> column & 1) != 0) return Groups::kNone;
  }
  return used == 0 || sqlite3_vtab_distinct(info) != 0 ? Groups::kWhole : Groups::kSoon;
}

std::string OpText(Op op) {
  static constexpr const char* kTexts[] = {"", "=", "<>", "<", "<=", ">", ">="};
  return kTexts[static_cast<int>(op)];
}

std::string TermText(const SqlPlan::Term& term, const TableSchema& schema) {
  const std::string column = schema.columns[term.column].name;
  switch (term.kind) {
    case Kind::kCompare:
      return column + " " + OpText(term.op) + " ?";
    case Kind::kIn:
      return column + " IN ?";
    case Kind::kIs:
      return column + " IS ?";
    case Kind::kIsNull:
      return column + " IS NULL";
    case Kind::kNoCase:
      return column + " " + OpText(term.op) + " ? COLLATE NOCASE";
    case Kind::kLower:
      return column + " " + OpText(term.op) + " lower(?)";
    case Kind::kKey:
      return "tamis_key = ?";
    case Kind::kLimit:
      return "LIMIT ?";
    case Kind::kOffset:
      return "OFFSET ?";
  }
  return "";
}

uint32_t TakeNumber(std::string_view* text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), n);
  text->remove_prefix(end - text->data());
  return n;
}

}  // namespace

// For people up to "#", for Parse after it: kind, op and column of each term, key order, the
// column and direction of each term of another order, the reason of SQLite's sort, columns.
std::string SqlPlan::ToString(const TableSchema& schema) const {
  std::string out;
  for (const Term& term : terms) out += (out.empty() ? "" : ", ") + TermText(term, schema);
  if (terms.empty()) out = "all rows";
  if (key_order) out += ", in key order";
  if (groups != Groups::kNone) out += each_once ? ", equal rows once" : ", equal rows counted";
  for (const OrderTerm& term : order) {
    out += (&term == order.data() ? ", in the order of " : ", ") +
           schema.columns[term.column].name + (term.descending ? " DESC" : "");
  }
  out += " #";
  for (const Term& term : terms) {
    out += "t" + std::to_string(static_cast<int>(term.kind)) + "." +
           std::to_string(static_cast<int>(term.op)) + "." + std::to_string(term.column);
  }
  if (key_order) out += "o";
  if (groups != Groups::kNone) out += groups == Groups::kWhole ? "w" : "g";
  if (each_once) out += "d";
  for (const OrderTerm& term : order) {
    out += "r" + std::to_string(term.column) + "." + (term.descending ? "1" : "0");
  }
  if (sort != Sort::kNone) out += "s" + std::to_string(static_cast<int>(sort));
  if (columns) {
    out += "c";
    for (const uint32_t column : *columns) out += std::to_string(column) + ".";
  }
  return out;
}

SqlPlan SqlPlan::Parse(std::string_view text) {
  SqlPlan plan;
  text.remove_prefix(text.rfind('#') + 1);
  while (!text.empty()) {
    const char kind = text.front();
    text.remove_prefix(1);
    if (kind == 't') {
      Term term;
      term.kind = static_cast<Term::Kind>(TakeNumber(&text));
      text.remove_prefix(1);
      term.op = static_cast<Op>(TakeNumber(&text));
      text.remove_prefix(1);
      term.column = TakeNumber(&text);
      plan.terms.push_back(term);
    } else if (kind == 'o') {
      plan.key_order = true;
    } else if (kind == 'w' || kind == 'g') {
      plan.groups = kind == 'w' ? Groups::kWhole : Groups::kSoon;
    } else if (kind == 'd') {
      plan.each_once = true;
    } else if (kind == 'r') {
      const uint32_t column = TakeNumber(&text);
      text.remove_prefix(1);
      plan.order.push_back({.column = column, .descending = TakeNumber(&text) != 0});
    } else if (kind == 's') {
      plan.sort = static_cast<Sort>(TakeNumber(&text));
    } else {
      plan.columns.emplace();
      while (!text.empty()) {
        plan.columns->push_back(TakeNumber(&text));
        text.remove_prefix(1);
      }
    }
  }
  return plan;
}

SqlPlan MakeSqlPlan(Session* session, const TableSchema& schema, sqlite3_index_info* info) {
  SqlPlan plan;
  std::vector<int> limits;  // used only when nothing is known to be left to SQLite
  bool all_exact = true;
  const auto use = [&](int i, const SqlPlan::Term& term, bool omit) {
    plan.terms.push_back(term);
    info->aConstraintUsage[i].argvIndex = static_cast<int>(plan.terms.size());
    info->aConstraintUsage[i].omit = omit;
  };
  for (int i = 0; i < info->nConstraint; ++i) {
    std::optional<SqlPlan::Term> term;
    if (info->aConstraint[i].usable) term = TermFor(schema, info, i);
    if (!term) {
      all_exact = false;
      continue;
    }
    if (term->kind == Kind::kLimit || term->kind == Kind::kOffset) {
      limits.push_back(i);
      continue;
    }
    if (term->kind == Kind::kCompare && term->op == Op::kEq && sqlite3_vtab_in(info, i, -1)) {
      sqlite3_vtab_in(info, i, 1);
      term->kind = Kind::kIn;
    }
    use(i, *term, IsExact(schema, *term));
    all_exact = all_exact && term->kind != Kind::kNoCase && term->kind != Kind::kLower;
  }
  const bool is_any_order = IsAnyOrder(schema, plan, info);
  plan.key_order = !is_any_order && IsKeyOrder(schema, plan, info);
  if (session->groups) plan.groups = GroupsFor(plan, schema, info);
  if (!is_any_order) PlanOrder(schema, info, &plan);
  const int distinct = sqlite3_vtab_distinct(info);
  if (distinct == 0 && !plan.order.empty()) plan.groups = Groups::kNone;
  plan.each_once = plan.groups != Groups::kNone && distinct >= kDistinctInAnyOrder;
  info->orderByConsumed = is_any_order || plan.key_order || !plan.order.empty();
  if (all_exact && (info->nOrderBy == 0 || info->orderByConsumed != 0)) {
    // SQLite counts both itself: as many rows are fetched first as it may need. More may follow:
    // it tells of (a, b) > (?, ?) as a >= ? and leaves out rows of the answer.
    for (const int i : limits) use(i, *TermFor(schema, info, i), false);
  }

  // Bit 63 stands for all columns from there on; the hidden key comes from the key columns.
  plan.columns.emplace();
  for (uint32_t i = 0; i < schema.columns.size(); ++i) {
    if (schema.IsKey(i) || (info->colUsed >> std::min<uint32_t>(i, 63) & 1) != 0) {
      plan.columns->push_back(i);
    }
  }
  if (plan.groups != Groups::kNone) {
    std::erase_if(*plan.columns, [&](uint32_t column) { return schema.IsKey(column); });
  }
  EstimateCost(plan, schema, session->EstimatedRows(schema), info);
  return plan;
}

Result<SearchOptions> MakeSearch(const SqlPlan& plan, const TableSchema& schema, int argc,
                                 sqlite3_value** argv) {
  SearchOptions options{.columns = plan.columns,
                        .groups = plan.groups,
                        .key_order = plan.key_order,
                        .order = plan.order,
                        .remark = SortText(plan.sort)};
  std::vector<Predicate> conditions;
  std::optional<uint64_t> limit;
  uint64_t offset = 0;
  for (size_t i = 0; i < plan.terms.size() && static_cast<int>(i) < argc; ++i) {
    const SqlPlan::Term& term = plan.terms[i];
    sqlite3_value* right = argv[i];
    const auto compare = [&](Op op, const Value& value) {
      return CompareSql(schema, term.column, op, value);
    };
    const bool as_text = IsShownAsText(schema, term);
    if (as_text && IsNumber(right)) continue;  // SQLite decides alone
    switch (term.kind) {
      case Kind::kCompare:
        conditions.push_back(compare(term.op, FromSqlite(right)));
        break;
      case Kind::kIn: {
        std::vector<Value> values;
        bool undecided = false;
        sqlite3_value* value = nullptr;
        int rc = sqlite3_vtab_in_first(right, &value);
        for (; rc == SQLITE_OK && value != nullptr; rc = sqlite3_vtab_in_next(right, &value)) {
          undecided = undecided || (as_text && IsNumber(value));
          if (undecided) continue;
          Predicate equal = compare(Op::kEq, FromSqlite(value));
          if (equal.kind == Predicate::Kind::kCompare && equal.op == Op::kEq) {
            values.push_back(std::move(equal.values[0]));
          }  // else it equals nothing
        }
        if (rc != SQLITE_OK && rc != SQLITE_DONE) {
          return Internal("cannot read the values of an IN list: SQLite error " +
                          std::to_string(rc));
        }
        if (!undecided) conditions.push_back(Predicate::In(term.column, std::move(values)));
        break;
      }
      case Kind::kIs: {
        const Value value = FromSqlite(right);
        if (value.is_null()) {
          conditions.push_back(Predicate::IsNull(term.column));
          break;
        }
        conditions.push_back(compare(Op::kEq, value));
        break;
      }
      case Kind::kIsNull:
        conditions.push_back(Predicate::IsNull(term.column));
        break;
      case Kind::kNoCase: {
        if (sqlite3_value_type(right) != SQLITE_TEXT) break;  // SQLite decides alone
        auto condition = NoCaseRange(term.column, term.op, FromSqlite(right).str());
        if (condition) conditions.push_back(*std::move(condition));
        break;
      }
      case Kind::kLower: {
        if (sqlite3_value_type(right) != SQLITE_TEXT) break;  // SQLite decides alone
        const std::string text = FromSqlite(right).str();
        // SQLite compares no further than a NUL, if it stands in both texts.
        if (text.find('\0') != std::string::npos) break;
        conditions.push_back(
            Predicate::Compare(term.column, term.op, Value::Text(AsciiLower(text))));
        break;
      }
      case Kind::kKey: {
        const Value key = FromSqlite(right);
        Row row;
        if (key.is_null() || key.type() != Type::kBytes ||
            !KeyFormat(schema).Decode(key.str(), &row).ok()) {
          conditions.push_back(Predicate::False());
          break;
        }
        for (const uint32_t column : schema.key) {
          conditions.push_back(Predicate::Compare(column, Op::kEq, row[column]));
        }
        break;
      }
      case Kind::kLimit:
        // A negative LIMIT is none.
        if (sqlite3_value_int64(right) >= 0) limit = sqlite3_value_int64(right);
        break;
      case Kind::kOffset:
        offset = static_cast<uint64_t>(std::max<int64_t>(0, sqlite3_value_int64(right)));
        break;
    }
  }
  if (limit) options.first_rows = *limit + offset;
  options.predicate = Predicate::And(std::move(conditions));
  return options;
}

}  // namespace tamis
