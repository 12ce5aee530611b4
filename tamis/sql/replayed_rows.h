// ReplayedRows: the rows of one scan of a table by SQLite, of which the servers may have sent
// groups: distinct combinations of the columns that the statement uses, with counts. Each group is
// given out as often as it has rows, so that SQLite's own aggregates are exact.
//
// SQLite does not announce every read of the key: it reads keys to drop the duplicates of an OR of
// indexes, and to mark the matched rows of a RIGHT or FULL JOIN, while colUsed is the same as
// without. So NeedKey puts the rows themselves in the place of what is still to come: the row of
// the current combination first, then the rows of a new search, without as many rows of each
// combination as were given out before.
//
// Groups in an order (options with both `groups` and `order`) are all gathered before the first one
// is given out. If there are too many to be gathered, the rows are read in the order of an index.
//
// Threads: exclusive access. The engine outlives it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "tamis/query/engine.h"
#include "tamis/query/row_group.h"
#include "tamis/sql/gathered_groups.h"

namespace tamis {

class ReplayedRows {
 public:
  struct Needs {
    bool each_once = false;  // no more than one row of each combination (DISTINCT)
    size_t most_gathered = GatheredGroups::kMostCombinations;
  };
  ReplayedRows(Engine* engine, SchemaPtr schema, SearchOptions options, const Needs& needs);

  // To the first row, then to the next one.
  Status Next();
  bool AtEnd() const { return !group_.has_value(); }
  // REQUIRES: !AtEnd(). Without NeedKey its key columns may be NULL.
  const Row& row() const { return group_->row; }
  // Makes the key columns of this row and the rows that follow known. kBusy: the row is gone.
  Status NeedKey();
  bool needed_key() const { return needed_key_; }

  const Explain& explain();

 private:
  std::string CombinationOf(const Row& row) const;
  Status Take();
  Result<std::optional<RowGroup>> NextGroup();
  Status Gather();
  bool WasGiven();
  Result<RowGroup> FindCurrent();

  Engine* const engine_;
  const SchemaPtr schema_;
  const Needs needs_;
  SearchOptions options_;
  RowStream stream_;
  bool to_gather_ = false;
  std::optional<GatheredGroups> gathered_;
  std::optional<RowGroup> group_;
  uint64_t given_ = 0;  // rows of the group, with the current one
  bool needed_key_ = false;
  bool grouping_ = false;
  // Rows given out without their keys, by combination; only while groups may come.
  std::unordered_map<std::string, uint64_t> given_before_;
  std::string key_given_;  // the key of the row that NeedKey found
  Row first_;              // that row: with an order, rows before it are not given out any more
  Explain earlier_;        // sums of searches that this one replaced
  std::optional<Explain> sum_;
};

}  // namespace tamis
