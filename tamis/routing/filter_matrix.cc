#include "tamis/routing/filter_matrix.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>
#include <utility>

#include "tamis/routing/and_rows.h"
#include "tamis/routing/or_rows.h"
#include "tamis/routing/transpose_bits.h"

namespace tamis {
namespace {

constexpr size_t kFirstBlockColumns = 64;
constexpr size_t kLargestBlockColumns = 4096;
constexpr size_t kLineWords = 8;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;

// Zeroed pages. A probe jumps to k places in every block: with pages of 2 MB, where the system has
// them, that costs no page walk.
FilterMatrix::Memory MapZeroed(size_t size) {
  const size_t page = size >= kHugePage ? kHugePage : kPage;
  size = (size + page - 1) / page * page;
  // The surplus that alignment needs is never touched, so it costs address space only.
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
  return {begin, size};
}

static_assert(std::endian::native == std::endian::little);

size_t NextBlockColumns(size_t there) {
  const size_t eighth = there / 8 / kFirstBlockColumns * kFirstBlockColumns;
  return std::clamp(eighth, kFirstBlockColumns, kLargestBlockColumns);
}

size_t NextReservedColumns(size_t there, size_t wanted) {
  return std::clamp(std::bit_floor(wanted - there), kFirstBlockColumns, kLargestBlockColumns);
}

// The words from `first` on, as many as there are and fit; the next ones are on their way then.
void ReadWords(const FilterMatrix::Filling& filling, uint64_t first,
               std::array<uint64_t, BitSquares::kSquares>* words) {
  const size_t offset = first * 8;
  if (offset >= filling.bytes.size()) return;
  const char* from = filling.bytes.data() + offset;
  __builtin_prefetch(from + sizeof *words);
  std::memcpy(words->data(), from, std::min(sizeof *words, filling.bytes.size() - offset));
}

}  // namespace

FilterMatrix::Memory::Memory(Memory&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), size_(std::exchange(other.size_, 0)) {}

FilterMatrix::Memory& FilterMatrix::Memory::operator=(Memory&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

FilterMatrix::Memory::~Memory() {
  if (size_ > 0) munmap(begin_, size_);
}

FilterMatrix::Memory FilterMatrix::Memory::TakeBehind(size_t bytes) {
  const size_t kept = std::min((bytes + kPage - 1) / kPage * kPage, size_);
  return {static_cast<char*>(begin_) + kept, size_ - std::exchange(size_, kept)};
}

struct FilterMatrix::Block {
  size_t first_column;
  size_t words_per_row;
  size_t size_bytes;
  Memory memory;

  uint64_t* Row(uint64_t position) const {
    return static_cast<uint64_t*>(memory.begin()) + position * words_per_row;
  }
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
  while (columns_ < columns) AddBlock(NextReservedColumns(columns_, columns));
}

void FilterMatrix::Free(Column column) { free_.push_back(column); }

std::vector<FilterMatrix::Memory> FilterMatrix::KeepSlices(uint32_t slices) {
  assert(slices >= 1 && slices <= geometry_.slices);
  geometry_.slices = slices;
  std::vector<Memory> rest;
  for (Block& block : blocks_) {
    block.size_bytes = geometry_.positions() * block.words_per_row * sizeof(uint64_t);
    rest.push_back(block.memory.TakeBehind(block.size_bytes));
  }
  return rest;
}

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
    size_t word;  // a word of the row
    uint64_t mask;
    std::span<const Filling> fillings;
  };
  std::vector<Group> groups;
  for (size_t begin = 0, end = 0; begin < sorted.size(); begin = end) {
    const Block& block = BlockOf(sorted[begin].column);
    uint64_t mask = 0;
    while (end < sorted.size() && sorted[end].column / 64 == sorted[begin].column / 64) {
      assert(sorted[end].bytes.empty() || sorted[end].bytes.size() >= projection_bytes());
      mask |= uint64_t{1} << (sorted[end++].column % 64);
    }
    groups.push_back({&block, (sorted[begin].column - block.first_column) / 64, mask,
                      std::span(sorted).subspan(begin, end - begin)});
  }

