// FilterMatrix: the bits of many filters of one geometry, transposed, so that one probe answers for
// all filters at once.
//
// A row is a position of the geometry (slice and offset), a column is one filter: a layer of a
// region's scalable split counting filter. A hash has one position in each slice; the AND of those
// k rows has a bit for every filter that matches. Ten thousand filters cost k x 1.25 KB of reads in
// sequence instead of ten thousand times two or more random cache lines.
//
//   Layout   column blocks, each rows x (8 to 512 bytes), allocated one by one: the first ones have
//            64 columns, then each is an eighth of what is there, up to 4,096 columns a block.
//            Growing copies nothing; unused columns are fewer than 64, or than an eighth of those
//            in use, or than 4,096. Reserve makes fewer and larger blocks.
//   Memory   one bit a position and column: k / ln 2 bits for each key of full layers
//   Probe    k rows of columns() bits, fetched a block ahead, ANDed with the widest vectors there
//   Threads  const members may run concurrently; others need exclusive access
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "tamis/filter/split_geometry.h"

namespace tamis {

class FilterMatrix {
 public:
  using Column = uint32_t;

  // Pages of the system.
  class Memory {
   public:
    Memory(void* begin, size_t size) : begin_(begin), size_(size) {}
    Memory(Memory&& other) noexcept;
    Memory& operator=(Memory&& other) noexcept;
    ~Memory();

    void* begin() const { return begin_; }
    // Takes the pages behind the first ones, which hold that many bytes.
    Memory TakeBehind(size_t bytes);

   private:
    void* begin_;
    size_t size_;
  };

  // The contents of a column: position p is bit p % 64 of word p / 64, words little-endian. An
  // empty string fills it with zeros.
  struct Filling {
    Filling(Column column, std::string_view bytes) : column(column), bytes(bytes) {}
    Filling(Column column, std::span<const uint64_t> words)
        : column(column), bytes(reinterpret_cast<const char*>(words.data()), words.size_bytes()) {}

    Column column;
    std::string_view bytes;
  };

  // REQUIRES: geometry.IsValid().
  explicit FilterMatrix(SplitGeometry geometry);
  FilterMatrix(FilterMatrix&&) noexcept;
  FilterMatrix& operator=(FilterMatrix&&) noexcept;
  ~FilterMatrix();

  // Returns a freed column, or else a new one. A new column is zeros; a freed one keeps its old
  // bits until it is loaded, since clearing it would touch every row.
  Column Allocate();
  // Makes room for this many columns in all, in fewer and larger blocks than growth would.
  void Reserve(size_t columns);
  // REQUIRES, here and below: the column was allocated and is not freed.
  void Free(Column column);

  // Keeps only the first slices of each column. A column needs no other bits than these to be a
  // filter of as many slices: it takes less memory and matches more absent hashes, and bits that
  // are set or cleared later are the same. Returns the memory of the others, which is given back
  // to the system when it is destroyed: that may take a while, and needs no lock. REQUIRES: 1 <=
  // slices <= geometry().slices.
  [[nodiscard]] std::vector<Memory> KeepSlices(uint32_t slices);

  // Replaces columns, each named once: rows are touched once for 64 neighbouring columns, not once
  // for each, and brought from memory once for 512 neighbours. REQUIRES: projection_bytes() bytes
  // each or more, of which the first are used, or none.
  void Load(std::span<const Filling> fillings);
  void Load(Column column, std::span<const uint64_t> projection);
  // The same for the positions [first, last) only, so that other threads can read between two
  // calls. REQUIRES: both are multiples of 64, or `last` reaches the end; quickest are multiples of
  // kRowsAtOnce.
  static constexpr uint64_t kRowsAtOnce = 512;
  void Load(std::span<const Filling> fillings, uint64_t first, uint64_t last);
  // Has the system provide the memory pages that such a Load will write to; for new pages that
  // takes much longer than the Load. Changes no bits, so other threads may read meanwhile.
  void Bring(std::span<const Filling> fillings, uint64_t first, uint64_t last) const;
  size_t projection_bytes() const { return (geometry_.positions() + 63) / 64 * 8; }

  void Set(Column column, uint64_t position, bool value);
  bool Get(Column column, uint64_t position) const;

  // Bit c % 64 of word c / 64: column c may hold the hash. *columns gets columns() / 64 words.
  void Probe(uint64_t hash, std::vector<uint64_t>* columns) const;
  // The same for several hashes, one answer behind the other.
  void Probe(std::span<const uint64_t> hashes, std::vector<uint64_t>* columns) const;
  // Sets bit c % 64 of word c / 64 where column c has some position of [first, last) set. REQUIRES:
  // columns() / 64 words.
  void AddAnyIn(uint64_t first, uint64_t last, std::span<uint64_t> columns) const;

  const SplitGeometry& geometry() const { return geometry_; }
  // How many columns there are, used or not; a multiple of 64.
  size_t columns() const { return columns_; }
  size_t columns_in_use() const { return columns_ - free_.size(); }
  size_t columns_free() const { return free_.size(); }
  size_t SizeBytes() const;
  // By how much that would grow if this many columns were allocated.
  size_t GrowthBytes(size_t columns) const;
  // By how much it would grow by Reserve(columns).
  size_t ReserveBytes(size_t columns) const;

  // For tests: probes with plain 64-bit words.
  void set_scalar_for_test(bool on) { scalar_ = on; }

 private:
  struct Block;

  void AddBlock(size_t columns);
  const Block& BlockOf(Column column) const;

  SplitGeometry geometry_;
  size_t columns_ = 0;
  bool scalar_ = false;
  std::vector<Block> blocks_;  // in column order
  std::vector<Column> free_;   // the lowest at the back after growth
};

}  // namespace tamis
