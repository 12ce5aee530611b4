// KeyFrames: the characters at the ends of keys that may be a frame around them: blanks, a carriage
// return, quotes, brackets, a separator; and how many keys have each of them.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tamis {

class KeyFrames {
 public:
  enum Frame { kBlankBefore, kBlankBehind, kReturn, kQuotes, kBrackets, kSeparator, kFrames };

  // "a blank before it".
  static const char* NameOf(Frame frame);
  // REQUIRES of the following: the key is not empty.
  // A frame with which a plain key would be another key; brackets and separators are none.
  static std::optional<Frame> AlteringFrameOf(std::string_view key);
  void Add(std::string_view key);
  // A frame that all keys have, or all but the first, which may be a head that is framed in another
  // way. nullopt: there is none.
  std::optional<Frame> FrameOfAll() const;

 private:
  static bool Has(Frame frame, std::string_view key);

  uint64_t keys_ = 0;
  uint64_t framed_[kFrames] = {};  // how many keys but the first have each frame
  bool first_framed_[kFrames] = {};
};

}  // namespace tamis
