// RoutedTable: what a coordinator knows of one table: where its regions lie, and for each index its
// copies of what the regions' filters hold.
//
//   Threads   const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

#include "tamis/routing/index_copies.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/routing_term.h"
#include "tamis/routing/table_layout.h"

namespace tamis {

struct RoutedTable {
  TableLayout layout;
  std::map<uint32_t, IndexCopies> indexes;  // by id

  // The evidence to use: each uses all that stand before it, too.
  enum class By { kRanges, kCells, kFilters };
  // Bit i: the region in slot i may hold a matching row.
  RegionBits MayHold(const RoutingTerm& term, By by) const;
  // Sets the bits of regions of which an index that the term names has no bits here.
  void AddUnknown(const RoutingTerm& term, RegionBits* unknown) const;

  // The keys that lie in placed regions whose bit, by slot, is not set.
  KeyRanges AllBut(const RegionBits& may, const KeyRanges& keys) const;

  size_t SizeBytes() const;

 private:
  void AddAny(const RoutingTerm& term, By by, RegionBits* may) const;
  void AddLeaves(std::span<const RoutingTerm> leaves, By by, RegionBits* may) const;
};

}  // namespace tamis
