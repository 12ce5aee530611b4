// CellSet: one bit for each cell of a CellMap, and its compressed bytes.
//
//   Memory      one bit per cell
//   Bytes       Rice code of the gaps: about 5.5 bits for each cell that is set where one in 16 is,
//               9.5 where one in 256 is (docs/FORMATS.md#cell-sets). They may come in parts, each
//               of which covers a range of cells
//   Threads     const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tamis {

class CellSet {
 public:
  explicit CellSet(uint32_t cells = 0) : cells_(cells), words_((uint64_t{cells} + 63) / 64) {}

  uint32_t cells() const { return cells_; }
  uint32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }
  // REQUIRES, here and below: cell < cells().
  bool Contains(uint32_t cell) const { return (words_[cell / 64] >> (cell % 64) & 1) != 0; }
  // False: it was there already.
  bool Insert(uint32_t cell);
  // False: it was not there.
  bool Erase(uint32_t cell);
  void Clear();

  // The first cell of the set at or behind `from`; cells() when there is none.
  uint32_t Next(uint32_t from) const;
  std::span<const uint64_t> words() const { return words_; }
  size_t SizeBytes() const { return words_.size() * sizeof(uint64_t); }

  // The cells from `first` on in at most about max_bytes, but one cell at the least. *end is where
  // the next part begins; cells() when this is the last one.
  std::string Encode(uint32_t first, size_t max_bytes, uint32_t* end) const;
  // Inserts the cells of a part that covers [first, end). False, and nothing is changed, when the
  // bytes are damaged. Any bytes are safe.
  [[nodiscard]] bool Decode(std::string_view bytes, uint32_t first, uint32_t end);

  friend bool operator==(const CellSet& a, const CellSet& b) {
    return a.cells_ == b.cells_ && a.words_ == b.words_;
  }

 private:
  uint32_t cells_;
  uint32_t count_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace tamis
