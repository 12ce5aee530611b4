// UncountedFamilies: the column families into which files came whose keys the filter does not
// count. A family passes through from then on, until its files are counted and no others have come.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>

#include "tamis/lsm/column_families.h"

namespace tamis::lsm {

class UncountedFamilies {
 public:
  explicit UncountedFamilies(ColumnFamilies* families) : families_(*families) {}

  // Files came into the family. The thread that counts the files takes it (Take).
  void Add(uint32_t family);
  // Around an arrival of files: the family passes through from its begin on, and is added at its
  // end.
  void ArrivalBegan(uint32_t family);
  void ArrivalEnded(uint32_t family) noexcept;

  bool empty() const;
  std::set<uint32_t> Take();
  void GiveBack(std::set<uint32_t> families) noexcept;  // they could not be counted
  // The files of these families are counted: a family into which no files have come since Take
  // answers again.
  void HaveCounted(const std::set<uint32_t>& families);

 private:
  ColumnFamilies& families_;
  mutable std::mutex mutex_;
  std::set<uint32_t> uncounted_;
  std::multiset<uint32_t> arriving_;
};

}  // namespace tamis::lsm
