// CellMap: a monotone map from byte strings to the numbers of cells.
//
// Encoded values sort as bytes (tamis/table/codec.h), so a range of values is a range of cells, and
// one bit per cell says of many ranges at once that no value lies in them. The map is a piecewise
// linear model of how values are distributed: its knots are values at even steps of the sorted
// distinct values, so that each cell holds about as many values as the next, however they cluster.
//
//   Knots       value and cell, both strictly increasing; a value between two knots is interpolated
//               by the eight bytes that follow the knots' common prefix
//   Below       the first knot everything falls into cell 0
//   Beyond      the last knot the map goes on with the last slope, up to the last cell: time stamps
//   Arithmetic  integers below 2^63 only, so that another language computes the same cells
//   Version     a hash of the map's bytes: two maps with one version are the same map
//   Threads     const members may run concurrently
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class CellMap {
 public:
  static constexpr uint32_t kMaxCells = 1u << 26;
  static constexpr size_t kMaxKnots = 8192;
  static constexpr size_t kMaxBytes = 1 << 20;  // bytes of a map

  struct Knot {
    std::string value;
    uint32_t cell = 0;

    friend bool operator==(const Knot&, const Knot&) = default;
  };

  // One cell, which holds everything.
  CellMap() { Prepare(); }

  // Knots strictly increasing in value and in cell, the first cell at least 1, the last one less
  // than `cells`.
  static Result<CellMap> Create(std::vector<Knot> knots, uint32_t cells);
  // A map whose `cells` cells hold about equally many of the distinct values of a sample; a quarter
  // more cells lie beyond its largest value. REQUIRES: sorted; duplicates are allowed.
  struct FitOptions {
    uint32_t cells = 1 << 16;
    size_t knots = 2048;
  };
  static CellMap Fit(std::span<const std::string> sample, FitOptions options);

  // Less than cells(). a <= b gives CellOf(a) <= CellOf(b).
  uint32_t CellOf(std::string_view value) const;
  // Every value that falls into the cell, or into a later one, is at least this; nearly all values
  // from here on fall into this cell or a later one.
  std::string LowestOf(uint32_t cell) const;

  uint32_t cells() const { return cells_; }
  uint64_t version() const { return version_; }
  std::span<const Knot> knots() const { return knots_; }

  std::string Serialize() const;  // docs/FORMATS.md#cell-maps
  static Result<CellMap> Deserialize(std::string_view bytes);

  friend bool operator==(const CellMap& a, const CellMap& b) {
    return a.cells_ == b.cells_ && a.knots_ == b.knots_;
  }

 private:
  // A straight line: `rise` cells for `run` steps of 2^shift.
  struct Slope {
    size_t skip = 0;      // bytes of the common prefix
    uint64_t origin = 0;  // the eight bytes behind it, of the lower knot
    int shift = 0;
    uint64_t run = 0;  // less than 2^31; 0: the knots do not differ in these bytes
    uint32_t rise = 0;
  };

  static Slope SlopeBetween(const Knot& low, const Knot& high, size_t skip);
  void Prepare();
  std::vector<Knot>::const_iterator FirstAbove(std::string_view value) const;
  uint32_t Beyond(std::string_view value) const;
  std::string LowestBeyond(uint32_t cell) const;

  uint32_t cells_ = 1;
  std::vector<Knot> knots_;
  std::vector<Slope> slopes_;      // behind each knot but the last
  Slope last_;                     // beyond the last knot, where there are two
  size_t common_ = 0;              // length of the common prefix of all knots
  std::vector<uint64_t> windows_;  // the eight bytes behind it, of each knot
  uint64_t version_ = 0;
};

}  // namespace tamis
