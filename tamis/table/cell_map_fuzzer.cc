// Any bytes are a cell map or are refused. A map is monotone in any two values, and its inverse is
// a lower bound. The first byte says how many of the others are the map; the rest are two values.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "tamis/table/cell_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto map = CellMap::Deserialize(bytes.substr(0, data[0]));
  if (!map.ok()) return 0;
  const std::string_view rest = bytes.substr(std::min<size_t>(data[0], bytes.size()));
  std::string_view low = rest.substr(0, rest.size() / 2);
  std::string_view high = rest.substr(rest.size() / 2);
  if (high < low) std::swap(low, high);
  if (map->CellOf(low) > map->CellOf(high) || map->CellOf(high) >= map->cells()) std::abort();
  for (const std::string_view value : {low, high}) {
    if (map->LowestOf(map->CellOf(value)) > value) std::abort();
  }
  for (const CellMap::Knot& knot : map->knots()) {
    if (map->CellOf(knot.value) != knot.cell) std::abort();
  }
  return 0;
}
