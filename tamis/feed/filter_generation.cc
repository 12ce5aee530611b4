#include "tamis/feed/filter_generation.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"

namespace tamis {
namespace {

// Bits of a snapshot's first byte.
constexpr uint8_t kHasRange = 1;
constexpr uint8_t kHasCells = 2;
constexpr uint8_t kRangeIsStale = 4;

}  // namespace

FilterGeneration::Changes FilterGeneration::Add(std::span<const EntryKey> entries) {
  as_restored = false;
  for (const EntryKey& entry : entries) added += entry.hashes.size();
  Changes changes;
  const size_t layers_before = filter.layers();
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      filter.Insert(hash, [&](uint32_t layer, uint64_t position, bool set) {
        changes.flips.push_back(BitName(layer, position) * 2 + (set ? 1 : 0));
      });
    }
    changes.widened |= Widen(&range, entry.first);
    if (!cells.has_value()) continue;
    const uint32_t cell = cells->map->CellOf(entry.first);
    if (cells->occupied.Insert(cell)) changes.cells.push_back(cell);
  }
  changes.grown = filter.layers() != layers_before;
  return changes;
}

FilterGeneration::Flips FilterGeneration::RemoveHashes(std::span<const EntryKey> entries) {
  as_restored = false;
  Flips flips;
  for (const EntryKey& entry : entries) {
    for (const uint64_t hash : entry.hashes) {
      filter.Erase(hash, [&](uint32_t layer, uint64_t position, bool set) {
        flips.push_back(BitName(layer, position) * 2 + (set ? 1 : 0));
      });
    }
  }
  return flips;
}

void FilterGeneration::LeaveToClearer(std::string_view first) {
  range_stale |= range.has_value() && (first == range->first || first == range->second);
  if (cells.has_value()) cells->removed_from.Insert(cells->map->CellOf(first));
}

FilterGeneration::Flips FilterGeneration::Remove(std::span<const EntryKey> entries) {
  for (const EntryKey& entry : entries) LeaveToClearer(entry.first);
  return RemoveHashes(entries);
}

bool FilterGeneration::MayContain(const EntryKey& entry) const {
  return Covers(range, entry.first) &&
         (!cells.has_value() || cells->occupied.Contains(cells->map->CellOf(entry.first))) &&
         std::ranges::all_of(entry.hashes,
                             [this](uint64_t hash) { return filter.FindLayer(hash).has_value(); });
}

uint64_t FilterGeneration::Entries(size_t columns) const {
  const uint64_t counted = filter.Count() / std::max<size_t>(1, columns);
  return counted - std::min(counted, forgotten);
}

size_t FilterGeneration::SizeBytes() const {
  return filter.SizeBytes() + (cells.has_value() ? cells->SizeBytes() : 0);
}

void FilterGeneration::ProjectLayers(const pb::ColumnId& from, size_t max_bytes,
                                     pb::Projection* projection) const {
  const SplitGeometry& geometry = filter.geometry();
  projection->mutable_geometry()->set_slices(geometry.slices);
  projection->mutable_geometry()->set_slice_positions(geometry.slice_positions);
  const auto layer_count = static_cast<uint32_t>(filter.layers());
  const uint64_t layer_words = (geometry.positions() + 63) / 64;
  projection->set_layer_count(layer_count);
  if (from.generation() == number && from.first_layer() < layer_count &&
      from.first_word() < layer_words) {
    projection->set_first_layer(from.first_layer());
    projection->set_first_word(from.first_word());
  }
  uint64_t words_left = std::max<uint64_t>(1, max_bytes / 8);
  uint64_t word = projection->first_word();
  for (uint32_t layer = projection->first_layer(); layer < layer_count && words_left > 0; ++layer) {
    const std::vector<uint64_t> words = filter.Projection(layer);
    const uint64_t end = word + std::min(words_left, layer_words - word);
    words_left -= end - word;
    std::string* bytes = projection->add_layers();
    bytes->reserve((end - word) * 8);
    for (; word < end; ++word) PutFixed64(bytes, words[word]);
    word = 0;
  }
}

void FilterGeneration::ProjectCells(const CellSet& occupied, const pb::ColumnId& from,
                                    size_t max_bytes, pb::Projection* projection) {
  projection->set_cell_count(occupied.cells());
  if (from.generation() == projection->generation() && from.first_cell() < occupied.cells()) {
    projection->set_first_cell(from.first_cell());
  }
  uint32_t end = 0;
  projection->set_cells(occupied.Encode(projection->first_cell(), max_bytes, &end));
  projection->set_end_cell(end);
}

std::optional<std::string> FilterGeneration::Serialize() const {
  if (filter.bits_only() || forgotten > 0) return std::nullopt;
  std::string body;
  body.push_back(static_cast<char>((range.has_value() ? kHasRange : 0) |
                                   (cells.has_value() ? kHasCells : 0) |
                                   (range_stale ? kRangeIsStale : 0)));
  if (range.has_value()) {
    PutLengthPrefixed(&body, range->first);
    PutLengthPrefixed(&body, range->second);
  }
  if (cells.has_value()) cells->Serialize(&body);
  body += filter.counters()->Serialize();
  std::string bytes;
  PutFixed64(&bytes, Hash(body, 0));
  return bytes + body;
}

std::optional<FilterGeneration> FilterGeneration::Deserialize(
    std::string_view bytes, const IndexSpec& index, const std::shared_ptr<const CellMap>& map,
    const Faults& faults) {
  Reader reader(bytes);
  const uint64_t checksum = reader.Fixed64();
  if (!reader.ok() || checksum != Hash(reader.rest(), 0)) return std::nullopt;
  const uint8_t parts = reader.Byte();
  std::optional<ValueRange> range;
  if ((parts & kHasRange) != 0) {
    const std::string_view first = reader.LengthPrefixed();
    const std::string_view second = reader.LengthPrefixed();
    range.emplace(first, second);
  }
  if (!reader.ok() || parts > (kHasRange | kHasCells | kRangeIsStale)) return std::nullopt;
  if ((map != nullptr) != ((parts & kHasCells) != 0)) return std::nullopt;
  std::optional<RegionCells> cells;
  if (map != nullptr) {
    cells = RegionCells::Deserialize(map, &reader);
    if (!cells.has_value()) return std::nullopt;
  }
  auto filter = ScalableSplitCountingBloomFilter::Deserialize(reader.rest());
  if (!filter.ok() || filter->seed() != index.seed) return std::nullopt;
  // Any size: it was made for the region. The rate is that of the index.
  if (filter->geometry().slices != SplitGeometry::For(index.fpr, 1).slices) return std::nullopt;
  filter->set_erase_first_match_for_test(faults.erase_first_match);
  return FilterGeneration{.filter = IndexCounters(*std::move(filter)),
                          .cells = std::move(cells),
                          .range = std::move(range),
                          .range_stale = (parts & kRangeIsStale) != 0,
                          .as_restored = true,
                          .counted = true};
}

}  // namespace tamis
