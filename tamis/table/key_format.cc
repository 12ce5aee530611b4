#include "tamis/table/key_format.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"
#include "tamis/table/escape.h"
#include "tamis/table/literal.h"
#include "tamis/table/ordered_bounds.h"

namespace tamis {
namespace {

using Form = KeyPart::Form;
using Kind = Predicate::Kind;
using Op = Predicate::Op;

// Bytes up to the first place at which the delimiter would be found, were it put after them.
size_t SizeBeforeDelimiter(std::string bytes, const std::string& delimiter) {
  bytes += delimiter;
  return bytes.find(delimiter);
}

// Keys that begin with `prefix`; from `low`, and before `high` where it is not empty.
KeySpan Within(const std::string& prefix, std::string low, std::string high) {
  return {std::move(low), high.empty() ? PrefixEnd(prefix) : std::move(high)};
}

// Where the keys begin that are greater than all that begin with `head`. Nothing is: an empty span.
KeySpan Above(const std::string& prefix, const std::string& head) {
  std::string low = PrefixEnd(head);
  if (low.empty()) return {head, head};
  return Within(prefix, std::move(low), "");
}

// No span where there is no key.
std::vector<KeySpan> One(KeySpan span) {
  if (span.empty()) return {};
  return {std::move(span)};
}

// The spans before `high`; empty where `high` is after all keys.
std::vector<KeySpan> Below(const std::string& prefix, std::string high) {
  return One(Within(prefix, prefix, std::move(high)));
}

// Text or bytes of a fixed width: a longer bound lies between two values.
std::vector<KeySpan> OfFixedText(Op op, const std::string& bound, size_t width,
                                 const std::string& prefix) {
  const bool shorter = bound.size() < width;
  const bool longer = bound.size() > width;
  const std::string head = prefix + bound.substr(0, width);
  if (bound.empty() && (op == Op::kLt || op == Op::kLe)) return {};
  switch (op) {
    case Op::kGe:
      return One(longer ? Above(prefix, head) : Within(prefix, head, ""));
    case Op::kGt:
      return One(shorter ? Within(prefix, head, "") : Above(prefix, head));
    case Op::kLt:
      return Below(prefix, longer ? PrefixEnd(head) : head);
    default:
      return Below(prefix, shorter ? head : PrefixEnd(head));
  }
}

std::vector<KeySpan> OfRest(Op op, const std::string& bound, const std::string& prefix) {
  const std::string at = prefix + bound;
  const std::string behind = at + '\0';
  if (bound.empty() && op == Op::kLt) return {};
  switch (op) {
    case Op::kGe:
      return One(Within(prefix, at, ""));
    case Op::kGt:
      return One(Within(prefix, behind, ""));
    case Op::kLt:
      return Below(prefix, at);
    default:
      return Below(prefix, behind);
  }
}

// A delimiter of zeros stands before every byte that a value can have in its place. A bound that
// holds the delimiter lies after the value that ends before it, and before all longer ones.
std::vector<KeySpan> OfOrderedUntil(Op op, const std::string& bound, const std::string& delimiter,
                                    const std::string& prefix) {
  const size_t size = SizeBeforeDelimiter(bound, delimiter);
  const bool is_value = size == bound.size();
  const std::string at = prefix + bound.substr(0, size) + delimiter;
  switch (op) {
    case Op::kGe:
      return One(is_value ? Within(prefix, at, "") : Above(prefix, at));
    case Op::kGt:
      return One(Above(prefix, at));
    case Op::kLt:
      return Below(prefix, is_value ? at : PrefixEnd(at));
    default:
      return Below(prefix, PrefixEnd(at));
  }
}

bool IsOrderedDelimiter(const std::string& delimiter) {
  return std::ranges::all_of(delimiter, [](char c) { return c == '\0'; });
}

// Numbers of a width: negative ones may be a stretch of bytes of their own.
std::vector<KeySpan> OfRanks(Type type, const KeyPart& part, Op op, const Value& bound,
                             const std::string& prefix) {
  CellRanks ranks = *RanksOf(type, part.encoding);
  switch (op) {
    case Op::kGe:
      ranks.begin = RankAtLeast(part.encoding, bound, true);
      break;
    case Op::kGt:
      ranks.begin = RankAtLeast(part.encoding, bound, false);
      break;
    case Op::kLt:
      ranks.end = RankAtLeast(part.encoding, bound, true);
      break;
    default:
      ranks.end = RankAtLeast(part.encoding, bound, false);
      break;
  }
  std::vector<KeySpan> spans;
  const auto add = [&](__int128 begin, __int128 end, bool backwards) {
    if (begin >= end) return;
    std::string first = prefix + BytesOfRank(type, part.encoding, begin);
    std::string last = prefix + BytesOfRank(type, part.encoding, end - 1);
    if (backwards) std::swap(first, last);
    spans.push_back({std::move(first), PrefixEnd(last)});
  };
  if (ranks.order == CellRanks::Order::kByValue) {
    add(ranks.begin, ranks.end, false);
    return spans;
  }
  add(std::max<__int128>(ranks.begin, 0), ranks.end, false);
  add(ranks.begin, std::min<__int128>(ranks.end, 0),
      ranks.order == CellRanks::Order::kAfterBackwards);
  return spans;
}

}  // namespace

const KeyPart& KeyFormat::Part(size_t part) const {
  static const KeyPart kOrdered;
  return schema_.key_parts.empty() ? kOrdered : schema_.key_parts[part];
}

Status KeyFormat::Append(size_t i, const Value& value, std::string* key) const {
  const KeyPart& part = Part(i);
  if (part.form == Form::kOrdered) {
    AppendOrdered(value, key);
    return Status::Ok();
  }
  const auto refused = [&](const std::string& why) {
    return InvalidArgument("key column \"" + std::string(Name(i)) + "\": " + why);
  };
  if (value.is_null()) return refused("it cannot be NULL");
  auto bytes = EncodeCell(part.encoding, value);
  if (!bytes.ok()) return refused(bytes.status().message());
  if (part.width != 0 && bytes->size() != part.width) {
    return refused("a value of " + std::to_string(bytes->size()) + " bytes; the key has " +
                   std::to_string(part.width) + " for it");
  }
  if (part.form == Form::kUntil && SizeBeforeDelimiter(*bytes, part.delimiter) != bytes->size()) {
    return refused("the value holds the delimiter that ends it in the key, '" +
                   Escape(part.delimiter, "") + "', or the beginning of it at its end");
  }
  *key += *bytes;
  if (part.form == Form::kUntil) *key += part.delimiter;
  return Status::Ok();
}

Result<std::string> KeyFormat::Encode(const Row& row) const {
  std::string key;
  for (size_t i = 0; i < schema_.key.size(); ++i) {
    TAMIS_RETURN_IF_ERROR(Append(i, row[schema_.key[i]], &key));
  }
  if (key.empty()) return InvalidArgument("a row key cannot be empty");
  return key;
}

// Takes one part off the front.
bool KeyFormat::Take(size_t i, std::string_view* key, Value* value) const {
  const KeyPart& part = Part(i);
  const Type type = TypeOf(i);
  if (part.form == Form::kOrdered) {
    auto read = ReadOrdered(type, key);
    if (!read.ok()) return false;
    *value = *std::move(read);
    return true;
  }
  size_t size = key->size();
  size_t behind = 0;
  if (part.form == Form::kUntil) {
    size = key->find(part.delimiter);
    behind = part.delimiter.size();
  } else if (part.form == Form::kFixed) {
    size = part.width != 0 ? part.width : EncodingWidth(type, part.encoding).value_or(0);
  }
  if (size > key->size()) return false;
  const std::string_view bytes = key->substr(0, size);
  auto read = DecodeCell(type, part.encoding, bytes);
  if (!read.has_value()) return false;
  const auto again = EncodeCell(part.encoding, *read);
  if (!again.ok() || *again != bytes) return false;  // not what we would write
  *value = *std::move(read);
  key->remove_prefix(size + behind);
  return true;
}

Status KeyFormat::Decode(std::string_view key, Row* row) const {
  row->resize(schema_.columns.size());
  bool good = !key.empty();
  for (size_t i = 0; good && i < schema_.key.size(); ++i) {
    good = Take(i, &key, &(*row)[schema_.key[i]]);
  }
  if (!good || !key.empty()) {
    return DataLoss("cannot decode a row key of table \"" + schema_.name +
                    "\": the bytes are not of its key format");
  }
  return Status::Ok();
}

std::string KeyFormat::ToText(std::string_view key) const {
  std::string text;
  const auto add = [&](const std::string& value) { text += (text.empty() ? "" : ", ") + value; };
  Value value;
  for (size_t i = 0; i < schema_.key.size() && !key.empty() && Take(i, &key, &value); ++i) {
    add(Literal(value));
  }
  if (!key.empty()) add(Literal(Value::Bytes(std::string(key))));
  return "(" + text + ")";
}

KeySpan KeyFormat::SpanOf(const std::string& prefix, size_t parts) const {
  return {prefix, parts == schema_.key.size() ? prefix + '\0' : PrefixEnd(prefix)};
}

bool KeyFormat::IsOrdered(size_t i) const {
  const KeyPart& part = Part(i);
  switch (part.form) {
    case Form::kOrdered:
      return true;
    case Form::kFixed: {
      const auto ranks = RanksOf(TypeOf(i), part.encoding);
      return !ranks.has_value() || ranks->order == CellRanks::Order::kByValue;
    }
    case Form::kUntil:
      return KeepsBytes(part.encoding) && IsOrderedDelimiter(part.delimiter);
    case Form::kRest:
      return KeepsBytes(part.encoding);
  }
  return false;
}

std::optional<std::vector<KeySpan>> KeyFormat::SpansOf(size_t i, const Predicate& leaf,
                                                       const std::string& prefix) const {
  const KeyPart& part = Part(i);
  if (part.form == Form::kOrdered) {
    const auto bounds = BoundsOf(leaf, /*indexed=*/false);
    if (!bounds.has_value()) return std::nullopt;
    return One(
        Within(prefix, prefix + bounds->low, bounds->high.empty() ? "" : prefix + bounds->high));
  }
  if (leaf.kind == Kind::kIsNull) return std::vector<KeySpan>();
  if ((leaf.kind != Kind::kCompare && leaf.kind != Kind::kPrefix) || leaf.values[0].is_null()) {
    return std::nullopt;
  }
  const Value& bound = leaf.values[0];
  if (leaf.kind == Kind::kPrefix) {
    const std::string& head = bound.str();
    const bool impossible =
        (part.width != 0 && head.size() > part.width) ||
        (part.form == Form::kUntil && head.find(part.delimiter) != std::string::npos);
    if (impossible) return std::vector<KeySpan>();
    return One(KeySpan{prefix + head, PrefixEnd(prefix + head)});
  }
  if (leaf.op == Op::kNe) return std::nullopt;
  if (leaf.op == Op::kEq) {
    std::string at = prefix;
    if (!Append(i, bound, &at).ok()) return std::vector<KeySpan>();
    return One(SpanOf(at, i + 1));
  }
  if (RanksOf(TypeOf(i), part.encoding).has_value()) {
    return OfRanks(TypeOf(i), part, leaf.op, bound, prefix);
  }
  if (!IsOrdered(i)) return std::nullopt;
  switch (part.form) {
    case Form::kFixed:
      return OfFixedText(leaf.op, bound.str(), part.width, prefix);
    case Form::kUntil:
      return OfOrderedUntil(leaf.op, bound.str(), part.delimiter, prefix);
    default:
      return OfRest(leaf.op, bound.str(), prefix);
  }
}

}  // namespace tamis
