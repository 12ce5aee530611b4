#include "tamis/routing/index_copies.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

namespace tamis {
namespace {

constexpr size_t kHashesAtOnce = 16;

}  // namespace

// ---- Taking in

const IndexCopies::Matrix* IndexCopies::FindMatrix(SplitGeometry geometry) const {
  for (const auto& matrix : matrices_) {
    if (matrix->geometry == geometry) return matrix.get();
  }
  return nullptr;
}

IndexCopies::Matrix* IndexCopies::MatrixOf(SplitGeometry geometry) {
  if (const Matrix* matrix = FindMatrix(geometry)) return const_cast<Matrix*>(matrix);
  return matrices_.emplace_back(std::make_unique<Matrix>(geometry)).get();
}

size_t& IndexCopies::WithoutColumns(SplitGeometry geometry) {
  const auto found =
      std::ranges::find(without_columns_, geometry, &std::pair<SplitGeometry, size_t>::first);
  if (found != without_columns_.end()) return found->second;
  // Geometries that no copy has any more are forgotten.
  std::erase_if(without_columns_, [](const auto& of) { return of.second == 0; });
  return without_columns_.emplace_back(geometry, 0).second;
}

void IndexCopies::Begin(Slot slot, Copy copy) {
  Drop(slot);
  if (copies_.size() <= slot) {
    copies_.resize(slot + 1);
    ranges_.Reserve(slot);
    usable_.Resize((slot + 64) / 64 * 64);
  }
  ++WithoutColumns(copy.geometry);
  copies_[slot] = std::make_unique<Copy>(std::move(copy));
  ++count_;
}

void IndexCopies::Drop(Slot slot) {
  if (Find(slot) == nullptr) return;
  cells_.Drop(slot);
  FreeColumns(slot);
  --WithoutColumns(copies_[slot]->geometry);
  copies_[slot].reset();
  --count_;
  ranges_.Clear(slot);
}

void IndexCopies::FreeColumns(Slot slot) {
  Copy& copy = *copies_[slot];
  usable_.Unset(slot);
  if (copy.matrix == nullptr) return;
  for (const auto column : copy.columns) {
    copy.matrix->owners[column] = {};
    copy.matrix->bits.Free(column);
  }
  copy.columns.clear();
  ++WithoutColumns(copy.geometry);
  copy.matrix = nullptr;
  DropUnused();
}

size_t IndexCopies::Lacking(SplitGeometry geometry) {
  const size_t wanted = WithoutColumns(geometry);
  const Matrix* matrix = FindMatrix(geometry);
  return matrix != nullptr && matrix->bits.columns_free() >= wanted ? 0 : wanted;
}

void IndexCopies::ReserveLacking(SplitGeometry geometry) {
  FilterMatrix& bits = MatrixOf(geometry)->bits;
  bits.Reserve(bits.columns_in_use() + Lacking(geometry));
}

void IndexCopies::GiveColumns(Slot slot) {
  Copy& copy = *copies_[slot];
  assert(copy.matrix == nullptr && copy.layers > 0);
  copy.matrix = MatrixOf(copy.geometry);
  --WithoutColumns(copy.geometry);
  for (uint32_t layer = 0; layer < copy.layers; ++layer) {
    copy.columns.push_back(copy.matrix->bits.Allocate());
  }
  copy.matrix->owners.resize(copy.matrix->bits.columns());
}

void IndexCopies::Use(Slot slot) {
  usable_.Set(slot);
  PlaceOwners(slot);
}

void IndexCopies::AddLayer(Slot slot, FilterMatrix::Column column) {
  Copy& copy = *copies_[slot];
  copy.columns.push_back(column);
  copy.matrix->owners.resize(copy.matrix->bits.columns());
  PlaceOwners(slot);
}

// From now on searches ask the columns of a usable copy, with the range as it is.
void IndexCopies::PlaceOwners(Slot slot) {
  if (!usable(slot)) return;
  const Copy& copy = *copies_[slot];
  for (const auto column : copy.columns) {
    copy.matrix->owners[column] = {slot, ranges_.prefixes(slot)};
  }
}

void IndexCopies::Set(Slot slot, uint64_t layer, uint64_t position, bool value) {
  Copy& copy = *copies_[slot];
  FilterMatrix& bits = copy.matrix->bits;
  if (position >= bits.geometry().positions()) return;
  bits.Set(copy.columns[layer], position, value);
}

void IndexCopies::SetRange(Slot slot, bool has_range, std::string_view min, std::string_view max) {
  if (ranges_.Set(slot, has_range, min, max)) {
    for (Slot each = 0; each < copies_.size(); ++each) PlaceOwners(each);
  } else {
    PlaceOwners(slot);
  }
}

// ---- Answering

void IndexCopies::AddUnknown(RegionBits* may) const { may->AddAllBut(usable_); }

void IndexCopies::AddThoseWith(std::span<const Value> values, RegionBits* may) const {
  AddUnknown(may);
  std::vector<uint64_t> columns;
  std::vector<const Matrix::Owner*> owners;  // owners of columns that match
  uint64_t hashes[kHashesAtOnce];
  for (size_t first = 0; first < values.size(); first += kHashesAtOnce) {
    const auto batch = values.subspan(first, std::min(kHashesAtOnce, values.size() - first));
    for (size_t i = 0; i < batch.size(); ++i) hashes[i] = batch[i].hash;
    for (const auto& matrix : matrices_) {
      matrix->bits.Probe(std::span(hashes, batch.size()), &columns);
      const size_t words = matrix->bits.columns() / 64;
      for (size_t i = 0; i < batch.size(); ++i) {
        // With many regions most owners are outside of the caches: all are prefetched before the
        // first is read.
        owners.clear();
        for (size_t word = 0; word < words; ++word) {
          for (uint64_t bits = columns[i * words + word]; bits != 0; bits &= bits - 1) {
            owners.push_back(
                &matrix->owners[word * 64 + static_cast<size_t>(std::countr_zero(bits))]);
            __builtin_prefetch(owners.back());
          }
        }
        const uint64_t prefix = ranges_.Prefix(batch[i].first);
        for (const Matrix::Owner* owner : owners) {
          if (owner->slot == kNoSlot || may->Get(owner->slot)) continue;
          if (ranges_.Covers(owner->slot, owner->ends, batch[i].first, prefix)) {
            may->Set(owner->slot);
          }
        }
      }
    }
  }
}

void IndexCopies::AddThoseThatCover(std::string_view value, RegionBits* may) const {
  AddUnknown(may);
  ranges_.AddThoseThatCover(value, may);
}

void IndexCopies::AddThoseInRange(std::string_view low, std::string_view high,
                                  RegionBits* may) const {
  AddUnknown(may);
  ranges_.AddThoseWithin(low, high, usable_, may);
}

size_t IndexCopies::SizeBytes() const {
  size_t size = cells_.SizeBytes();
  for (const auto& matrix : matrices_) size += matrix->bits.SizeBytes();
  return size;
}

size_t IndexCopies::GrowthBytes(SplitGeometry geometry, size_t columns) const {
  const Matrix* matrix = FindMatrix(geometry);
  return matrix != nullptr ? matrix->bits.GrowthBytes(columns)
                           : FilterMatrix(geometry).GrowthBytes(columns);
}

// ---- Fewer slices

size_t IndexCopies::LeastBytes() const {
  size_t size = cells_.SizeBytes();
  for (const auto& matrix : matrices_) {
    size += matrix->bits.SizeBytes() / matrix->bits.geometry().slices;
  }
  return size;
}

size_t IndexCopies::LeastGrowthBytes(SplitGeometry geometry, size_t columns) const {
  const Matrix* matrix = FindMatrix(geometry);
  const uint32_t slices = matrix != nullptr ? matrix->bits.geometry().slices : geometry.slices;
  return GrowthBytes(geometry, columns) / slices;
}

void IndexCopies::DropUnused() {
  std::erase_if(matrices_, [](const auto& matrix) { return matrix->bits.columns_in_use() == 0; });
}

double IndexCopies::CostOfCut(const Matrix& matrix) {
  const SplitGeometry& geometry = matrix.bits.geometry();
  return std::ldexp(1.0 / geometry.slice_positions, -static_cast<int>(geometry.slices));
}

IndexCopies::Matrix* IndexCopies::CheapestToCut() const {
  Matrix* cheapest = nullptr;
  for (const auto& matrix : matrices_) {
    if (matrix->bits.geometry().slices == 1) continue;
    if (cheapest == nullptr || CostOfCut(*matrix) < CostOfCut(*cheapest)) cheapest = matrix.get();
  }
  return cheapest;
}

size_t IndexCopies::CoarseColumns() const {
  size_t columns = 0;
  for (const auto& matrix : matrices_) {
    if (matrix->bits.geometry() != matrix->geometry) columns += matrix->bits.columns_in_use();
  }
  return columns;
}

}  // namespace tamis
