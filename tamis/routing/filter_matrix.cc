#include "tamis/routing/filter_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

#include "tamis/routing/and_rows.h"

namespace tamis {
namespace {

constexpr size_t kFirstBlockColumns = 64;
constexpr size_t kLargestBlockColumns = 4096;
constexpr size_t kLineWords = 8;
constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed pages. A probe jumps to k places in every block: with pages of 2 MB, where the system has
// them, that costs no page walk.
struct Unmap {
  size_t size;
  void operator()(uint64_t* words) const { munmap(words, size); }
};
using Pages = std::unique_ptr<uint64_t[], Unmap>;

Pages MapZeroed(size_t size) {
  const size_t page = size >= kHugePage ? kHugePage : 4096;
  size = (size + page - 1) / page * page;
  // Of the surplus that aligning needs nothing is ever touched, so it costs address space only.
  const size_t mapped = size + (page == kHugePage ? kHugePage : 0);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  char* begin = static_cast<char*>(memory);
  if (page == kHugePage) {
    char* aligned =
        begin + (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
    if (aligned != begin) munmap(begin, aligned - begin);
    char* end = begin + mapped;
    if (aligned + size != end) munmap(aligned + size, end - (aligned + size));
    begin = aligned;
    (void)madvise(begin, size, MADV_HUGEPAGE);  // a wish; small pages do as well, only slower
  }
  return Pages(reinterpret_cast<uint64_t*>(begin), Unmap{size});
}

// Bit j of word i becomes bit i of word j (Hacker's Delight, section 7-3, for bit 0 lowest).
void Transpose64(std::array<uint64_t, 64>* a) {
  uint64_t mask = 0x00000000ffffffffu;
  for (uint32_t j = 32; j != 0; j >>= 1, mask ^= mask << j) {
    for (uint32_t k = 0; k < 64; k = (k + j + 1) & ~j) {
      const uint64_t t = (((*a)[k] >> j) ^ (*a)[k + j]) & mask;
      (*a)[k] ^= t << j;
      (*a)[k + j] ^= t;
    }
  }
}

static_assert(std::endian::native == std::endian::little);

size_t NextBlockColumns(size_t there) {
  return std::clamp(there, kFirstBlockColumns, kLargestBlockColumns);
}

uint64_t WordOf(const FilterMatrix::Filling& filling, uint64_t i) {
  uint64_t word = 0;
  if (!filling.bytes.empty()) std::memcpy(&word, filling.bytes.data() + i * 8, 8);
  return word;
}

}  // namespace

struct FilterMatrix::Block {
  size_t first_column;
  size_t words_per_row;
  size_t size_bytes;
  Pages words;

  uint64_t* Row(uint64_t position) const { return words.get() + position * words_per_row; }
  uint64_t& Word(uint64_t position, Column column) const {
    return Row(position)[(column - first_column) / 64];
  }
};

FilterMatrix::FilterMatrix(SplitGeometry geometry) : geometry_(geometry) {
  assert(geometry.IsValid());
}
FilterMatrix::FilterMatrix(FilterMatrix&&) noexcept = default;
FilterMatrix& FilterMatrix::operator=(FilterMatrix&&) noexcept = default;
FilterMatrix::~FilterMatrix() = default;

void FilterMatrix::AddBlock(size_t columns) {
  const size_t words_per_row = columns / 64;
  const size_t size_bytes = geometry_.positions() * words_per_row * sizeof(uint64_t);
  blocks_.push_back({columns_, words_per_row, size_bytes, MapZeroed(size_bytes)});
  // Behind the freed columns that there are, the lowest of the new ones last.
  std::vector<Column> added(columns);
  for (size_t i = 0; i < columns; ++i) {
    added[i] = static_cast<Column>(columns_ + columns - 1 - i);
  }
  free_.insert(free_.begin(), added.begin(), added.end());
  columns_ += columns;
}

FilterMatrix::Column FilterMatrix::Allocate() {
  if (free_.empty()) AddBlock(NextBlockColumns(columns_));
  const Column column = free_.back();
  free_.pop_back();
  return column;
}

void FilterMatrix::Reserve(size_t columns) {
  while (columns_ < columns) {
    AddBlock(
        std::clamp(std::bit_floor(columns - columns_), kFirstBlockColumns, kLargestBlockColumns));
  }
}

void FilterMatrix::Free(Column column) { free_.push_back(column); }

const FilterMatrix::Block& FilterMatrix::BlockOf(Column column) const {
  assert(column < columns_);
  const auto next =
      std::upper_bound(blocks_.begin(), blocks_.end(), column,
                       [](Column c, const Block& block) { return c < block.first_column; });
  return *std::prev(next);
}

void FilterMatrix::Load(Column column, std::span<const uint64_t> projection) {
  const Filling filling(column, projection);
  Load(std::span(&filling, 1));
}

void FilterMatrix::Load(std::span<const Filling> fillings) {
  Load(fillings, 0, geometry_.positions());
}

void FilterMatrix::Load(std::span<const Filling> fillings, uint64_t from, uint64_t to) {
  std::vector<Filling> sorted(fillings.begin(), fillings.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Filling& a, const Filling& b) { return a.column < b.column; });

