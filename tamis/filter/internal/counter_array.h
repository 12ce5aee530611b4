// CounterArray: 4-bit counters that stick. A counter that has reached 15 stands for "15 or more":
// it is never lowered again, since it is unknown how often it was raised.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

#include "tamis/base/status.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

class CounterArray {
 public:
  static constexpr uint32_t kSaturated = 15;
  static constexpr uint64_t kPerWord = 16;
  static constexpr uint64_t WordsFor(uint64_t counters) {
    return counters / kPerWord + (counters % kPerWord != 0);
  }

  CounterArray() = default;
  explicit CounterArray(uint64_t size) : words_(WordsFor(size)), size_(size) {}
  // REQUIRES: words.size() == WordsFor(size). The tallies are taken as given until Recount().
  CounterArray(WordArray words, uint64_t size, uint64_t nonzero, uint64_t saturated)
      : words_(std::move(words)), size_(size), nonzero_(nonzero), saturated_(saturated) {}

  uint64_t size() const { return size_; }
  uint64_t nonzero() const { return nonzero_; }      // counters above 0
  uint64_t saturated() const { return saturated_; }  // counters that stick
  const WordArray& words() const { return words_; }

  WordArray TakeWords() && { return std::move(words_); }

  uint32_t Get(uint64_t i) const { return words_[i / kPerWord] >> Shift(i) & 15; }
  void Prefetch(uint64_t i) const { __builtin_prefetch(words_.data() + i / kPerWord); }

  // True when the counter was 0.
  bool Increment(uint64_t i) {
    uint64_t& word = words_.MutableData()[i / kPerWord];
    const uint32_t old = word >> Shift(i) & 15;
    word += uint64_t{old != kSaturated} << Shift(i);  // no branch: old counters are random
    saturated_ += old + 1 == kSaturated;
    nonzero_ += old == 0;
    return old == 0;
  }

  enum class Lowering { kLowered, kCleared, kSticky };
  // REQUIRES: the counter is above 0.
  Lowering Decrement(uint64_t i) {
    uint64_t& word = words_.MutableData()[i / kPerWord];
    const uint32_t old = word >> Shift(i) & 15;
    assert(old > 0);
    word -= uint64_t{old != kSaturated} << Shift(i);
    nonzero_ -= old == 1;
    return old == kSaturated ? Lowering::kSticky
           : old == 1        ? Lowering::kCleared
                             : Lowering::kLowered;
  }

  // Adds counter by counter. REQUIRES: the same size.
  void Add(const CounterArray& other) {
    assert(size_ == other.size_);
    uint64_t* words = words_.MutableData();
    for (size_t w = 0; w < words_.size(); ++w) {
      uint64_t sum = 0;
      for (uint32_t shift = 0; shift < 64; shift += 4) {
        const uint64_t both = (words[w] >> shift & 15) + (other.words_[w] >> shift & 15);
        sum |= (both < kSaturated ? both : kSaturated) << shift;
      }
      words[w] = sum;
    }
    Recount();
  }

  // Bit 0, 4, 8, ... of the result is set where the counter is above 0.
  static uint64_t NonzeroNibbles(uint64_t word) {
    word |= word >> 2;
    return (word | word >> 1) & 0x1111111111111111u;
  }

  // 64 counters as bits: set where the counter is above 0.
  static uint64_t NonzeroBits(const uint64_t* words) {
    uint64_t bits = 0;
    for (uint32_t w = 0; w < 4; ++w) {
      // Gathers bits 0, 4, 8, ... into the low 16.
      uint64_t x = NonzeroNibbles(words[w]);
      x = (x | x >> 3) & 0x0303030303030303u;
      x = (x | x >> 6) & 0x000f000f000f000fu;
      x = (x | x >> 12) & 0x000000ff000000ffu;
      x = (x | x >> 24) & 0xffffu;
      bits |= x << (w * 16);
    }
    return bits;
  }

  void Recount() {
    nonzero_ = saturated_ = 0;
    for (const uint64_t word : words_.words()) {
      nonzero_ += std::popcount(NonzeroNibbles(word));
      saturated_ += 16 - std::popcount(NonzeroNibbles(~word));
    }
  }

  // True when the tallies are those of the counters and nothing stands behind the last counter.
  bool IsConsistent() const {
    CounterArray counted(WordArray::Borrow(words_.words()), size_, 0, 0);
    counted.Recount();
    const bool clean =
        size_ % kPerWord == 0 || words_[words_.size() - 1] >> (size_ % kPerWord * 4) == 0;
    return clean && counted.nonzero_ == nonzero_ && counted.saturated_ == saturated_;
  }

 private:
  static uint32_t Shift(uint64_t i) { return static_cast<uint32_t>(i % kPerWord * 4); }

  WordArray words_;
  uint64_t size_ = 0;
  uint64_t nonzero_ = 0;
  uint64_t saturated_ = 0;
};

}  // namespace tamis
