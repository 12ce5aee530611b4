// ValueSample: some of the distinct values that an index holds, by which a cell map is fitted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/table/cell_map.h"

namespace tamis {

// A sample of one or several regions: each of their distinct values has the same chance to be in
// it, but the smallest and the largest, which always are.
struct ValueSample {
  std::vector<std::string> values;  // sorted
  uint64_t distinct = 0;            // values of the regions; at least as many as there are here
};

// Draws a sample of at most so many values, at least two, from more of them.
class ValueSampler {
 public:
  explicit ValueSampler(size_t most) : most_(most) {}

  void Add(std::string value);
  ValueSample Take() &&;

 private:
  size_t most_;
  Random random_{1};
  uint64_t seen_ = 0;
  std::string smallest_, largest_;
  std::vector<std::string> values_;
};

// Cells for each value of a region, where none are named, and the most that a definition may name.
inline constexpr uint32_t kDefaultCellsPerValue = 16;
inline constexpr uint32_t kMaxCellsPerValue = 64;

// The map of an index that is to have cells and has no values yet: all values fall into one cell,
// so that no region is excluded. Its number of cells is `cells_per_value`, kept for the fit.
CellMap UnfittedCellMap(uint32_t cells_per_value);
bool IsFitted(const CellMap& map);
// The cells for each value with which an index of this map is to be fitted. nullptr: no cells yet.
uint32_t CellsPerValueFor(const CellMap* map);

// A map of so many cells for each distinct value of a region of mean size; unfitted if there is no
// value. The samples together are those of all regions of the index, `regions` in number.
CellMap FitCellMap(const std::vector<ValueSample>& samples, size_t regions,
                   uint32_t cells_per_value);

}  // namespace tamis
