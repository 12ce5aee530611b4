#include "tamis/base/coding.h"

namespace tamis {
namespace {

template <class T>
void PutLittle(std::string* out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

template <class T>
void PutBigEndian(std::string* out, T value) {
  for (size_t i = sizeof(T); i-- > 0;) out->push_back(static_cast<char>(value >> (8 * i)));
}

template <class T>
T Little(std::string_view bytes) {
  T value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<uint8_t>(bytes[i]);
  return value;
}

template <class T>
T BigEndian(std::string_view bytes) {
  T value = 0;
  for (char c : bytes) value = (value << 8) | static_cast<uint8_t>(c);
  return value;
}

}  // namespace

void PutFixed32(std::string* out, uint32_t value) { PutLittle(out, value); }
void PutFixed64(std::string* out, uint64_t value) { PutLittle(out, value); }
void PutBig32(std::string* out, uint32_t value) { PutBigEndian(out, value); }
void PutBig64(std::string* out, uint64_t value) { PutBigEndian(out, value); }

void PutVarint(std::string* out, uint64_t value) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

void PutLengthPrefixed(std::string* out, std::string_view bytes) {
  PutVarint(out, bytes.size());
  out->append(bytes);
}

std::string_view Reader::Bytes(size_t size) {
  if (rest_.size() < size) {
    Fail();
    return {};
  }
  std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

uint8_t Reader::Byte() {
  std::string_view bytes = Bytes(1);
  return bytes.empty() ? 0 : static_cast<uint8_t>(bytes[0]);
}

uint32_t Reader::Fixed32() { return Little<uint32_t>(Bytes(4)); }
uint64_t Reader::Fixed64() { return Little<uint64_t>(Bytes(8)); }
uint32_t Reader::Big32() { return BigEndian<uint32_t>(Bytes(4)); }
uint64_t Reader::Big64() { return BigEndian<uint64_t>(Bytes(8)); }

uint64_t Reader::Varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = Byte();
    if (!ok_) return 0;
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  Fail();
  return 0;
}

std::string_view Reader::LengthPrefixed() {
  const uint64_t size = Varint();
  if (size > rest_.size()) {
    Fail();
    return {};
  }
  return Bytes(size);
}

std::string PrefixEnd(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<uint8_t>(end.back()) == 0xff) end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

}  // namespace tamis
