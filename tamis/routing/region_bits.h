// RegionBits: as many bits as regions, combined word by word.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
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
  void Set(size_t i) {
    assert(i < size_);
    words_[i / 64] |= uint64_t{1} << (i % 64);
  }
  void Unset(size_t i) {
    assert(i < size_);
    words_[i / 64] &= ~(uint64_t{1} << (i % 64));
  }
  // New bits are 0.
  void Resize(size_t size) {
    size_ = size;
    words_.resize((size + 63) / 64);
    ClearTail();
  }

  // 64 bits at once, for i < words(). Bits beyond size() stay 0.
  size_t words() const { return words_.size(); }
  uint64_t Word(size_t i) const { return words_[i]; }
  void SetWord(size_t i, uint64_t bits) {
    words_[i] = bits;
    if (i + 1 == words_.size()) ClearTail();
  }

  // REQUIRES: the same size.
  RegionBits& operator|=(const RegionBits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  RegionBits& operator&=(const RegionBits& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }

  // Sets every bit that the other, which may be shorter or longer, does not have.
  void AddAllBut(const RegionBits& other) {
    const size_t common = std::min(words_.size(), other.words_.size());
    for (size_t i = 0; i < common; ++i) words_[i] |= ~other.words_[i];
    for (size_t i = common; i < words_.size(); ++i) words_[i] = ~uint64_t{0};
    ClearTail();
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

  // Calls fn(i) for each bit that is set.
  template <class Fn>
  void ForEach(Fn&& fn) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        fn(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
      }
    }
  }

 private:
  void ClearTail() {
    if (size_ % 64 != 0) words_.back() &= (uint64_t{1} << (size_ % 64)) - 1;
  }

  size_t size_;
  std::vector<uint64_t> words_;
};

}  // namespace tamis
