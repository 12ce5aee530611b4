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

  // Reads on; false at the end. The lines are valid until the next call.
  // kInvalidArgument when a line is longer than 2 GiB.
  Result<bool> Next();
  size_t size() const { return hashes_.size(); }  // how many lines; at least one
  std::string_view line(size_t i) const {         // without its delimiter
    return {text_.data() + starts_[i], starts_[i + 1] - starts_[i] - 1};
  }
  std::span<const uint64_t> hashes() const { return hashes_; }

 private:
  LineReader(std::string path, int file, char delimiter, uint64_t seed);

  std::string path_;
  int file_;
  char delimiter_;
  uint64_t seed_;
  bool at_end_ = false;
  std::vector<char> text_;  // the lines, and the beginning of the next one
  size_t end_ = 0;          // the end of what was read
  // Where each line begins, and at last where the unfinished one does. Longer than that: the rest
  // is room.
  std::vector<uint32_t> starts_;
  std::vector<uint64_t> hashes_;
};

}  // namespace tamis
