// SqlPlan: what xBestIndex chose and xFilter carries out, as the text that SQLite keeps between
// them (EXPLAIN QUERY PLAN shows it).
//
//   "section = ?, installed_size > ?, LIMIT ? | columns 0 1 5 | key order"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/query/engine.h"
#include "tamis/sql/session.h"
#include "tamis/sql/sqlite.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"

namespace tamis {

struct SqlPlan {
  // One term for each argument of xFilter.
  struct Term {
    enum class Kind {
      kCompare,
      kIn,
      kIs,
      kIsNull,
      kNoCase,  // a range by the collation NOCASE
      kLower,   // a comparison by it of the column that this one is computed from by lower()
      kKey,
      kLimit,
      kOffset
    };
    Kind kind = Kind::kCompare;
    Predicate::Op op = Predicate::Op::kEq;
    uint32_t column = 0;

    // The others speak of no column.
    bool OnColumn() const {
      return kind != Kind::kKey && kind != Kind::kLimit && kind != Kind::kOffset;
    }
  };
  std::vector<Term> terms;
  std::optional<std::vector<uint32_t>> columns;  // positions that are read; nullopt = all
  bool key_order = false;
  // Whether rows may come as groups (search_options.h), as far as xBestIndex can see.
  SearchOptions::Groups groups = SearchOptions::Groups::kNone;
  // With groups, the statement needs no combination of their columns more than once.
  bool each_once = false;
  // The order of an index; empty: none is asked of the search. With groups, these are put into it.
  std::vector<OrderTerm> order;
  // The reason why SQLite sorts the rows, when it does.
  enum class Sort { kNone, kNoIndex, kDecimal, kTime } sort = Sort::kNone;

  std::string ToString(const TableSchema& schema) const;
  static SqlPlan Parse(std::string_view text);  // REQUIRES: written by ToString
};

// The columns of the virtual table are those of the schema and, behind them, a hidden one that
// holds the encoded key.
SqlPlan MakeSqlPlan(Session* session, const TableSchema& schema, sqlite3_index_info* info);

// The search that the plan and its right-hand sides describe. kInternal when SQLite does not give
// the values of an IN list.
Result<SearchOptions> MakeSearch(const SqlPlan& plan, const TableSchema& schema, int argc,
                                 sqlite3_value** argv);

}  // namespace tamis
