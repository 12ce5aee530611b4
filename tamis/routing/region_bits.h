// RegionBits: as many bits as regions, combined word by word.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tamis {

class RegionBits {
 public:
  explicit RegionBits(size_t size = 0, bool value = false)
      : size_(size), words_((size + 63) / 64, value ? ~uint64_t{0} : 0) {
    ClearTail();
  }

  size_t size() const { return size_; }
  bool Get(size_t i) const { return (words_[i / 64] >> (i % 64)) & 1; }
  void Set(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }

  // REQUIRES: the same size.
  RegionBits& operator|=(const RegionBits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  RegionBits& operator&=(const RegionBits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }

  // The first position >= from whose bit has the value; size() when there is none.
  size_t Find(size_t from, bool value) const {
    for (size_t word = from / 64; word < words_.size(); ++word) {
      uint64_t bits = value ? words_[word] : ~words_[word];
      if (word == from / 64) bits &= ~uint64_t{0} << (from % 64);
      if (bits != 0) {
        const size_t position = word * 64 + static_cast<size_t>(std::countr_zero(bits));
        return position < size_ ? position : size_;
      }
    }
    return size_;
  }

  // Bits set in [begin, end).
  size_t Count(size_t begin, size_t end) const {
    size_t count = 0;
    for (size_t i = Find(begin, true); i < end; i = Find(i + 1, true)) ++count;
    return count;
  }

 private:
  void ClearTail() {
    if (size_ % 64 != 0) words_.back() &= (uint64_t{1} << (size_ % 64)) - 1;
  }

  size_t size_;
  std::vector<uint64_t> words_;
};

}  // namespace tamis
