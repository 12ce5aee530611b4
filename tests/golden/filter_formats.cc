#include "tests/golden/formats.h"

#include <algorithm>
#include <random>
#include <sstream>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/filter/cell_set.h"
#include "tamis/filter/scalable_split_counting_bloom_filter.h"
#include "tamis/table/cell_map.h"
#include "tamis/table/codec.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/golden_values.h"

namespace tamis {
namespace {

// Values as a map is asked for them: its knots and what lies close to them, and others.
std::vector<std::string> ValuesAround(const CellMap& map, std::mt19937_64* random) {
  std::vector<std::string> values = {"", "a", std::string(9, '\xff'), std::string("\0\0", 2)};
  for (size_t i = 0; i < 12; ++i) {
    std::string value = Pattern((*random)() % 12);
    if (!map.knots().empty()) value = map.knots()[(*random)() % map.knots().size()].value + value;
    if (!value.empty() && i % 2 == 0) {
      value[(*random)() % value.size()] = static_cast<char>((*random)());
    }
    if (i % 3 == 0 && value.size() > 3) value.resize(value.size() - 3);
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

std::string Filters() {
  std::ostringstream out;
  out << "# G slices positions seed: a scalable split counting filter, of the lines that follow\n"
         "# + hash layer:position,...: inserted; the bits that were set\n"
         "# - hash layer:position,...|stuck|absent: erased; the bits that were cleared\n"
         "# B bytes: the filter as it then is\n"
         "# L layer projection: 64-bit words, little-endian\n";
  for (const SplitGeometry geometry : {SplitGeometry{.slices = 3, .slice_positions = 64},
                                       SplitGeometry{.slices = 7, .slice_positions = 100}}) {
    ScalableSplitCountingBloomFilter filter(geometry, 5);
    out << "G " << geometry.slices << " " << geometry.slice_positions << " 5\n";
    Random random(23);
    std::vector<uint64_t> held;
    for (int i = 0; i < 120; ++i) {
      std::string flips;
      const auto note = [&](uint32_t layer, uint64_t position, bool) {
        flips +=
            (flips.empty() ? "" : ",") + std::to_string(layer) + ":" + std::to_string(position);
      };
      if (!held.empty() && random.OneIn(4)) {
        const size_t at = random.Uniform(held.size());
        const auto outcome = filter.Erase(held[at], note);
        out << "- " << Hex64(held[at]) << " "
            << (outcome == EraseOutcome::kStuck    ? "stuck"
                : outcome == EraseOutcome::kAbsent ? "absent"
                : flips.empty()                    ? "none"
                                                   : flips)
            << "\n";
        held.erase(held.begin() + static_cast<long>(at));
        continue;
      }
      const bool again = !held.empty() && random.OneIn(5);
      held.push_back(again ? held[random.Uniform(held.size())] : random());
      filter.Insert(held.back(), note);
      out << "+ " << Hex64(held.back()) << " " << (flips.empty() ? "none" : flips) << "\n";
    }
    out << "B " << Hex(filter.Serialize()) << "\n";
    for (uint32_t layer = 0; layer < filter.layers(); ++layer) {
      std::string bytes;
      for (uint64_t word : filter.Projection(layer)) {
        for (int i = 0; i < 8; ++i, word >>= 8) bytes += static_cast<char>(word & 0xff);
      }
      out << "L " << layer << " " << Hex(bytes) << "\n";
    }
  }
  return out.str();
}

std::string CellMaps() {
  std::ostringstream out;
  out << "# M map version cells: bytes of a cell map; the lines up to the next M are of that map\n"
      << "# V value cell: CellOf\n"
      << "# L cell value: LowestOf\n"
      << "# X map: refused\n"
      << "# S cells member...: a cell set; the P lines behind it are its parts\n"
      << "# P first max_bytes end bytes: what Encode gives\n";
  std::mt19937_64 random(1);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::string> sample;
    for (size_t i = 0, n = round * round / 4; i < n; ++i) {
      std::string value;
      if (round % 4 == 0) {
        AppendOrdered(Value::Int64(static_cast<int64_t>(random()) >> random() % 64), &value);
      } else if (round % 4 == 1) {
        AppendOrdered(Value::Timestamp(1'700'000'000'000'000 + static_cast<int64_t>(i) * 977),
                      &value);
      } else if (round % 4 == 2) {
        for (size_t size = random() % 9; value.size() < size;) value += "\0\1a\xff"[random() % 4];
      } else {
        AppendOrdered(Value::Text("https://example.org/" + std::to_string(random() % 5000)),
                      &value);
      }
      sample.push_back(std::move(value));
    }
    std::ranges::sort(sample);
    const CellMap map =
        CellMap::Fit(sample, {.cells = static_cast<uint32_t>(
                                  1 + (random() >> random() % 64) % (uint64_t{1} << random() % 25)),
                              .knots = 2 + random() % 40});
    out << "M " << Hex(map.Serialize()) << " " << Hex64(map.version()) << " " << map.cells()
        << "\n";
    for (const std::string& value : ValuesAround(map, &random)) {
      out << "V " << Hex(value) << " " << map.CellOf(value) << "\n";
    }
    for (const uint32_t cell : {0u, 1u, map.cells() / 3, map.cells() / 5 * 4, map.cells() - 2}) {
      if (cell < map.cells()) out << "L " << cell << " " << Hex(map.LowestOf(cell)) << "\n";
    }
    std::string damaged = map.Serialize();
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    if (!CellMap::Deserialize(damaged).ok()) out << "X " << Hex(damaged) << "\n";
  }
  for (int round = 0; round < 20; ++round) {
    CellSet set(static_cast<uint32_t>(random() % 600));
    const uint64_t one_in = 1 + random() % 60;
    for (uint32_t cell = 0; cell < set.cells(); ++cell) {
      if (random() % one_in == 0) set.Insert(cell);
    }
    out << "S " << set.cells();
    for (uint32_t cell = set.Next(0); cell < set.cells(); cell = set.Next(cell + 1)) {
      out << " " << cell;
    }
    out << "\n";
    uint32_t end = 0;
    for (uint32_t first = 0; end < set.cells(); first = end) {
      const size_t max_bytes = 1 + random() % 30;
      const std::string bytes = set.Encode(first, max_bytes, &end);
      out << "P " << first << " " << max_bytes << " " << end << " " << Hex(bytes) << "\n";
    }
  }
  return out.str();
}

}  // namespace tamis
