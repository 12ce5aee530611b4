// LineReader: the lines of a file with their hashes, many at a time, so that a filter is asked in
// batches and no line is copied.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class LineReader {
 public:
  // "-" is the standard input. Lines end with `delimiter`; the last one may lack it.
  static Result<LineReader> Open(const std::string& path, char delimiter, uint64_t seed);
  ~LineReader();
  LineReader(LineReader&& other) noexcept;
  LineReader& operator=(LineReader&&) = delete;

  // Reads on; false at the end. Lines are valid until the next call.
  Result<bool> Next();
  std::span<const std::string_view> lines() const { return lines_; }  // without delimiter
  std::span<const uint64_t> hashes() const { return hashes_; }

 private:
  LineReader(std::string path, int file, char delimiter, uint64_t seed);

  std::string path_;
  int file_;
  char delimiter_;
  uint64_t seed_;
  bool at_end_ = false;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what was read and not given out
  size_t end_ = 0;
  std::vector<std::string_view> lines_;
  std::vector<uint64_t> hashes_;
};

}  // namespace tamis
