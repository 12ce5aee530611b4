// LineSource: the lines of a stream, one after the other, with a bound on their length.
#pragma once

#include <istream>
#include <optional>
#include <string>

#include "tamis/base/status.h"

namespace tamis {

class LineSource {
 public:
  // A line, or what is made of several lines, may have this many bytes.
  static constexpr size_t kMaxRecordBytes = size_t{64} << 20;

  // The stream must outlive the source.
  explicit LineSource(std::istream* in) : in_(in) {}

  // The next line without its end, which is "\n", "\r\n" or "\r". nullopt at the end. A line that
  // is too long is an error; the next call goes on behind it.
  Result<std::optional<std::string>> Next();

  const std::string& ending() const {
    return ending_;
  }  // the ending of the last line; "" at the input's end

  uint64_t line() const { return line_; }  // number of the last line, from 1

 private:
  std::istream* in_;
  std::string ending_;
  uint64_t line_ = 0;
};

}  // namespace tamis
