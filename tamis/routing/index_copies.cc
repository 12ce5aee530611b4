#include "tamis/routing/index_copies.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/routing/within.h"

namespace tamis {
namespace {

constexpr size_t kHashesAtOnce = 16;

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

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
    ranges_.resize(slot + 1);
    const size_t whole_words = (slot + 64) / 64 * 64;
    usable_.Resize(whole_words);
    min_prefix_.resize(whole_words, ~uint64_t{0});
    max_prefix_.resize(whole_words, 0);
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
  ranges_[slot] = {};
  PlacePrefixes(slot);
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
  const Copy& copy = *copies_[slot];
  for (const auto column : copy.columns) PlaceOwner(copy, column, slot);
  usable_.Set(slot);
}

void IndexCopies::AddLayer(Slot slot, FilterMatrix::Column column) {
  Copy& copy = *copies_[slot];
  copy.columns.push_back(column);
  copy.matrix->owners.resize(copy.matrix->bits.columns());
  if (usable(slot)) PlaceOwner(copy, column, slot);
}

void IndexCopies::PlaceOwner(const Copy& copy, FilterMatrix::Column column, Slot slot) {
  copy.matrix->owners[column] = {slot, min_prefix_[slot], max_prefix_[slot]};
}

void IndexCopies::Set(Slot slot, uint64_t layer, uint64_t position, bool value) {
  Copy& copy = *copies_[slot];
  FilterMatrix& bits = copy.matrix->bits;
  if (position >= bits.geometry().positions()) return;
  bits.Set(copy.columns[layer], position, value);
}

// ---- Ranges

void IndexCopies::SetRange(Slot slot, bool has_range, std::string_view min, std::string_view max) {
  ValueRange& range = ranges_[slot];
  range = {has_range, std::string(min), std::string(max)};
  if (has_range) {
    const size_t shared = has_common_
                              ? std::min(CommonPrefix(common_, min), CommonPrefix(common_, max))
                              : CommonPrefix(min, max);
    if (!has_common_ || shared < common_.size()) {
      // Happens a few times, until what really is common is found.
      common_ = min.substr(0, shared);
      has_common_ = true;
      for (Slot other = 0; other < ranges_.size(); ++other) PlacePrefixes(other);
      return;
    }
  }
  PlacePrefixes(slot);
}

// Order-preserving, not strictly: a < b gives Prefix(a) <= Prefix(b) for any values.
uint64_t IndexCopies::Prefix(std::string_view value) const {
  if (!value.starts_with(common_)) return value < std::string_view(common_) ? 0 : ~uint64_t{0};
  value.remove_prefix(common_.size());
  uint64_t prefix = 0;
  for (size_t i = 0; i < 8; ++i) {
    prefix = prefix << 8 | (i < value.size() ? static_cast<unsigned char>(value[i]) : 0);
  }
  return prefix;
}

void IndexCopies::PlacePrefixes(Slot slot) {
  const ValueRange& range = ranges_[slot];
  min_prefix_[slot] = range.known ? Prefix(range.min) : ~uint64_t{0};
  max_prefix_[slot] = range.known ? Prefix(range.max) : 0;
  if (!usable(slot)) return;
  for (const auto column : copies_[slot]->columns) PlaceOwner(*copies_[slot], column, slot);
}

bool IndexCopies::Covers(Slot slot, uint64_t min_prefix, uint64_t max_prefix,
                         std::string_view value, uint64_t prefix) const {
  if (prefix < min_prefix || prefix > max_prefix) return false;
  if (prefix > min_prefix && prefix < max_prefix) return true;
  const ValueRange& range = ranges_[slot];
  return range.known && range.min <= value && value <= range.max;
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
        const uint64_t prefix = Prefix(batch[i].first);
        for (const Matrix::Owner* owner : owners) {
          if (owner->slot == kNobody || may->Get(owner->slot)) continue;
          if (Covers(owner->slot, owner->min_prefix, owner->max_prefix, batch[i].first, prefix)) {
            may->Set(owner->slot);
          }
        }
      }
    }
  }
}

void IndexCopies::AddThoseThatCover(std::string_view value, RegionBits* may) const {
  AddUnknown(may);
  const uint64_t prefix = Prefix(value);
  for (Slot slot = 0; slot < ranges_.size() && slot < may->size(); ++slot) {
    if (may->Get(slot)) continue;
    if (Covers(slot, min_prefix_[slot], max_prefix_[slot], value, prefix)) may->Set(slot);
  }
}

void IndexCopies::AddThoseInRange(std::string_view low, std::string_view high,
                                  RegionBits* may) const {
  AddUnknown(may);
  const size_t words = std::min(usable_.words(), may->words());
  const uint64_t low_prefix = Prefix(low);
  const uint64_t high_prefix = high.empty() ? ~uint64_t{0} : Prefix(high);
  std::vector<uint64_t> inside(words), edge(words);
  FindWithin(min_prefix_.data(), max_prefix_.data(), words, low_prefix, high_prefix, inside.data(),
             edge.data());
  for (size_t word = 0; word < words; ++word) {
    uint64_t sure = inside[word];
    for (uint64_t bits = edge[word] & usable_.Word(word); bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits);
      const ValueRange& range = ranges_[word * 64 + static_cast<size_t>(bit)];
      if (range.known && range.max >= low && (high.empty() || range.min < high)) {
        sure |= uint64_t{1} << bit;
      }
    }
    may->SetWord(word, may->Word(word) | sure);
  }
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