  // Columns that share a word of each row.
  struct Group {
    const Block* block;
    size_t word;  // of the row
    uint64_t mask;
    std::span<const Filling> fillings;
  };
  std::vector<Group> groups;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    const Block& block = BlockOf(sorted[begin].column);
    uint64_t mask = 0;
    while (end < sorted.size() && sorted[end].column / 64 == sorted[begin].column / 64) {
      assert(sorted[end].bytes.empty() || sorted[end].bytes.size() == projection_bytes());
      mask |= uint64_t{1} << (sorted[end++].column % 64);
    }
    groups.push_back({&block, (sorted[begin].column - block.first_column) / 64, mask,
                      std::span(sorted).subspan(begin, end - begin)});
  }

  // 64 rows at a time through all groups: neighbours share cache lines of the rows, and the words
  // of a projection are read one after another.
  to = std::min(to, geometry_.positions());
  std::array<uint64_t, 64> square;
  for (uint64_t first = from; first < to; first += 64) {
    const uint64_t rows = std::min<uint64_t>(64, to - first);
    for (const Group& group : groups) {
      uint64_t* word = group.block->Row(first) + group.word;
      const size_t stride = group.block->words_per_row;
      if (group.fillings.size() == 1) {
        const uint64_t bits = WordOf(group.fillings[0], first / 64);
        const uint32_t shift = std::countr_zero(group.mask);
        for (uint64_t r = 0; r < rows; ++r, word += stride) {
          __builtin_prefetch(word + 64 * stride);
          *word = (*word & ~group.mask) | (bits >> r & 1) << shift;
        }
      } else {
        // The rows of the next square are on their way while this one is turned.
        for (uint64_t r = 0; r < 64; ++r) __builtin_prefetch(word + (64 + r) * stride, 1);
        square.fill(0);
        for (const Filling& filling : group.fillings) {
          square[filling.column % 64] = WordOf(filling, first / 64);
        }
        Transpose64(&square);
        for (uint64_t r = 0; r < rows; ++r, word += stride) {
          *word = (*word & ~group.mask) | square[r];
        }
      }
    }
  }
}

void FilterMatrix::Set(Column column, uint64_t position, bool value) {
  assert(position < geometry_.positions());
  const uint64_t bit = uint64_t{1} << (column % 64);
  uint64_t& word = BlockOf(column).Word(position, column);
  word = value ? word | bit : word & ~bit;
}

bool FilterMatrix::Get(Column column, uint64_t position) const {
  assert(position < geometry_.positions());
  return BlockOf(column).Word(position, column) >> (column % 64) & 1;
}

void FilterMatrix::Probe(uint64_t hash, std::vector<uint64_t>* columns) const {
  Probe(std::span(&hash, 1), columns);
}

void FilterMatrix::Probe(std::span<const uint64_t> hashes, std::vector<uint64_t>* columns) const {
  const size_t words = columns_ / 64;
  columns->resize(hashes.size() * words);
  if (columns->empty()) return;

  using Positions = std::array<uint64_t, SplitGeometry::kMaxSlices>;
  const uint32_t slices = geometry_.slices;
  const auto positions_of = [&](uint64_t hash) {
    Positions positions;
    for (uint32_t s = 0; s < slices; ++s) positions[s] = geometry_.Position(hash, s);
    return positions;
  };
  const auto prefetch = [&](const Block& block, const Positions& positions) {
    for (uint32_t s = 0; s < slices; ++s) {
      const uint64_t* row = block.Row(positions[s]);
      for (size_t w = 0; w < block.words_per_row; w += kLineWords) __builtin_prefetch(row + w);
    }
  };

  // While a block is read, the next one is on its way; behind the last block that is the first one
  // of the next hash.
  Positions here = positions_of(hashes[0]);
  prefetch(blocks_[0], here);
  std::array<const uint64_t*, SplitGeometry::kMaxSlices> rows;
  for (size_t h = 0; h < hashes.size(); ++h) {
    Positions next = here;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      if (b + 1 < blocks_.size()) {
        prefetch(blocks_[b + 1], here);
      } else if (h + 1 < hashes.size()) {
        next = positions_of(hashes[h + 1]);
        prefetch(blocks_[0], next);
      }
      const Block& block = blocks_[b];
      for (uint32_t s = 0; s < slices; ++s) rows[s] = block.Row(here[s]);
      uint64_t* out = columns->data() + h * words + block.first_column / 64;
      if (scalar_) {
        AndRowsScalar(rows.data(), slices, block.words_per_row, out);
      } else {
        AndRows(rows.data(), slices, block.words_per_row, out);
      }
    }
    here = next;
  }
}

size_t FilterMatrix::GrowthBytes(size_t columns) const {
  size_t there = columns_, free = free_.size();
  while (free < columns) {
    const size_t added = NextBlockColumns(there);
    there += added;
    free += added;
  }
  return geometry_.positions() * (there - columns_) / 8;
}

size_t FilterMatrix::SizeBytes() const {
  size_t size = 0;
  for (const Block& block : blocks_) size += block.size_bytes;
  return size;
}

}  // namespace tamis
