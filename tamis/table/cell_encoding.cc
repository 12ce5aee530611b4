#include "tamis/table/cell_encoding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "tamis/table/decimal.h"
#include "tamis/table/timestamp.h"

namespace tamis {
namespace {

// The pairs of a type and an encoding, grouped by how they are read.
enum class Form : uint8_t {
  kAsIs,
  kTwosComplement,  // an integer of `width` bytes
  kFlippedSign,
  kIeee,
  kOrderedIeee,
  kTruthByte,
  kText,
  kBigDecimal,
};

struct Pair {
  Type type;
  CellEncoding encoding;
  Form form;
  size_t width = 0;         // 0: depends on the value
  int64_t unit_micros = 1;  // the unit of timestamps
};

// The first one of a type is its default.
constexpr Pair kPairs[] = {
    {Type::kText, CellEncoding::kUtf8, Form::kAsIs},
    {Type::kBytes, CellEncoding::kRaw, Form::kAsIs},
    {Type::kInt64, CellEncoding::kLong, Form::kTwosComplement, 8},
    {Type::kInt64, CellEncoding::kInt, Form::kTwosComplement, 4},
    {Type::kInt64, CellEncoding::kShort, Form::kTwosComplement, 2},
    {Type::kInt64, CellEncoding::kByte, Form::kTwosComplement, 1},
    {Type::kInt64, CellEncoding::kText, Form::kText},
    {Type::kInt64, CellEncoding::kPhoenixLong, Form::kFlippedSign, 8},
    {Type::kInt64, CellEncoding::kPhoenixInt, Form::kFlippedSign, 4},
    {Type::kDouble, CellEncoding::kDouble, Form::kIeee, 8},
    {Type::kDouble, CellEncoding::kFloat, Form::kIeee, 4},
    {Type::kDouble, CellEncoding::kText, Form::kText},
    {Type::kDouble, CellEncoding::kPhoenixDouble, Form::kOrderedIeee, 8},
    {Type::kDouble, CellEncoding::kPhoenixFloat, Form::kOrderedIeee, 4},
    {Type::kBool, CellEncoding::kByte, Form::kTruthByte, 1},
    {Type::kBool, CellEncoding::kPhoenix, Form::kTruthByte, 1},
    {Type::kBool, CellEncoding::kText, Form::kText},
    {Type::kTimestamp, CellEncoding::kMillis, Form::kTwosComplement, 8, 1000},
    {Type::kTimestamp, CellEncoding::kSeconds, Form::kTwosComplement, 8, 1'000'000},
    {Type::kTimestamp, CellEncoding::kMicros, Form::kTwosComplement, 8, 1},
    {Type::kTimestamp, CellEncoding::kText, Form::kText},
    {Type::kTimestamp, CellEncoding::kPhoenixDate, Form::kFlippedSign, 8, 1000},
    {Type::kDecimal, CellEncoding::kText, Form::kText},
    {Type::kDecimal, CellEncoding::kBigDecimal, Form::kBigDecimal},
};

constexpr std::string_view kNames[] = {
    "none",           "utf8",          "raw",          "long",        "int",     "short",
    "byte",           "text",          "phoenix_long", "phoenix_int", "double",  "float",
    "phoenix_double", "phoenix_float", "phoenix",      "millis",      "seconds", "micros",
    "phoenix_date",   "bigdecimal"};

const Pair* Find(Type type, CellEncoding encoding) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type && pair.encoding == encoding) return &pair;
  }
  return nullptr;
}

Status Refused(const Value& value, CellEncoding encoding, std::string_view why) {
  return InvalidArgument("\"" + value.ToString().substr(0, 60) + "\" cannot be stored as " +
                         std::string(EncodingName(encoding)) + ": " + std::string(why));
}

// ---- Numbers of a width

uint64_t ReadBig(std::string_view bytes) {
  uint64_t n = 0;
  for (const unsigned char c : bytes) n = n << 8 | c;
  return n;
}

std::string Big(uint64_t n, size_t width) {
  std::string out(width, '\0');
  for (size_t i = width; i-- > 0; n >>= 8) out[i] = static_cast<char>(n & 0xff);
  return out;
}

