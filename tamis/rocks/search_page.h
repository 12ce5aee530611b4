// SearchPage: the answer to one range of a search, and what limits it: rows, bytes, the rows looked
// at, and time. A page ends with a continuation only after progress, so that a search whose pages
// are all short of time comes to its end.
//
// Threads: exclusive access. The context outlives it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/branch_streams.h"
#include "tamis/rocks/row_groups.h"
#include "tamis/rocks/server_context.h"
#include "tamis/table/group_totals.h"

namespace tamis {

class SearchPage {
 public:
  // Rows as groups with counts; then the bounds of rows looked at and of bytes are others.
  struct Grouping {
    const TableSchema& schema;
    std::vector<uint32_t> by;      // columns
    std::vector<uint32_t> totals;  // other columns, of which totals are wanted instead of values
  };

  // Holds at most `max_rows` rows, which is at least 1.
  SearchPage(const ServerContext& context, const pb::SearchRange& range, uint64_t max_rows,
             std::optional<Grouping> grouping, Time deadline);

  uint64_t max_rows() const { return max_rows_; }
  uint64_t rows() const { return rows_; }

  void AddRow(std::string_view key, std::string row);
  // REQUIRES: a page of groups. A group that was found gets a row.
  RowGroups::Group* FindGroup(std::string row) {
    if (totals_.has_value() && groups_->IsFull()) AddToTotals();
    return groups_->Find(std::move(row));
  }
  uint64_t generation() const { return groups_->generation(); }
  void AddRow(RowGroups::Group* group) {
    ++rows_;
    ++group->count;
  }
  void SetRange(const std::string& start, const std::string& end);

  // Counters.
  void CountCandidate() { ++candidates_; }  // work that counts towards the page, such as garbage
  void CountRowRead() { ++counters_.rows_read; }
  void CountRowFromEntry() { ++counters_.rows_from_entries; }
  void CountRowUnparsed() { ++counters_.rows_unparsed; }
  void CountUndecodable(uint64_t cells) { counters_.cells_undecodable += cells; }
  void NoteScan() { scanned_ = true; }  // since no index is complete
  void NoteScanByChoice();              // since that costs less
  void NoteUse(const BranchStreams::Stream& stream);
  void NoteInOrder() { result_.set_in_order(true); }  // that was asked for
  bool in_order() const { return result_.in_order(); }

  // The position is not where it was.
  void NoteProgress() { has_progress_ = true; }
  bool has_progress() const { return has_progress_; }

  bool HasAllRows() const;  // no further row fits
  bool IsFull();            // the same, or this was enough work for one request
  // Never before there is progress, unless told.
  bool IsOutOfTime(bool even_without_progress = false);

  // REQUIRES: nothing is called afterwards.
  pb::RangeResult Finish(const std::string& resume);
  pb::RangeResult Failed(const Status& status) const;

 private:
  void AddToTotals();
  void MoveGroups();

  const ServerContext& context_;
  const uint64_t max_rows_;
  const Time deadline_;
  pb::RangeResult result_;
  ReadCounters counters_;
  const std::optional<Grouping> grouping_;
  std::optional<RowGroups> groups_;
  // Made of groups of all wanted columns, once these take much memory and at the end.
  std::optional<GroupTotals> totals_;
  uint64_t rows_ = 0;
  uint64_t bytes_ = 0;
  uint64_t candidates_ = 0;
  bool scanned_ = false;
  bool has_progress_ = false;
  bool out_of_time_ = false;
  uint64_t looks_ = 0;          // at the clock, or for it
  uint64_t clock_read_at_ = 0;  // so many candidates
};

}  // namespace tamis
