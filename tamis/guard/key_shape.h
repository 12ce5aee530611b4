// KeyShape: checks whether the printed keys have a *frame*: characters around them that do not
// belong to them, like the borders that psql draws, a carriage return, quotes, or blanks that fill
// a column; several columns in a line, several keys in one, numbers as a locale prints them.
//
// A filter that is loaded with framed keys denies every row, and a check with the same command does
// not notice. The class cannot know what a key is, so it refuses what looks like a frame; the user
// may say that it belongs to the keys (--as-is).
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/guard/key_frames.h"
#include "tamis/guard/key_reader.h"
#include "tamis/guard/keys_alike.h"

namespace tamis {

class KeyShape {
 public:
  // In the plain format each line has to be bare. Other formats say that a line is meant as it
  // stands: there a frame is one that all lines have. `proved`: the keys are compared with those of
  // another source (--proof, --query), so that in these formats text in all keys belongs to them.
  explicit KeyShape(KeyReader::Format format, bool proved = false)
      : plain_(format == KeyReader::Format::kPlain),
        copy_(format == KeyReader::Format::kCopy),
        proved_(proved) {}

  // kDataLoss: this key has a frame, alone or seen together with the keys before it.
  Status Add(std::string_view key);
  // To be called behind the last key. kDataLoss: all keys have a frame.
  Status Finish() const;

 private:
  Status AddFirst(std::string_view key) const;
  bool IsBinary() const;

  bool plain_;
  bool copy_;
  bool proved_;
  uint64_t keys_ = 0;
  KeyFrames frames_;  // the frames of keys that are not empty
  KeysAlike alike_;   // the same keys together
  bool first_is_number_ = false;
  uint64_t numbers_ = 0;  // numbers among them, without the first
  uint64_t binary_ = 0;   // keys with bytes that no text has
  size_t width_ = 0;      // the width of each but the first; 0 = they differ
  bool padded_ = false;   // one of these begins or ends with a blank
  bool counted_ = true;   // each key begins with its number and a separator
};

}  // namespace tamis
