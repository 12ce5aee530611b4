// RegionCells: which cells of a cell map some entry of a region falls into, and from which cells
// entries were removed since anything looked whether they are still occupied.
//
// There are no counters: a cell stays set when an entry goes, until a search of the sorted index
// shows that it is empty (IndexFilter::BeginClearing).
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/coding.h"
#include "tamis/filter/cell_set.h"
#include "tamis/table/cell_map.h"

namespace tamis {

struct RegionCells {
  explicit RegionCells(std::shared_ptr<const CellMap> cell_map)
      : map(std::move(cell_map)), occupied(map->cells()), removed_from(map->cells()) {}

  std::shared_ptr<const CellMap> map;
  CellSet occupied;
  CellSet removed_from;

  size_t SizeBytes() const { return occupied.SizeBytes() + removed_from.SizeBytes(); }

  void Serialize(std::string* out) const {
    PutFixed64(out, map->version());
    for (const CellSet* set : {&occupied, &removed_from}) {
      uint32_t end = 0;
      PutLengthPrefixed(out, set->Encode(0, ~uint32_t{0}, &end));
    }
  }
  // nullopt when the bytes are damaged or of another map.
  static std::optional<RegionCells> Deserialize(std::shared_ptr<const CellMap> map,
                                                Reader* reader) {
    if (reader->Fixed64() != map->version()) return std::nullopt;
    RegionCells cells(std::move(map));
    for (CellSet* set : {&cells.occupied, &cells.removed_from}) {
      if (!set->Decode(reader->LengthPrefixed(), 0, set->cells())) return std::nullopt;
    }
    if (!reader->ok()) return std::nullopt;
    return cells;
  }
};

}  // namespace tamis
