// RowGroups: the rows of a page as distinct combinations of the wanted columns with counts, in
// bounded memory.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tamis/cluster/cluster.pb.h"

namespace tamis {

class RowGroups {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;

  // `row`: the wanted columns, encoded.
  void Add(std::string row) {
    const auto found = counts_.find(row);
    if (found != counts_.end()) {
      ++*found->second;
      return;
    }
    bytes_ += row.size() + kOverhead;
    Group& group = groups_.emplace_back(Group{std::move(row), 1});
    counts_.emplace(group.row, &group.count);
  }
  bool IsFull() const { return bytes_ >= kMaxBytes; }

  // Moves the groups to the result, in the order in which their first rows came.
  void MoveTo(pb::RangeResult* result) {
    result->set_groups(true);
    counts_.clear();
    for (Group& group : groups_) {
      pb::FoundRow* found = result->add_rows();
      found->set_row(std::move(group.row));
      found->set_count(group.count);
    }
    groups_.clear();
  }

 private:
  static constexpr size_t kOverhead = 64;  // of a group, in bytes
  struct Group {
    std::string row;
    uint64_t count = 0;
  };
  std::deque<Group> groups_;  // they are pointed to
  std::unordered_map<std::string_view, uint64_t*> counts_;
  size_t bytes_ = 0;
};

}  // namespace tamis
