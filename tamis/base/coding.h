// Fixed-width and variable-length integers, and length-prefixed strings, in byte strings.
//
// "Fixed" is little-endian (file formats), "Big" is big-endian (keys that must sort as numbers),
// "Varint" is LEB128 as in protobuf. A Reader never reads past its end: it fails, and stays failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tamis {

void PutFixed32(std::string* out, uint32_t value);
void PutFixed64(std::string* out, uint64_t value);
void PutBig32(std::string* out, uint32_t value);
void PutBig64(std::string* out, uint64_t value);
void PutVarint(std::string* out, uint64_t value);
void PutLengthPrefixed(std::string* out, std::string_view bytes);

class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  // Each returns 0 or an empty view when the bytes do not suffice; ok() is false from then on.
  uint8_t Byte();
  uint32_t Fixed32();
  uint64_t Fixed64();
  uint32_t Big32();
  uint64_t Big64();
  uint64_t Varint();
  std::string_view LengthPrefixed();
  std::string_view Bytes(size_t size);

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }
  // True when everything was read and nothing was missing.
  bool AtEnd() const { return ok_ && rest_.empty(); }
  void Fail() {
    ok_ = false;
    rest_ = {};
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// The least string that is greater than every string beginning with `prefix`; empty when there is
// none (the prefix is empty or all 0xff), which reads as "no upper bound".
std::string PrefixEnd(std::string_view prefix);

}  // namespace tamis
