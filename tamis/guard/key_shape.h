// KeyShape: whether keys look as if something else stood around them: the frame that psql draws, a
// carriage return, quotes, blanks that fill a column.
//
// Keys that are loaded with such a frame make a filter that refuses every row, and a check by the
// same command finds nothing. Nothing here knows what a key is, so what looks like a frame is
// refused, and the caller may say that it belongs to the keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/guard/key_reader.h"

namespace tamis {

class KeyShape {
 public:
  // In the plain format each line has to be bare. Other formats say that a line is meant as it
  // stands: there a frame is one that all lines have.
  explicit KeyShape(KeyReader::Format format)
      : plain_(format == KeyReader::Format::kPlain), copy_(format == KeyReader::Format::kCopy) {}

  // kDataLoss: this key, or it together with those before it, is no bare key.
  Status Add(std::string_view key);
  // Behind the last one. kDataLoss: all of them have a frame.
  Status Finish() const;

 private:
  enum Frame { kBlankBefore, kBlankBehind, kReturn, kQuotes, kBrackets, kSeparator, kFrames };
  static const char* NameOf(Frame frame);
  Status AddFirst(std::string_view key) const;
  static bool Has(Frame frame, std::string_view key);

  bool plain_;
  bool copy_;
  uint64_t keys_ = 0;
  uint64_t others_ = 0;            // that are not empty, without the first one of these
  uint64_t framed_[kFrames] = {};  // of the others
  bool first_framed_[kFrames] = {};
  bool first_is_number_ = false;
  uint64_t numbers_ = 0;  // of the others
  size_t width_ = 0;      // of each of the others; 0 = they differ
  bool padded_ = false;   // one of these begins or ends with a blank
  std::string first_;
  std::string last_;
};

}  // namespace tamis
