// Where the lines of a text begin: all delimiters of 64 bytes are found at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tamis {

// FindLineStarts may read and write this far after the text and after the last start.
inline constexpr size_t kLineStartsSlack = 64;

// For every delimiter in text[begin, end) writes the position after it to `starts`, in order, and
// returns how many they were.
// REQUIRES: kLineStartsSlack bytes after `end` can be read, and as many positions after the last
// one can be written; end < 2^32.
size_t FindLineStarts(const char* text, size_t begin, size_t end, char delimiter, uint32_t* starts);

}  // namespace tamis
