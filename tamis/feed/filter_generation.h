// FilterGeneration: one generation of an IndexFilter: counters or bits, cells, and the range of
// values.
//
// A removal leaves the bit of the cell, and the smallest and largest value. The generation notes
// what has to be looked at (removed_from, range_stale).
//
// The jar has the same class.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/faults.h"
#include "tamis/feed/entry_key.h"
#include "tamis/feed/index_counters.h"
#include "tamis/feed/region_cells.h"
#include "tamis/feed/value_range.h"

namespace tamis {

struct FilterGeneration {
  uint64_t number = 0;
  IndexCounters filter;
  std::optional<RegionCells> cells = {};
  std::optional<ValueRange> range = {};
  bool range_stale = false;  // its smallest or largest value was removed
  bool as_restored = false;
  bool counted = false;    // from the entries that existed: it will not grow by these any more
  uint64_t added = 0;      // hashes, since it was begun
  uint64_t forgotten = 0;  // removals that found no room to be held

  // A changed bit is bit * 2, and 1 more when it is set (BitName).
  using Flips = std::vector<uint64_t>;
  // An event names a bit as layer * 2^32 + position.
  static uint64_t BitName(uint32_t layer, uint64_t position) {
    return (static_cast<uint64_t>(layer) << 32) | position;
  }

  // An addition, as coordinators have to know it.
  struct Changes {
    Flips flips;
    std::vector<uint32_t> cells;  // that were set
    bool grown = false;           // by a layer
    bool widened = false;         // the range
  };
  Changes Add(std::span<const EntryKey> entries);
  // Lowers the counters of the entries alone.
  Flips RemoveHashes(std::span<const EntryKey> entries);
  // An entry with this first value goes: what of the range and of the cells rests upon it is to be
  // looked at.
  void LeaveToClearer(std::string_view first);
  // Both.
  Flips Remove(std::span<const EntryKey> entries);

  bool MayContain(const EntryKey& entry) const;
  // Entries of an index of so many columns, added less removed.
  uint64_t Entries(size_t columns) const;
  // Removals that left bits set, in hashes.
  uint64_t Ignored(size_t columns) const { return filter.Ignored() + forgotten * columns; }
  uint64_t cell_map_version() const { return cells.has_value() ? cells->map->version() : 0; }
  size_t SizeBytes() const;  // with the cells

  // Adds the bits from where `from` says on, or all where it names another generation, to a
  // projection: at most so many bytes, but one word at the least.
  void ProjectLayers(const pb::ColumnId& from, size_t max_bytes, pb::Projection* projection) const;
  // The same of cells, to a projection that has the number of their generation.
  static void ProjectCells(const CellSet& occupied, const pb::ColumnId& from, size_t max_bytes,
                           pb::Projection* projection);

  // docs/FORMATS.md#filter-snapshots. nullopt where there are bits alone, or removals were
  // forgotten.
  std::optional<std::string> Serialize() const;
  // A generation that is as restored, of no number. nullopt when the bytes are damaged, or not of
  // this index and this map, which may be null.
  static std::optional<FilterGeneration> Deserialize(std::string_view bytes, const IndexSpec& index,
                                                     const std::shared_ptr<const CellMap>& map,
                                                     const Faults& faults);
};

}  // namespace tamis
