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
#include <utility>

namespace tamis {

class RowGroups {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;
  struct Group {
    std::string row;
    uint64_t count = 0;
  };

  // The group of the rows whose wanted columns are encoded so. It has to be counted: at the end no
  // group is empty. It stays where it is.
  Group* Find(std::string row) {
    const auto found = groups_by_row_.find(row);
    if (found != groups_by_row_.end()) return found->second;
    bytes_ += row.size() + kOverhead;
    Group& group = groups_.emplace_back(Group{std::move(row), 0});
    groups_by_row_.emplace(group.row, &group);
    return &group;
  }
  bool IsFull() const { return bytes_ >= kMaxBytes; }

  // In the order in which their first rows came. None is left.
  std::deque<Group> Take() {
    groups_by_row_.clear();
    bytes_ = 0;
    ++generation_;
    return std::exchange(groups_, {});
  }
  // Groups that were found before they were taken have another number.
  uint64_t generation() const { return generation_; }

 private:
  static constexpr size_t kOverhead = 64;  // bytes for each group
  std::deque<Group> groups_;               // they are pointed to
  std::unordered_map<std::string_view, Group*> groups_by_row_;
  size_t bytes_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace tamis
