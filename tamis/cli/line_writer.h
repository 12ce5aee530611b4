// LineWriter: lines to the standard output, in large pieces.
#pragma once

#include <string>
#include <string_view>

#include "tamis/base/status.h"

namespace tamis {

// All bytes, past stdio. kResourceExhausted when the disk is full, else kUnavailable.
Status WriteOutput(std::string_view bytes);

class LineWriter {
 public:
  explicit LineWriter(char delimiter) : delimiter_(delimiter) { pending_.reserve(2 * kSize); }

  Status Write(std::string_view line) {  // without its delimiter
    pending_ += line;
    pending_ += delimiter_;
    return pending_.size() < kSize ? Status::Ok() : Flush();
  }
  Status Flush();

 private:
  static constexpr size_t kSize = size_t{64} << 10;
  std::string pending_;
  char delimiter_;
};

}  // namespace tamis
