#include "tamis/filter/cell_set.h"

#include <algorithm>
#include <bit>

#include "tamis/base/coding.h"

namespace tamis {
namespace {

// Bits in bytes, the lowest bit of a byte first.
class BitWriter {
 public:
  void Put(uint64_t bits, int count) {
    for (int i = 0; i < count; ++i) PutBit((bits >> i & 1) != 0);
  }
  void PutBit(bool bit) {
    if (used_ % 8 == 0) bytes_.push_back('\0');
    if (bit) bytes_.back() = static_cast<char>(bytes_.back() | 1 << (used_ % 8));
    ++used_;
  }
  size_t bits() const { return used_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  size_t used_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  bool Get() {
    if (next_ >= bytes_.size() * 8) {
      ok_ = false;
      return false;
    }
    const bool bit = (static_cast<unsigned char>(bytes_[next_ / 8]) >> (next_ % 8) & 1) != 0;
    ++next_;
    return bit;
  }
  uint64_t Get(int count) {
    uint64_t bits = 0;
    for (int i = 0; i < count; ++i) bits |= uint64_t{Get()} << i;
    return bits;
  }
  bool ok() const { return ok_; }
  // Only the zeros that fill the last byte are left.
  bool AtEnd() {
    if (!ok_ || bytes_.size() * 8 - next_ >= 8) return false;
    while (next_ < bytes_.size() * 8) {
      if (Get()) return false;
    }
    return true;
  }

 private:
  std::string_view bytes_;
  size_t next_ = 0;
  bool ok_ = true;
};

// The number of low bits of a gap that are written as they are: near the best for gaps of a
// geometric distribution with this mean.
int LowBits(uint64_t cells, uint64_t count) {
  const uint64_t gap = count == 0 ? 1 : cells * 7 / 10 / count;
  return static_cast<int>(std::bit_width(std::max<uint64_t>(gap, 1))) - 1;
}

}  // namespace

bool CellSet::Insert(uint32_t cell) {
  if (Contains(cell)) return false;
  words_[cell / 64] |= uint64_t{1} << (cell % 64);
  ++count_;
  return true;
}

bool CellSet::Erase(uint32_t cell) {
  if (!Contains(cell)) return false;
  words_[cell / 64] &= ~(uint64_t{1} << (cell % 64));
  --count_;
  return true;
}

void CellSet::Clear() {
  std::ranges::fill(words_, 0);
  count_ = 0;
}

uint32_t CellSet::Next(uint32_t from) const {
  for (size_t word = from / 64; word < words_.size(); ++word) {
    uint64_t bits = words_[word];
    if (word == from / 64) bits &= ~uint64_t{0} << (from % 64);
    if (bits != 0) return static_cast<uint32_t>(word * 64) + std::countr_zero(bits);
  }
  return cells_;
}

std::string CellSet::Encode(uint32_t first, size_t max_bytes, uint32_t* end) const {
  uint64_t rest = 0;
  for (uint32_t cell = Next(first); cell < cells_; cell = Next(cell + 1)) ++rest;
  const int low_bits = LowBits(cells_ - first, rest);
  BitWriter bits;
  uint64_t written = 0;
  uint32_t from = first;
  *end = cells_;
  for (uint32_t cell = Next(first); cell < cells_; cell = Next(cell + 1)) {
    const uint32_t gap = cell - from;
    const size_t size = (gap >> low_bits) + 1 + static_cast<size_t>(low_bits);
    if (written > 0 && bits.bits() + size > max_bytes * 8) {
      *end = from;
      break;
    }
    for (uint32_t i = 0; i < gap >> low_bits; ++i) bits.PutBit(true);
    bits.PutBit(false);
    bits.Put(gap, low_bits);
    from = cell + 1;
    ++written;
  }
  std::string bytes;
  bytes.push_back(static_cast<char>(low_bits));
  PutVarint(&bytes, written);
  return bytes + bits.bytes();
}

bool CellSet::Decode(std::string_view bytes, uint32_t first, uint32_t end) {
  Reader reader(bytes);
  const int low_bits = reader.Byte();
  const uint64_t count = reader.Varint();
  if (!reader.ok() || low_bits > 31 || end > cells_ || first > end) return false;
  BitReader bits(reader.rest());
  std::vector<uint32_t> found;
  uint64_t next = first;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t high = 0;
    while (bits.Get()) ++high;
    next += (high << low_bits) + bits.Get(low_bits);
    if (!bits.ok() || next >= end) return false;
    found.push_back(static_cast<uint32_t>(next++));
  }
  if (!bits.AtEnd()) return false;
  for (const uint32_t cell : found) Insert(cell);
  return true;
}

}  // namespace tamis