uint64_t SignBit(size_t width) { return uint64_t{1} << (8 * width - 1); }

int64_t SignExtended(uint64_t n, size_t width) {
  const uint64_t sign = SignBit(width);
  return static_cast<int64_t>((n ^ sign) - sign);
}

int64_t LeastOf(size_t width) { return SignExtended(SignBit(width), width); }
int64_t GreatestOf(size_t width) { return static_cast<int64_t>(SignBit(width) - 1); }

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The bits of a double or float, and back. Negative zero is never written.
uint64_t IeeeBits(double d, size_t width) {
  return width == 8 ? std::bit_cast<uint64_t>(d) : std::bit_cast<uint32_t>(static_cast<float>(d));
}
double FromIeeeBits(uint64_t bits, size_t width) {
  return width == 8 ? std::bit_cast<double>(bits)
                    : double{std::bit_cast<float>(static_cast<uint32_t>(bits))};
}

uint64_t Mask(size_t width) { return width == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * width) - 1; }

// Numbers as the pair stores them, in the order of their values: integers and times are themselves,
// doubles the bits of their magnitude.
uint64_t BitsOfRank(const Pair& pair, int64_t rank) {
  const uint64_t sign = SignBit(pair.width);
  const uint64_t mask = Mask(pair.width);
  const auto two = static_cast<uint64_t>(rank) & mask;
  switch (pair.form) {
    case Form::kTwosComplement:
      return two;
    case Form::kFlippedSign:
      return two ^ sign;
    case Form::kIeee:
      return rank < 0 ? (0 - static_cast<uint64_t>(rank)) | sign : two;
    case Form::kOrderedIeee: {
      // Negative ones complemented, the others with the sign bit set, plus 1.
      const uint64_t ieee = rank < 0 ? (0 - static_cast<uint64_t>(rank)) | sign : two;
      return ((ieee & sign ? ~ieee : ieee | sign) + 1) & mask;
    }
    case Form::kTruthByte:
      return rank == 0 ? 0 : pair.encoding == CellEncoding::kByte ? 0xff : 1;
    default:
      return 0;
  }
}

int64_t GreatestRank(const Pair& pair) {
  switch (pair.form) {
    case Form::kIeee:
    case Form::kOrderedIeee:
      return static_cast<int64_t>(IeeeBits(std::numeric_limits<double>::infinity(), pair.width));
    case Form::kTruthByte:
      return 1;
    default:
      break;
  }
  // A time that has no place in microseconds does not decode.
  return pair.unit_micros > 1 ? std::numeric_limits<int64_t>::max() / pair.unit_micros
                              : GreatestOf(pair.width);
}

int64_t LeastRank(const Pair& pair) {
  switch (pair.form) {
    case Form::kIeee:
    case Form::kOrderedIeee:
      return -GreatestRank(pair);
    case Form::kTruthByte:
      return 0;
    default:
      break;
  }
  return pair.unit_micros > 1 ? std::numeric_limits<int64_t>::min() / pair.unit_micros
                              : LeastOf(pair.width);
}

// The rank of the greatest number of the width that is not above d.
int64_t FloorRank(double d, size_t width) {
  const auto rank = [&](double exact) {
    const auto magnitude = static_cast<int64_t>(IeeeBits(std::fabs(exact), width));
    return exact < 0 ? -magnitude : magnitude;
  };
  if (width == 8) return rank(d);
  constexpr double kMax = std::numeric_limits<float>::max();
  if (std::isinf(d)) return rank(d);
  if (d > kMax) return rank(kMax);
  if (d < -kMax) return rank(-std::numeric_limits<double>::infinity());
  const int64_t nearest = rank(static_cast<double>(static_cast<float>(d)));
  return static_cast<double>(static_cast<float>(d)) > d ? nearest - 1 : nearest;
}

std::optional<double> DecodeIeee(uint64_t bits, size_t width) {
  const double d = FromIeeeBits(bits, width);
  if (std::isnan(d)) return std::nullopt;
  return d;
}

