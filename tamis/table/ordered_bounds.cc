#include "tamis/table/ordered_bounds.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

using Kind = Predicate::Kind;
using Op = Predicate::Op;

constexpr size_t kTextEndSize = 2;  // the codec puts so many bytes after text

std::string Encoded(const Value& value, bool indexed, bool* cut) {
  std::string bytes;
  if (indexed) {
    *cut |= AppendIndexed(value, &bytes);
  } else {
    AppendOrdered(value, &bytes);
  }
  return bytes;
}

std::string AfterNull() {
  std::string null;
  AppendOrdered(Value(), &null);
  return PrefixEnd(null);
}

}  // namespace

void OrderedBounds::Narrow(const OrderedBounds& other) {
  low = std::max(low, other.low);
  if (!other.high.empty() && (high.empty() || other.high < high)) high = other.high;
}

std::optional<OrderedBounds> BoundsOf(const Predicate& leaf, bool indexed) {
  bool cut = false;
  switch (leaf.kind) {
    case Kind::kIsNull: {
      std::string null = Encoded(Value(), indexed, &cut);
      return OrderedBounds{null, PrefixEnd(null)};
    }
    case Kind::kPrefix: {
      const Value& prefix = leaf.values[0];
      Value whole = prefix;
      if (indexed && prefix.str().size() > kIndexValueLimit) {
        const std::string head = prefix.str().substr(0, kIndexValueLimit);
        whole = prefix.type() == Type::kText ? Value::Text(head) : Value::Bytes(head);
      }
      std::string low;
      AppendOrdered(whole, &low);
      low.resize(low.size() - kTextEndSize);
      return OrderedBounds{low, PrefixEnd(low)};
    }
    case Kind::kCompare: {
      if (leaf.op == Op::kNe || leaf.values[0].is_null()) return std::nullopt;
      const std::string value = Encoded(leaf.values[0], indexed, &cut);
      switch (leaf.op) {
        case Op::kEq:
          return OrderedBounds{value, PrefixEnd(value)};
        case Op::kLt:
          return OrderedBounds{AfterNull(), cut ? PrefixEnd(value) : value};
        case Op::kLe:
          return OrderedBounds{AfterNull(), PrefixEnd(value)};
        case Op::kGt:
          return OrderedBounds{cut ? value : PrefixEnd(value), ""};
        case Op::kGe:
          return OrderedBounds{value, ""};
        case Op::kNe:
          return std::nullopt;
      }
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace tamis
