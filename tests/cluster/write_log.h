// WriteLog: which states a row may have had, when any number of threads write it: what the threads
// of a test know of the order of their own calls, and no more.
//
// Every call begins and ends at a moment of one count. If one of two writes of a row ended before
// the other began, it was done first. Two that overlap were done in an unknown order until a search
// shows one of them: then writes that had ended before that search began were done before the one
// shown. They are never seen again once that one is acknowledged. Until then a coordinator that has
// not heard of it may leave its region out, although another one has shown the row. A write of
// unknown outcome may be done at any time from its beginning on.
//
// Threads: safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "tests/cluster/answer.h"

namespace tamis {

class WriteLog {
 public:
  // When a search began. While it lives, what the search may see is kept. The log must outlive it.
  class Mark {
   public:
    explicit Mark(WriteLog* log) : log_(log), moment_(log->Enter()) {}
    ~Mark() { log_->Leave(moment_); }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    friend class WriteLog;
    WriteLog* const log_;
    const uint64_t moment_;
  };

  // A write begins that leaves the row in this state. The number names it afterwards.
  uint64_t Begin(int64_t key, RowState after) {
    std::lock_guard lock(mutex_);
    RowPast& row = rows_[key];
    row.writes.push_back({.begin = ++now_, .after = std::move(after)});
    return now_;
  }
  // How it ended. One that ends as unknown needs no call.
  void Acknowledge(int64_t key, uint64_t write) {
    std::lock_guard lock(mutex_);
    RowPast& row = rows_[key];
    const auto acknowledged = Find(row, write);
    acknowledged->end = ++now_;
    MarkGone(&row, *acknowledged, acknowledged->shown);
    const uint64_t oldest = marks_.empty() ? now_ : *marks_.begin();
    std::erase_if(row.writes, [&, settled = SettledBefore(row, oldest)](const Write& past) {
      return past.end < settled || past.gone < oldest;
    });
  }
  void Refuse(int64_t key, uint64_t write) {
    std::lock_guard lock(mutex_);
    RowPast& row = rows_[key];
    row.writes.erase(Find(row, write));
  }

  // How the row may stand now.
  std::vector<RowState> Now(int64_t key) const {
    std::lock_guard lock(mutex_);
    const auto found = rows_.find(key);
    return found == rows_.end() ? std::vector<RowState>{RowState()}
                                : States(found->second, now_ + 1);
  }
  // The states of rows from the mark until now, by key. Rows that were never written are left out.
  RowStates Since(const Mark& mark) const {
    std::lock_guard lock(mutex_);
    RowStates states;
    for (const auto& [key, row] : rows_) states[key] = States(row, mark.moment_);
    return states;
  }

  // A search that began at the mark has shown the row in this state, which may be without its last
  // columns.
  void NoteShown(const Mark& mark, int64_t key, const Row& shown) {
    std::lock_guard lock(mutex_);
    RowPast& row = rows_[key];
    const uint64_t settled = SettledBefore(row, mark.moment_);
    Write* only = nullptr;
    for (Write& write : row.writes) {
      if (write.end < settled || write.gone < mark.moment_ || !Shows(write, shown)) continue;
      if (only != nullptr) return;  // it may have been either
      only = &write;
    }
    ++now_;
    if (only == nullptr) return;
    only->shown = std::max(only->shown, mark.moment_);
    if (only->end != kNever) MarkGone(&row, *only, mark.moment_);
  }

 private:
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  struct Write {
    uint64_t begin = 0;
    uint64_t end = kNever;   // when it was acknowledged
    uint64_t gone = kNever;  // when it was known that another one had been done after it
    uint64_t shown = 0;      // when the last search began that has shown it; 0: none has
    RowState after;
  };
  struct RowPast {
    std::vector<Write> writes{{.end = 0}};  // at first there is no row
  };

  uint64_t Enter() {
    std::lock_guard lock(mutex_);
    marks_.insert(++now_);
    return now_;
  }
  void Leave(uint64_t moment) {
    std::lock_guard lock(mutex_);
    marks_.erase(moment);
  }

  // The writes that ended before `moment` were done before the acknowledged one.
  void MarkGone(RowPast* row, const Write& acknowledged, uint64_t moment) {
    for (Write& write : row->writes) {
      if (&write != &acknowledged && write.end < moment) write.gone = std::min(write.gone, now_);
    }
  }

  static std::vector<Write>::iterator Find(RowPast& row, uint64_t begin) {
    return std::ranges::find(row.writes, begin, &Write::begin);
  }
  // Writes that ended before this moment cannot be seen at `moment` or later: another write began
  // after that and ended before `moment`.
  static uint64_t SettledBefore(const RowPast& row, uint64_t moment) {
    uint64_t settled = 0;
    for (const Write& write : row.writes) {
      if (write.end < moment) settled = std::max(settled, write.begin);
    }
    return settled;
  }
  static std::vector<RowState> States(const RowPast& row, uint64_t moment) {
    const uint64_t settled = SettledBefore(row, moment);
    std::vector<RowState> states;
    for (const Write& write : row.writes) {
      if (write.end >= settled && write.gone >= moment) states.push_back(write.after);
    }
    return states;
  }
  static bool Shows(const Write& write, const Row& shown) {
    return write.after.has_value() && shown.size() <= write.after->size() &&
           std::equal(shown.begin(), shown.end(), write.after->begin());
  }

  mutable std::mutex mutex_;
  uint64_t now_ = 0;
  std::map<int64_t, RowPast> rows_;
  std::set<uint64_t> marks_;
};

}  // namespace tamis
