#include "tamis/routing/cell_copies.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace tamis {

void CellCopies::Begin(Slot slot, uint64_t generation, uint64_t version, uint32_t cells) {
  assert(cells > 0);
  Drop(slot);
  if (copies_.size() <= slot) copies_.resize(slot + 1);
  auto found = std::ranges::find_if(versions_, [&](const auto& there) {
    return there->version == version && there->bits.cells() == cells;
  });
  if (found == versions_.end()) {
    versions_.push_back(std::make_unique<Version>(version, cells));
    found = std::prev(versions_.end());
  }
  copies_[slot] = std::make_unique<Copy>();
  copies_[slot]->generation = generation;
  copies_[slot]->version = found->get();
  ++(*found)->copies;
}

void CellCopies::Drop(Slot slot) {
  if (Find(slot) == nullptr) return;
  Version* const version = copies_[slot]->version;
  if (slot < version->usable.size()) version->usable.Unset(slot);
  copies_[slot].reset();
  if (--version->copies > 0) return;
  std::erase_if(versions_, [&](const auto& there) { return there.get() == version; });
}

bool CellCopies::usable(Slot slot) const {
  const Copy* copy = Find(slot);
  return copy != nullptr && slot < copy->version->usable.size() && copy->version->usable.Get(slot);
}

bool CellCopies::Add(Slot slot, std::string_view part, uint32_t first, uint32_t end) {
  Copy& copy = *copies_[slot];
  const uint32_t cells = copy.version->bits.cells();
  if (usable(slot) || first != copy.arrived_to || end <= first || end > cells) return false;
  if (copy.arriving.cells() == 0) copy.arriving = CellSet(cells);
  if (!copy.arriving.Decode(part, first, end)) return false;
  copy.arrived_to = end;
  return true;
}

bool CellCopies::arrived(Slot slot) const {
  const Copy* copy = Find(slot);
  return copy != nullptr && copy->arrived_to == copy->version->bits.cells();
}

void CellCopies::StartOver(Slot slot) {
  copies_[slot]->arriving = CellSet();
  copies_[slot]->arrived_to = 0;
}

bool CellCopies::Set(Slot slot, uint32_t cell, bool value) {
  Copy& copy = *copies_[slot];
  if (cell >= copy.version->bits.cells()) return false;
  if (usable(slot)) {
    copy.version->bits.Set(slot, cell, value);
  } else if (cell < copy.arrived_to) {
    if (value) {
      copy.arriving.Insert(cell);
    } else {
      copy.arriving.Erase(cell);
    }
  }
  return true;
}

void CellCopies::Use(Slot slot) {
  Copy& copy = *copies_[slot];
  RegionBits& usable = copy.version->usable;
  if (usable.size() <= slot) usable.Resize(slot / 64 * 64 + 64);
  usable.Set(slot);
  copy.arriving = CellSet();
}

void CellCopies::RemoveThoseWithout(uint64_t version, uint32_t first, uint32_t last,
                                    RegionBits* may) const {
  for (const auto& of : versions_) {
    if (of->version != version || first > last || last >= of->bits.cells()) continue;
    std::vector<uint64_t> columns(of->bits.columns() / 64);
    of->bits.AddAnyIn(first, last, columns);
    const size_t words = std::min({columns.size(), of->usable.words(), may->words()});
    for (size_t word = 0; word < words; ++word) {
      may->SetWord(word, may->Word(word) & ~(of->usable.Word(word) & ~columns[word]));
    }
  }
}

std::vector<CellCopies::FirstCell> CellCopies::FirstCellsIn(uint64_t version, uint32_t first,
                                                            uint32_t last, bool backward) const {
  constexpr size_t kMostWords = 1 << 16;  // to read
  std::vector<FirstCell> begins;
  for (const auto& of : versions_) {
    if (of->version != version || first > last || last >= of->bits.cells()) continue;
    RegionBits left = of->usable;  // regions that no cell was found of
    std::vector<uint64_t> row(of->bits.columns() / 64);
    begins.resize(std::max(begins.size(), left.size()));
    const uint32_t end = backward ? first : last;
    uint32_t cell = backward ? last : first;
    for (size_t read = row.size();; read += row.size()) {
      std::ranges::fill(row, 0);
      of->bits.AddAnyIn(cell, cell, row);
      for (size_t word = 0; word < std::min(row.size(), left.words()); ++word) {
        for (uint64_t bits = row[word] & left.Word(word); bits != 0; bits &= bits - 1) {
          const size_t slot = word * 64 + static_cast<size_t>(std::countr_zero(bits));
          begins[slot] = {.known = true, .cell = cell};
        }
        left.SetWord(word, left.Word(word) & ~row[word]);
      }
      const bool has_ended = cell == end;
      if (has_ended || read > kMostWords || left.Find(0, true) == left.size()) {
        const uint32_t next = backward ? cell - 1 : cell + 1;
        left.ForEach(
            [&](size_t slot) { begins[slot] = {.known = true, .none = has_ended, .cell = next}; });
        break;
      }
      cell = backward ? cell - 1 : cell + 1;
    }
  }
  return begins;
}

size_t CellCopies::SizeBytes() const {
  size_t size = 0;
  for (const auto& version : versions_) size += version->bits.SizeBytes();
  return size;
}

size_t CellCopies::GrowthBytes(Slot slot, size_t slots) const {
  return Find(slot)->version->bits.GrowthBytes(std::max<size_t>(slots, slot + 1));
}

}  // namespace tamis
