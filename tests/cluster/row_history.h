// RowHistory: the states that rows have had, as the threads know that write them. Each row has one
// writer, so its history is exact; any thread may ask what a search may have seen.
//
// Threads: safe.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "tests/cluster/answer.h"

namespace tamis {

class RowHistory {
 public:
  // What is acknowledged when a search starts: a number for each row.
  using Mark = std::map<int64_t, size_t>;

  // A write of the row's only writer, that leaves it in this state.
  void Begin(int64_t key, RowState state) {
    std::lock_guard lock(mutex_);
    rows_[key].states.push_back(std::move(state));
  }
  void Acknowledge(int64_t key) {
    std::lock_guard lock(mutex_);
    rows_[key].sure = rows_[key].states.size() - 1;
  }
  void Refuse(int64_t key) {
    std::lock_guard lock(mutex_);
    rows_[key].states.pop_back();
  }
  // The write may stand, now or later. The row must not be written again.
  void Unknown(int64_t key) {
    std::lock_guard lock(mutex_);
    rows_[key].unknown = true;
  }

  RowState Sure(int64_t key) const {
    std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    return found == rows_.end() ? RowState() : found->second.states[found->second.sure];
  }
  bool IsUnknown(int64_t key) const {
    std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    return found != rows_.end() && found->second.unknown;
  }

  Mark Now() const {
    std::lock_guard lock(mutex_);
    Mark mark;
    for (const auto& [key, row] : rows_) mark.emplace(key, row.sure);
    return mark;
  }
  // From what stood at the mark to what is being written now.
  RowStates Since(const Mark& mark) const {
    std::lock_guard lock(mutex_);
    RowStates states;
    for (const auto& [key, row] : rows_) {
      const auto known = mark.find(key);
      const size_t first = known == mark.end() ? 0 : known->second;
      states[key].assign(row.states.begin() + static_cast<ptrdiff_t>(first), row.states.end());
    }
    return states;
  }

 private:
  struct RowPast {
    std::vector<RowState> states{RowState()};  // at first there is no row
    size_t sure = 0;                           // the last acknowledged one
    bool unknown = false;
  };

  mutable std::mutex mutex_;
  std::map<int64_t, RowPast> rows_;
};

}  // namespace tamis
