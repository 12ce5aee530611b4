// RandomLines: the least that a lookup can cost: reading one random cache line of the same memory,
// fetched ahead. ThreadSeconds: the clock of the filter benchmarks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/filter/internal/word_array.h"

namespace tamis {

// The processor time of this thread, on which other programs of the machine have little influence.
double ThreadSeconds(auto&& run) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  run();
  return now() - begin;
}

class RandomLines {
 public:
  explicit RandomLines(size_t lines) : lines_(lines), array_(lines * 8) {
    uint64_t* memory = array_.MutableData();
    std::fill(memory, memory + array_.size(), 1);
  }

  // Reads the line of each key, one after the other as a loop of plain lookups does.
  uint64_t ReadPlain(const std::vector<uint64_t>& keys) const {
    const uint64_t* memory = array_.data();
    uint64_t sum = 0;
    for (const uint64_t key : keys) sum += memory[FastRange(key, lines_) * 8];
    return sum;
  }
  // Reads the line of each key but the last kAhead. Returns how many it read.
  uint64_t Read(const std::vector<uint64_t>& keys) const {
    const uint64_t* memory = array_.data();
    uint64_t sum = 0;
    for (size_t i = 0; i + kAhead < keys.size(); ++i) {
      __builtin_prefetch(&memory[FastRange(keys[i + kAhead], lines_) * 8]);
      sum += memory[FastRange(keys[i], lines_) * 8];
    }
    return sum;
  }

  static constexpr size_t kAhead = 24;

 private:
  const size_t lines_;
  WordArray array_;
};

}  // namespace tamis
