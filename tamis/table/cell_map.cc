#include "tamis/table/cell_map.h"

#include <algorithm>
#include <bit>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"

namespace tamis {
namespace {

constexpr int kRunBits = 31;
// The line beyond the last knot reads this many bytes more in front, so that a number that grows
// past the knots' common bytes goes on along it.
constexpr size_t kBytesOfGrowth = 4;
// How many bytes of a sampled value a knot keeps after the common prefix with the knot before.
constexpr size_t kKnotBytes = 6;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  const size_t size = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + size, b.begin()).first -
                             a.begin());
}

// Eight bytes from `skip` on as a number, the first one highest; zeros after the end.
uint64_t Window(std::string_view value, size_t skip) {
  uint64_t window = 0;
  for (size_t i = skip; i < skip + 8; ++i) {
    window = window << 8 | (i < value.size() ? static_cast<unsigned char>(value[i]) : 0);
  }
  return window;
}

// The least string with this prefix and window.
std::string WithWindow(std::string_view prefix, uint64_t window) {
  std::string value(prefix);
  PutBig64(&value, window);
  while (value.size() > prefix.size() && value.back() == '\0') value.pop_back();
  return value;
}

uint64_t CeilDiv(uint64_t a, uint64_t b) { return (a + b - 1) / b; }

}  // namespace

CellMap::Slope CellMap::SlopeBetween(const Knot& low, const Knot& high, size_t skip) {
  const uint64_t origin = Window(low.value, skip);
  const uint64_t width = Window(high.value, skip) - origin;
  const int shift = std::max(0, static_cast<int>(std::bit_width(width)) - kRunBits);
  return {.skip = skip,
          .origin = origin,
          .shift = shift,
          .run = width >> shift,
          .rise = high.cell - low.cell};
}

void CellMap::Prepare() {
  slopes_.clear();
  for (size_t i = 0; i + 1 < knots_.size(); ++i) {
    const size_t skip = CommonPrefix(knots_[i].value, knots_[i + 1].value);
    slopes_.push_back(SlopeBetween(knots_[i], knots_[i + 1], skip));
  }
  if (knots_.size() >= 2) {
    const Knot& low = knots_[knots_.size() - 2];
    const size_t skip = slopes_.back().skip;
    last_ = SlopeBetween(low, knots_.back(), skip - std::min(skip, kBytesOfGrowth));
    last_.origin = Window(knots_.back().value, last_.skip);
  }
  windows_.clear();
  if (!knots_.empty()) common_ = CommonPrefix(knots_.front().value, knots_.back().value);
  for (const Knot& knot : knots_) windows_.push_back(Window(knot.value, common_));
  version_ = Hash(Serialize(), 0);
}

Result<CellMap> CellMap::Create(std::vector<Knot> knots, uint32_t cells) {
  if (cells < 1 || cells > kMaxCells) {
    return InvalidArgument("a cell map has 1 to " + std::to_string(kMaxCells) + " cells, not " +
                           std::to_string(cells));
  }
  if (knots.size() > kMaxKnots) {
    return InvalidArgument("a cell map has at most " + std::to_string(kMaxKnots) + " knots, not " +
                           std::to_string(knots.size()));
  }
  uint32_t before = 0;
  for (size_t i = 0; i < knots.size(); ++i) {
    if (knots[i].cell <= before || (i > 0 && knots[i].value <= knots[i - 1].value)) {
      return InvalidArgument("knot " + std::to_string(i) +
                             " of a cell map does not lie above the knot before it");
    }
    before = knots[i].cell;
  }
  if (before >= cells) {
    return InvalidArgument("the last knot of a cell map lies in cell " + std::to_string(before) +
                           " of " + std::to_string(cells));
  }
  CellMap map;
  map.cells_ = cells;
  map.knots_ = std::move(knots);
  map.Prepare();
  return map;
}

CellMap CellMap::Fit(std::span<const std::string> sample, FitOptions options) {
  std::vector<std::string_view> values;
  for (const std::string& value : sample) {
    if (values.empty() || values.back() != value) values.push_back(value);
  }
  const uint32_t cells = std::clamp(options.cells, 1u, kMaxCells / 4 * 3);
  const uint32_t all_cells = cells + cells / 4 + 2;
  const size_t steps = std::clamp<size_t>(options.knots, 2, kMaxKnots) - 1;
  std::vector<Knot> knots;
  for (size_t step = 0; step <= steps && !values.empty(); ++step) {
    const uint64_t rank = (values.size() - 1) * step / steps;
    const std::string_view value = values[rank];
    const auto cell = static_cast<uint32_t>(
        1 + (values.size() < 2 ? 0 : rank * (cells - 1) / (values.size() - 1)));
    if (knots.empty()) {
      knots.push_back({std::string(value), cell});
      continue;
    }
    const Knot& before = knots.back();
    const std::string_view cut = value.substr(0, CommonPrefix(before.value, value) + kKnotBytes);
    if (cell > before.cell && cut > before.value) knots.push_back({std::string(cut), cell});
  }
  return *Create(std::move(knots), all_cells);
}

