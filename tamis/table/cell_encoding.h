// CellEncoding: how the value of a cell, or of a part of a row key, is encoded in a table that
// another program wrote (docs/TABLES.md#encodings).
//
// An encoding is a pair of total functions: DecodeCell of any bytes gives a value, or nothing if
// they do not decode; EncodeCell of any value gives bytes that decode to it, or kInvalidArgument if
// there are none (300 as a byte, 0.1 as a float). Several byte strings may decode to one value
// ("7", "007"); EncodeCell gives the canonical one. The Java implementation is tested against the
// same golden files (tests/golden).
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/value.h"

namespace tamis {

// The numbers are stored; they never change. Numbers are big-endian; "phoenix" ones have their sign
// turned round so that bytes sort as values.
enum class CellEncoding : uint8_t {
  kNone = 0,   // not a cell of another format: our own encoding
  kUtf8 = 1,   // text: the bytes as they are
  kRaw = 2,    // bytes: as they are
  kLong = 3,   // int64: 8 bytes, two's complement
  kInt = 4,    // int64: 4 bytes
  kShort = 5,  // int64: 2 bytes
  kByte = 6,   // int64: 1 byte; bool: 1 byte, 0 is false, all others are true (written as 0xff)
  kText = 7,   // text that a person reads: digits, true and false, ISO 8601, a decimal number
  kPhoenixLong = 8,     // int64: 8 bytes, sign bit flipped
  kPhoenixInt = 9,      // int64: 4 bytes, sign bit flipped
  kDouble = 10,         // double: IEEE, 8 bytes
  kFloat = 11,          // double: IEEE, 4 bytes
  kPhoenixDouble = 12,  // double: 8 bytes, ordered, plus 1
  kPhoenixFloat = 13,   // double: 4 bytes, ordered, plus 1
  kPhoenix = 14,        // bool: 1 byte, 1 or 0
  kMillis = 15,         // timestamp: milliseconds, 8 bytes, two's complement
  kSeconds = 16,        // timestamp: seconds, 8 bytes
  kMicros = 17,         // timestamp: microseconds, 8 bytes
  kPhoenixDate = 18,    // timestamp: milliseconds, 8 bytes, sign bit flipped
  kBigDecimal = 19,     // decimal: scale, 4 bytes, then the unscaled number in two's complement
};

// A bigdecimal of more bytes does not decode, so that a cell costs a bounded time.
inline constexpr size_t kMaxBigDecimalBytes = 4096;

std::string_view EncodingName(CellEncoding encoding);  // "long", "phoenix_long", ...
Result<CellEncoding> ParseEncoding(std::string_view name);
CellEncoding DefaultEncoding(Type type);
// Whether values of the type can stand in this encoding.
bool IsEncodingOf(Type type, CellEncoding encoding);
// Whether the encoded bytes are the bytes of the value itself.
constexpr bool KeepsBytes(CellEncoding encoding) {
  return encoding == CellEncoding::kUtf8 || encoding == CellEncoding::kRaw;
}
// Bytes that every value takes; nullopt where it depends on the value.
std::optional<size_t> EncodingWidth(Type type, CellEncoding encoding);

// REQUIRES: IsEncodingOf(type, encoding).
std::optional<Value> DecodeCell(Type type, CellEncoding encoding, std::string_view bytes);
// REQUIRES: a value of the type, not NULL, and IsEncodingOf.
Result<std::string> EncodeCell(CellEncoding encoding, const Value& value);

// The values of an encoding with a width, numbered in their order. `least` is the number of the
// first value that is at least (`inclusive`), or above, the given one; one past the last where
// there is none. Numbers run from RankBegin to RankEnd and 0 is where the bytes begin again: values
// below it (negative ones) are a stretch of their own.
struct CellRanks {
  // How the bytes of ranks below 0 lie.
  enum class Order : uint8_t {
    kByValue,         // before the others, ascending: byte order is value order
    kAfter,           // behind the others, ascending: two's complement
    kAfterBackwards,  // behind the others, descending: IEEE
  };
  Order order = Order::kByValue;
  __int128 begin = 0;
  __int128 end = 0;  // one past the last
};

// nullopt where the encoding has no width.
std::optional<CellRanks> RanksOf(Type type, CellEncoding encoding);
__int128 RankAtLeast(CellEncoding encoding, const Value& value, bool inclusive);
// REQUIRES: within begin and end.
std::string BytesOfRank(Type type, CellEncoding encoding, __int128 rank);

}  // namespace tamis
