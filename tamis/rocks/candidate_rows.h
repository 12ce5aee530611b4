// CandidateRows: rows that a branch of a search may return, as an index or a scan finds them. They
// are read some at a time, checked against the conditions, and put into the page.
//
// The position of the search follows the rows that were looked at: after Take everything up to it
// is done, also where the page had no room for the last rows of the batch.
//
// Threads: exclusive access. Everything given to it outlives it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_page.h"
#include "tamis/rocks/search_plan.h"
#include "tamis/rocks/search_position.h"
#include "tamis/rocks/stream_joins.h"
#include "tamis/table/row.h"

namespace tamis {

class CandidateRows {
 public:
  static constexpr size_t kBatch = 32;  // rows read at once

  // `joins`, which may be null, sees the rows that are read.
  CandidateRows(const SearchPlan& plan, const RegionSnapshot& snapshot, SearchPage* page,
                SearchPosition* position, StreamJoins* joins = nullptr)
      : plan_(plan), snapshot_(snapshot), page_(*page), position_(*position), joins_(joins) {}

  bool empty() const { return batch_.empty(); }
  size_t size() const { return batch_.size(); }

  // `last` is that of the position once this row is done. `row`: where the entry gives it.
  void Add(std::string key, std::string last, std::optional<Row> row = std::nullopt) {
    batch_.push_back({std::move(key), std::move(last), std::move(row)});
  }
  // Reads the rows of the batch that lack them, and takes those that match. False when the page
  // became full before the last of them; the position says what is done, which is at least the
  // first of them. The batch is empty afterwards.
  Result<bool> Take();
  // A row that was read already, by its stored bytes. The position stays.
  Status TakeStored(std::string_view key, std::string_view stored);

 private:
  struct Candidate {
    std::string key;
    std::string last;
    std::optional<Row> row;
  };

  void TakeIfMatching(std::string_view key, Row* row);

  const SearchPlan& plan_;
  const RegionSnapshot& snapshot_;
  SearchPage& page_;
  SearchPosition& position_;
  StreamJoins* const joins_;
  std::vector<Candidate> batch_;
};

}  // namespace tamis
