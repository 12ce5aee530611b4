#include "tamis/routing/reply_projections.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/routing/load_columns.h"

namespace tamis {
namespace {

// Whether the projection has all bits of the copy.
bool IsWhole(const pb::Projection& projection, const IndexCopies::Copy& copy) {
  const size_t layer_bytes = (copy.geometry.positions() + 63) / 64 * 8;
  const auto layers = static_cast<uint32_t>(projection.layers_size());
  const SplitGeometry geometry{.slices = projection.geometry().slices(),
                               .slice_positions = projection.geometry().slice_positions()};
  return copy.generation == projection.generation() && geometry == copy.geometry && layers >= 1 &&
         layers <= FeedCopy::kMaxLayers && projection.first_layer() == 0 &&
         projection.first_word() == 0 &&
         (projection.layer_count() == 0 || projection.layer_count() == layers) &&
         std::ranges::all_of(projection.layers(),
                             [&](const std::string& layer) { return layer.size() == layer_bytes; });
}

}  // namespace

const RoutedServer::Region* ReplyProjections::FindRegion(const pb::Projection& projection) const {
  const auto found = server_.regions.find(projection.region_id());
  return found == server_.regions.end() || found->second.epoch != projection.epoch()
             ? nullptr
             : &found->second;
}

void ReplyProjections::Load() {
  std::vector<Loading> loadings;
  std::map<IndexCopies::Matrix*, std::vector<FilterMatrix::Filling>> fillings;
  size_t begun = 0;
  for (const pb::Projection& projection : reply_.projections()) {
    if (++begun % FeedCopy::kEventsAtOnce == 0) FeedCopy::LetOthers(lock_);
    if (projection.cell_map() != 0) {
      TakeCells(projection);
      continue;
    }
    auto loading = Begin(projection);
    if (!loading) continue;
    const IndexCopies::Copy& copy = *loading->copies->Find(loading->slot);
    for (size_t layer = 0; layer < copy.columns.size(); ++layer) {
      if (loading->parts) {
        const std::vector<uint64_t>& words = loading->parts->layers()[layer];
        fillings[copy.matrix].emplace_back(copy.columns[layer], std::span(words));
      } else {
        fillings[copy.matrix].emplace_back(
            copy.columns[layer], std::string_view(projection.layers(static_cast<int>(layer))));
      }
    }
    loadings.push_back(std::move(*loading));
  }
  for (auto& [matrix, columns] : fillings) LoadColumns(&matrix->bits, columns, lock_);
  for (size_t i = 0; i < loadings.size(); ++i) {
    if (i % FeedCopy::kEventsAtOnce == 0) FeedCopy::LetOthers(lock_);
    End(loadings[i]);
  }
}

// Gives columns to the copy when with this projection all its bits are here, and room for them.
std::optional<ReplyProjections::Loading> ReplyProjections::Begin(const pb::Projection& projection) {
  const RoutedServer::Region* const region = FindRegion(projection);
  if (region == nullptr) return {};
  const IndexCopies::Slot slot = region->slot;
  IndexCopies* copies = copy_.CopiesOf(*region, projection.index_id());
  if (copies == nullptr) return {};
  IndexCopies::Copy& copy = *copies->Find(slot);
  // The events of the reply lead from the number of the bits to where the copy stands.
  const bool is_ahead = projection.as_of() > reply_.to() && !copy_.faults().newer_projections;
  if (copy.matrix != nullptr || is_ahead || projection.as_of() < reply_.from()) return {};
  Loading loading{&projection, slot, copies, nullptr};
  auto layers = static_cast<uint32_t>(projection.layers_size());
  if (copy.arriving || !IsWhole(projection, copy)) {
    if (!copy.arriving) {
      copy.arriving =
          std::make_unique<ProjectionParts>(copy.geometry, copy.generation, FeedCopy::kMaxLayers);
    }
    if (!copy.arriving->Add(projection)) return {};
    if (!copy.arriving->complete()) {
      events_.Replay(projection, copies, slot);
      return {};
    }
    loading.parts = std::move(copy.arriving);
    layers = static_cast<uint32_t>(loading.parts->layers().size());
  }
  if (!copy_.budget().MakeRoom(copies, copy.geometry, layers, lock_)) return {};
  MakeColumns(copies, slot, layers);
  return loading;
}

void ReplyProjections::MakeColumns(IndexCopies* copies, IndexCopies::Slot slot, uint32_t layers) {
  IndexCopies::Copy& copy = *copies->Find(slot);
  copy.layers = layers;
  if (copies->GrowthBytes(copy.geometry, layers) > 0) {
    // Makes room for all copies of the geometry that wait for columns, if max_bytes allows it.
    const size_t lacking = copies->Lacking(copy.geometry);
    if (lacking > 0 && copy_.budget().HasRoom(*copies, copy.geometry, lacking)) {
      copies->ReserveLacking(copy.geometry);
    }
  }
  copies->GiveColumns(slot);
}

// All bits have arrived: from now on searches use the copy.
void ReplyProjections::End(const Loading& loading) {
  const pb::Projection& projection = *loading.projection;
  IndexCopies* copies = loading.copies;
  copies->SetRange(loading.slot, projection.has_range(), projection.min(), projection.max());
  server_.missing.erase({projection.index_id(), projection.region_id()});
  if (!events_.Replay(projection, copies, loading.slot)) return;
  if (copies->Find(loading.slot)->matrix != nullptr) copies->Use(loading.slot);
}

// Takes a part of the bits of cells; with the last one the copy is used.
void ReplyProjections::TakeCells(const pb::Projection& part) {
  const RoutedServer::Region* const region = FindRegion(part);
  if (region == nullptr) return;
  CellCopies* const cells = copy_.CellsOf(*region, part.index_id());
  if (cells == nullptr || cells->usable(region->slot)) return;
  const CellCopies::Copy& copy = *cells->Find(region->slot);
  const bool is_of_copy = part.generation() == copy.generation &&
                          part.cell_map() == copy.version->version &&
                          part.cell_count() == copy.version->bits.cells();
  // The events of the reply lead from the number of the bits to where the copy stands.
  if (!is_of_copy || part.as_of() > reply_.to() || part.as_of() < reply_.from()) return;
  if (!cells->Add(region->slot, part.cells(), part.first_cell(), part.end_cell())) return;
  if (!events_.ReplayCells(part, copy_.CopiesOf(*region, part.index_id()), region->slot)) {
    return copy_.DropIndex(&server_, part.region_id(), part.index_id());
  }
  if (!cells->arrived(region->slot)) return;
  if (!copy_.HasRoomForCells(*region, *cells)) return cells->StartOver(region->slot);
  LoadCells(*region, cells);
  server_.missing_cells.erase({part.index_id(), part.region_id()});
}

void ReplyProjections::LoadCells(const RoutedServer::Region& region, CellCopies* cells) {
  CellMatrix& matrix = cells->Find(region.slot)->version->bits;
  matrix.Reserve(std::max<size_t>(copy_.TableOf(region).layout.slots(), region.slot + 1));
  const std::span<const uint64_t> arrived = cells->Find(region.slot)->arriving.words();
  std::vector<uint64_t> words(arrived.begin(), arrived.end());
  for (size_t level = 0; level < matrix.levels(); ++level) {
    const FilterMatrix::Filling filling(region.slot, words);
    LoadColumns(&matrix.level(level), std::span(&filling, 1), lock_);
    words = CellMatrix::Summary(words);
  }
  cells->Use(region.slot);
}

}  // namespace tamis