std::optional<Value> DecodeNumber(const Pair& pair, std::string_view bytes) {
  if (bytes.size() != pair.width) return std::nullopt;
  uint64_t bits = ReadBig(bytes);
  const uint64_t sign = SignBit(pair.width);
  switch (pair.form) {
    case Form::kFlippedSign:
      bits ^= sign;
      [[fallthrough]];
    case Form::kTwosComplement: {
      const int64_t n = SignExtended(bits, pair.width);
      if (pair.type == Type::kInt64) return Value::Int64(n);
      if (n < LeastRank(pair) || n > GreatestRank(pair)) return std::nullopt;
      return Value::Timestamp(n * pair.unit_micros);
    }
    case Form::kOrderedIeee:
      bits = (bits - 1) & Mask(pair.width);
      bits = bits & sign ? bits ^ sign : ~bits & Mask(pair.width);
      [[fallthrough]];
    case Form::kIeee: {
      const auto d = DecodeIeee(bits, pair.width);
      if (!d) return std::nullopt;
      return *Value::Double(*d);
    }
    case Form::kTruthByte:
      if (pair.encoding == CellEncoding::kPhoenix && bits > 1) return std::nullopt;
      return Value::Bool(bits != 0);
    default:
      return std::nullopt;
  }
}

// ---- Text

// -?[0-9]+ within 64 bits.
std::optional<Value> DecodeDigits(std::string_view text) {
  int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return Value::Int64(n);
}

// -?digits with an optional point and exponent, or -?Infinity. A number that is too large, or so
// small that it would become 0, does not decode.
std::optional<Value> DecodeDoubleText(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "Infinity") return *Value::Double(kInfinity);
  if (text == "-Infinity") return *Value::Double(-kInfinity);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  if (digits.empty() || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos) {
    return std::nullopt;
  }
  double d = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), d);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(d)) {
    return std::nullopt;
  }
  if (d == 0 && digits.substr(0, digits.find_first_of("eE")).find_first_of("123456789") !=
                    std::string_view::npos) {
    return std::nullopt;
  }
  return *Value::Double(d);
}

std::string DoubleText(double d) {
  if (std::isinf(d)) return d < 0 ? "-Infinity" : "Infinity";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), d);
  return {buffer, end};
}