// The first knot above the value. Knots with other windows than the value's need not be compared as
// strings, which is all that most values need.
std::vector<CellMap::Knot>::const_iterator CellMap::FirstAbove(std::string_view value) const {
  auto begin = knots_.begin();
  auto end = knots_.end();
  if (begin != end && value.starts_with(std::string_view(begin->value).substr(0, common_))) {
    const auto same = std::ranges::equal_range(windows_, Window(value, common_));
    end = begin + (same.end() - windows_.begin());
    begin += same.begin() - windows_.begin();
  }
  return std::ranges::upper_bound(begin, end, value, {},
                                  [](const Knot& knot) { return std::string_view(knot.value); });
}

uint32_t CellMap::CellOf(std::string_view value) const {
  const auto above = FirstAbove(value);
  if (above == knots_.begin()) return 0;
  if (above == knots_.end()) return Beyond(value);
  const auto i = static_cast<size_t>(above - knots_.begin()) - 1;
  const Slope& slope = slopes_[i];
  if (slope.run == 0) return knots_[i].cell;
  // At most `run`: the value is less than the upper knot.
  const uint64_t steps = (Window(value, slope.skip) - slope.origin) >> slope.shift;
  return knots_[i].cell + static_cast<uint32_t>(steps * slope.rise / slope.run);
}

uint32_t CellMap::Beyond(std::string_view value) const {
  const Knot& knot = knots_.back();
  if (knots_.size() < 2) return knot.cell;
  if (value.substr(0, last_.skip) != std::string_view(knot.value).substr(0, last_.skip)) {
    return cells_ - 1;
  }
  const uint64_t distance = Window(value, last_.skip) - last_.origin;
  if (last_.run == 0) return distance == 0 ? knot.cell : cells_ - 1;
  const uint64_t steps = distance >> last_.shift;
  const uint64_t room = cells_ - 1 - knot.cell;
  if (steps / last_.run > room) return cells_ - 1;
  const uint64_t rise = steps / last_.run * last_.rise + steps % last_.run * last_.rise / last_.run;
  return knot.cell + static_cast<uint32_t>(std::min(rise, room));
}

std::string CellMap::LowestOf(uint32_t cell) const {
  if (cell == 0 || knots_.empty()) return "";
  if (cell <= knots_.front().cell) return knots_.front().value;
  if (cell > knots_.back().cell) return LowestBeyond(cell);
  // Values below the upper knot of a line may share the knot's cell.
  const auto upper = std::ranges::lower_bound(knots_, cell, {}, &Knot::cell);
  const auto i = static_cast<size_t>(upper - knots_.begin()) - 1;
  const Slope& slope = slopes_[i];
  if (slope.run == 0) return upper->value;
  const uint64_t steps = CeilDiv((cell - knots_[i].cell) * slope.run, slope.rise);
  return WithWindow(std::string_view(upper->value).substr(0, slope.skip),
                    slope.origin + (steps << slope.shift));
}

std::string CellMap::LowestBeyond(uint32_t cell) const {
  const Knot& knot = knots_.back();
  if (knots_.size() < 2) return knot.value;
  const uint64_t steps = last_.run == 0 ? 1 : CeilDiv((cell - knot.cell) * last_.run, last_.rise);
  const std::string_view prefix = std::string_view(knot.value).substr(0, last_.skip);
  if (steps > (~uint64_t{0} - last_.origin) >> last_.shift) {
    // No value with the prefix lies so far above.
    const std::string end = PrefixEnd(prefix);
    return end.empty() ? knot.value : end;
  }
  return std::max(WithWindow(prefix, last_.origin + (steps << last_.shift)), knot.value);
}

std::string CellMap::Serialize() const {
  std::string bytes;
  PutVarint(&bytes, cells_);
  PutVarint(&bytes, knots_.size());
  Knot before;
  for (const Knot& knot : knots_) {
    const size_t shared = CommonPrefix(before.value, knot.value);
    PutVarint(&bytes, shared);
    PutLengthPrefixed(&bytes, std::string_view(knot.value).substr(shared));
    PutVarint(&bytes, knot.cell - before.cell);
    before = knot;
  }
  return bytes;
}

Result<CellMap> CellMap::Deserialize(std::string_view bytes) {
  const Status damaged = DataLoss("cannot read a cell map: its bytes are damaged");
  if (bytes.size() > kMaxBytes) return damaged;
  Reader reader(bytes);
  const uint64_t cells = reader.Varint();
  const uint64_t count = reader.Varint();
  if (!reader.ok() || cells > kMaxCells || count > kMaxKnots) return damaged;
  std::vector<Knot> knots;
  std::string value;
  uint64_t cell = 0;
  size_t kept = 0;  // shared prefixes must not make a short input grow without bound
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t shared = reader.Varint();
    const std::string_view rest = reader.LengthPrefixed();
    const uint64_t rise = reader.Varint();
    if (!reader.ok() || shared > value.size() || rise > kMaxCells) return damaged;
    value = value.substr(0, shared).append(rest);
    cell += rise;
    kept += value.size();
    if (cell > kMaxCells || kept > 16 * kMaxBytes) return damaged;
    knots.push_back({value, static_cast<uint32_t>(cell)});
  }
  if (!reader.AtEnd()) return damaged;
  auto map = Create(std::move(knots), static_cast<uint32_t>(cells));
  // One map has one sequence of bytes: its version is their hash.
  if (!map.ok() || map->Serialize() != bytes) return damaged;
  return map;
}

}  // namespace tamis