  // 512 rows at a time through all groups: neighbours share cache lines of the rows, and a cache
  // line of each projection is read whole.
  constexpr uint64_t kAhead = 64;  // rows
  constexpr size_t kFew = 3;       // columns whose bits are picked one by one, which costs less
  static_assert(kRowsAtOnce == BitSquares::kSide * BitSquares::kSquares);
  to = std::min(to, geometry_.positions());
  BitSquares squares;
  for (uint64_t first = from; first < to; first += kRowsAtOnce) {
    const uint64_t rows = std::min(kRowsAtOnce, to - first);
    const uint64_t* line = nullptr;
    for (const Group& group : groups) {
      uint64_t* word = group.block->Row(first) + group.word;
      const size_t stride = group.block->words_per_row;
      // The first probe of a cache line prefetches it; the probes before it run meanwhile.
      const uint64_t* begin = word - group.word % kLineWords;
      const bool fetch = begin != std::exchange(line, begin);
      const auto write = [&](auto bits_of) {
        for (uint64_t r = 0; r < rows; ++r, word += stride) {
          if (fetch) __builtin_prefetch(word + kAhead * stride, 1);
          *word = (*word & ~group.mask) | bits_of(r);
        }
      };
      if (group.fillings.size() <= kFew) {
        for (size_t i = 0; i < group.fillings.size(); ++i) {
          squares.lines[i].fill(0);
          ReadWords(group.fillings[i], first / 64, &squares.lines[i]);
        }
        write([&](uint64_t r) {
          uint64_t bits = 0;
          for (size_t i = 0; i < group.fillings.size(); ++i) {
            bits |= (squares.lines[i][r / 64] >> (r % 64) & 1) << (group.fillings[i].column % 64);
          }
          return bits;
        });
        continue;
      }
      for (auto& words : squares.lines) words.fill(0);
      for (const Filling& filling : group.fillings) {
        ReadWords(filling, first / 64, &squares.lines[filling.column % 64]);
      }
      TransposeBits(&squares);
      write([&](uint64_t r) { return squares.lines[r % 64][r / 64]; });
    }
  }
}

void FilterMatrix::Bring(std::span<const Filling> fillings, uint64_t from, uint64_t to) const {
  to = std::min(to, geometry_.positions());
  if (from >= to) return;
  const Block* last = nullptr;
  for (const Filling& filling : fillings) {
    const Block* const block = &BlockOf(filling.column);
    if (block == std::exchange(last, block)) continue;
    // Whole pages; mapped memory begins and ends with one.
    const auto begin = reinterpret_cast<uintptr_t>(block->Row(from)) / kPage * kPage;
    const auto end = (reinterpret_cast<uintptr_t>(block->Row(to)) + kPage - 1) / kPage * kPage;
    // Only a hint, so errors are ignored: a write to a page that is not there brings it, too.
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
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

  // While a block is read, the next one is on its way; after the last block that is the first one
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

void FilterMatrix::AddAnyIn(uint64_t first, uint64_t last, std::span<uint64_t> columns) const {
  assert(first <= last && last <= geometry_.positions() && columns.size() == columns_ / 64);
  for (const Block& block : blocks_) {
    uint64_t* out = columns.data() + block.first_column / 64;
    const auto add = scalar_ ? OrRowsScalar : OrRows;
    add(block.Row(first), block.words_per_row, last - first, block.words_per_row, out);
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

size_t FilterMatrix::ReserveBytes(size_t columns) const {
  size_t there = columns_;
  while (there < columns) there += NextReservedColumns(there, columns);
  return geometry_.positions() * (there - columns_) / 8;
}

size_t FilterMatrix::SizeBytes() const {
  size_t size = 0;
  for (const Block& block : blocks_) size += block.size_bytes;
  return size;
}

}  // namespace tamis