bool EqualsIgnoringCase(std::string_view text, std::string_view lower) {
  return std::ranges::equal(
      text, lower, [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
}

std::optional<Value> DecodeText(Type type, std::string_view text) {
  switch (type) {
    case Type::kInt64:
      return DecodeDigits(text);
    case Type::kDouble:
      return DecodeDoubleText(text);
    case Type::kBool:
      if (EqualsIgnoringCase(text, "true")) return Value::Bool(true);
      if (EqualsIgnoringCase(text, "false")) return Value::Bool(false);
      return std::nullopt;
    case Type::kTimestamp: {
      const auto micros = ParseTimestamp(text);
      if (!micros.ok()) return std::nullopt;
      return Value::Timestamp(*micros);
    }
    case Type::kDecimal: {
      auto decimal = Value::Decimal(text);
      if (!decimal.ok()) return std::nullopt;
      return *std::move(decimal);
    }
    default:
      return std::nullopt;
  }
}

std::string TextOf(const Value& value) {
  if (value.type() == Type::kDouble) return DoubleText(value.dbl());
  return value.ToString();
}

// ---- Big decimals: unscaled x 10^-scale

using Limbs = std::vector<uint32_t>;  // least first

constexpr uint32_t kChunk = 1'000'000'000;  // nine digits
constexpr int kChunkDigits = 9;

Limbs LimbsOf(std::string_view digits) {
  Limbs limbs;
  while (!digits.empty()) {
    const size_t take =
        digits.size() % kChunkDigits == 0 ? kChunkDigits : digits.size() % kChunkDigits;
    uint64_t carry = 0;
    std::from_chars(digits.data(), digits.data() + take, carry);
    for (uint32_t& limb : limbs) {
      carry += uint64_t{limb} * kChunk;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) limbs.push_back(static_cast<uint32_t>(carry));
    digits.remove_prefix(take);
  }
  return limbs;
}

std::string DigitsOf(Limbs limbs) {
  std::string reversed;
  while (!limbs.empty()) {
    uint64_t rest = 0;
    for (size_t i = limbs.size(); i-- > 0;) {
      rest = rest << 32 | limbs[i];
      limbs[i] = static_cast<uint32_t>(rest / kChunk);
      rest %= kChunk;
    }
    while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
    for (int i = 0; i < kChunkDigits; ++i, rest /= 10) {
      reversed.push_back(static_cast<char>('0' + rest % 10));
    }
  }
  return {reversed.rbegin(), reversed.rend()};
}

// The complement of a number that stands as big-endian bytes.
void Negate(std::string* bytes) {
  bool carry = true;
  for (size_t i = bytes->size(); i-- > 0;) {
    const auto flipped = static_cast<uint8_t>(~(*bytes)[i]);
    (*bytes)[i] = static_cast<char>(flipped + (carry ? 1 : 0));
    carry = carry && flipped == 0xff;
  }
}

std::optional<Value> DecodeBigDecimal(std::string_view bytes) {
  if (bytes.size() < 5 || bytes.size() > kMaxBigDecimalBytes) return std::nullopt;
  const auto scale = static_cast<int32_t>(ReadBig(bytes.substr(0, 4)));
  std::string magnitude(bytes.substr(4));
  const bool negative = static_cast<uint8_t>(magnitude[0]) >= 0x80;
  if (negative) {
    magnitude.insert(magnitude.begin(), '\xff');  // the least number has no positive one as wide
    Negate(&magnitude);
  }
  Limbs limbs;
  for (size_t end = magnitude.size(); end > 0;) {
    const size_t begin = end < 4 ? 0 : end - 4;
    limbs.push_back(
        static_cast<uint32_t>(ReadBig(std::string_view(magnitude).substr(begin, end - begin))));
    end = begin;
  }
  while (!limbs.empty() && limbs.back() == 0) limbs.pop_back();
  std::string text = (negative ? "-" : "") + DigitsOf(std::move(limbs));
  if (text.empty()) text = "0";
  text += "e" + std::to_string(-int64_t{scale});
  auto value = Value::Decimal(text);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

// The shortest form: no zeros at the end of the unscaled number.
Result<std::string> EncodeBigDecimal(const Value& value) {
  const auto decimal = Decimal::Parse(value.str());
  if (!decimal.ok()) return decimal.status();
  const auto too_large = [&] {
    return Refused(value, CellEncoding::kBigDecimal, "it has too many digits");
  };
  const int64_t scale = static_cast<int64_t>(decimal->digits.size()) - decimal->exponent;
  if (decimal->digits.size() > 2 * kMaxBigDecimalBytes + 1700) return too_large();  // log10 of 256
  if (scale > INT32_MAX || scale < INT32_MIN) return too_large();
  std::string out = Big(decimal->digits.empty() ? 0 : static_cast<uint32_t>(scale), 4);
  std::string number;
  for (const uint32_t limb : LimbsOf(decimal->digits)) {
    std::string big = Big(limb, 4);
    number.append(big.rbegin(), big.rend());
  }
  std::ranges::reverse(number);
  number.insert(number.begin(), '\0');
  if (decimal->negative) Negate(&number);
  // Only as many bytes as the sign needs.
  size_t spare = 0;
  while (spare + 1 < number.size() &&
         ((number[spare] == '\0' && static_cast<uint8_t>(number[spare + 1]) < 0x80) ||
          (number[spare] == '\xff' && static_cast<uint8_t>(number[spare + 1]) >= 0x80))) {
    ++spare;
  }
  out += number.substr(spare);
  if (out.size() > kMaxBigDecimalBytes) return too_large();
  return out;
}

Result<std::string> EncodeNumber(const Pair& pair, const Value& value) {
  const CellRanks ranks = *RanksOf(pair.type, pair.encoding);
  const __int128 rank = RankAtLeast(pair.encoding, value, /*inclusive=*/true);
  if (rank == RankAtLeast(pair.encoding, value, /*inclusive=*/false)) {
    if (rank > ranks.begin && rank < ranks.end && pair.type == Type::kDouble) {
      const auto next = DecodeNumber(pair, BytesOfRank(pair.type, pair.encoding, rank));
      return Refused(value, pair.encoding,
                     "it has no exact place there; the next number that has is " +
                         (next ? next->ToString() : "none"));
    }
    return Refused(value, pair.encoding,
                   pair.type == Type::kTimestamp ? "it lies between two times of that unit"
                                                 : "it is out of range");
  }
  return BytesOfRank(pair.type, pair.encoding, rank);
}

}  // namespace

std::string_view EncodingName(CellEncoding encoding) {
  const auto i = static_cast<size_t>(encoding);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

Result<CellEncoding> ParseEncoding(std::string_view name) {
  for (size_t i = 1; i < std::size(kNames); ++i) {
    if (kNames[i] == name) return static_cast<CellEncoding>(i);
  }
  std::string names;
  for (size_t i = 1; i < std::size(kNames); ++i) {
    names += (names.empty() ? "" : ", ") + std::string(kNames[i]);
  }
  return InvalidArgument("there is no encoding \"" + std::string(name.substr(0, 60)) +
                         "\"; the encodings are " + names);
}

CellEncoding DefaultEncoding(Type type) {
  return std::ranges::find(kPairs, type, &Pair::type)->encoding;
}

bool IsEncodingOf(Type type, CellEncoding encoding) { return Find(type, encoding) != nullptr; }

std::optional<size_t> EncodingWidth(Type type, CellEncoding encoding) {
  const Pair* pair = Find(type, encoding);
  if (pair == nullptr || pair->width == 0) return std::nullopt;
  return pair->width;
}

std::optional<Value> DecodeCell(Type type, CellEncoding encoding, std::string_view bytes) {
  const Pair* pair = Find(type, encoding);
  if (pair == nullptr) return std::nullopt;
  switch (pair->form) {
    case Form::kAsIs:
      return type == Type::kText ? Value::Text(std::string(bytes))
                                 : Value::Bytes(std::string(bytes));
    case Form::kText:
      return DecodeText(type, bytes);
    case Form::kBigDecimal:
      return DecodeBigDecimal(bytes);
    default:
      return DecodeNumber(*pair, bytes);
  }
}

Result<std::string> EncodeCell(CellEncoding encoding, const Value& value) {
  const Pair* pair = value.is_null() ? nullptr : Find(value.type(), encoding);
  if (pair == nullptr) return Refused(value, encoding, "it is of another type");
  switch (pair->form) {
    case Form::kAsIs:
      return value.str();
    case Form::kText:
      return TextOf(value);
    case Form::kBigDecimal:
      return EncodeBigDecimal(value);
    default:
      return EncodeNumber(*pair, value);
  }
}

std::optional<CellRanks> RanksOf(Type type, CellEncoding encoding) {
  const Pair* pair = Find(type, encoding);
  if (pair == nullptr || pair->width == 0) return std::nullopt;
  CellRanks ranks{.begin = LeastRank(*pair), .end = __int128{GreatestRank(*pair)} + 1};
  if (pair->form == Form::kTwosComplement) ranks.order = CellRanks::Order::kAfter;
  if (pair->form == Form::kIeee) ranks.order = CellRanks::Order::kAfterBackwards;
  return ranks;
}

__int128 RankAtLeast(CellEncoding encoding, const Value& value, bool inclusive) {
  const Pair* pair = Find(value.type(), encoding);
  // The greatest rank that is not above the value.
  __int128 floor = 0;
  bool exact = true;
  if (pair->type == Type::kDouble) {
    floor = FloorRank(value.dbl(), pair->width);
    const auto back =
        DecodeNumber(*pair, Big(BitsOfRank(*pair, static_cast<int64_t>(floor)), pair->width));
    exact = back.has_value() && back->dbl() == value.dbl();
  } else if (pair->type == Type::kTimestamp) {
    floor = FloorDivide(value.int64(), pair->unit_micros);
    exact = floor * pair->unit_micros == value.int64();
  } else {
    floor = value.int64();
  }
  const __int128 rank = exact && inclusive ? floor : floor + 1;
  return std::clamp(rank, __int128{LeastRank(*pair)}, __int128{GreatestRank(*pair)} + 1);
}

std::string BytesOfRank(Type type, CellEncoding encoding, __int128 rank) {
  const Pair* pair = Find(type, encoding);
  return Big(BitsOfRank(*pair, static_cast<int64_t>(rank)), pair->width);
}

}  // namespace tamis
