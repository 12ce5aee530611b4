// TransposeBits: turns squares of 64 x 64 bits, several side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tamis {

// 64 lines of eight words; the words of one place are a square. One line is a cache line.
struct BitSquares {
  static constexpr size_t kSide = 64;
  static constexpr size_t kSquares = 8;

  alignas(64) std::array<std::array<uint64_t, kSquares>, kSide> lines;
};

// In each square bit j of line i becomes bit i of line j. Uses the widest vectors that there are.
void TransposeBits(BitSquares* squares);

}  // namespace tamis
