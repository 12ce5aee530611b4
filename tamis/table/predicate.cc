#include "tamis/table/predicate.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include "tamis/base/coding.h"
#include "tamis/table/literal.h"
#include "tamis/table/schema.h"

namespace tamis {
namespace {

using Kind = Predicate::Kind;
using Op = Predicate::Op;

constexpr int kMaxDepth = 100;

bool Holds(Op op, std::strong_ordering order) {
  switch (op) {
    case Op::kEq:
      return order == 0;
    case Op::kNe:
      return order != 0;
    case Op::kLt:
      return order < 0;
    case Op::kLe:
      return order <= 0;
    case Op::kGt:
      return order > 0;
    case Op::kGe:
      return order >= 0;
  }
  return false;
}

Op Negated(Op op) {
  switch (op) {
    case Op::kEq:
      return Op::kNe;
    case Op::kNe:
      return Op::kEq;
    case Op::kLt:
      return Op::kGe;
    case Op::kLe:
      return Op::kGt;
    case Op::kGt:
      return Op::kLe;
    case Op::kGe:
      break;
  }
  return Op::kLt;
}

std::string_view OpName(Op op) {
  switch (op) {
    case Op::kEq:
      return "=";
    case Op::kNe:
      return "<>";
    case Op::kLt:
      return "<";
    case Op::kLe:
      return "<=";
    case Op::kGt:
      return ">";
    case Op::kGe:
      return ">=";
  }
  return "?";
}

// The least value of its type, where there is one: nothing is below it.
bool IsLeast(const Value& value) {
  switch (value.type()) {
    case Type::kText:
    case Type::kBytes:
      return value.str().empty();
    case Type::kInt64:
    case Type::kTimestamp:
      return value.int64() == std::numeric_limits<int64_t>::min();
    case Type::kBool:
      return value.int64() == 0;
    case Type::kDouble:
      return value.dbl() == -std::numeric_limits<double>::infinity();
    case Type::kDecimal:
      return false;
  }
  return false;
}

Value LikeValue(const Value& like, std::string text) {
  return like.type() == Type::kBytes ? Value::Bytes(std::move(text)) : Value::Text(std::move(text));
}

Predicate Normalize(const Predicate& predicate, bool negated);

Predicate NormalizeCompare(const Predicate& predicate, bool negated) {
  const Value& value = predicate.values[0];
  if (value.is_null()) return Predicate::False();  // always unknown
  const Op op = negated ? Negated(predicate.op) : predicate.op;
  if (IsLeast(value)) {
    if (op == Op::kLt) return Predicate::False();
    if (op == Op::kGe) return Predicate::NotNull(predicate.column);
    if (op == Op::kLe) return Predicate::Compare(predicate.column, Op::kEq, value);
  }
  return Predicate::Compare(predicate.column, op, value);
}

Predicate NormalizeIn(const Predicate& predicate, bool negated) {
  std::vector<Value> values = predicate.values;
  const bool with_null = !values.empty() && values[0].is_null();
  if (with_null) values.erase(values.begin());
  if (!negated) {
    if (values.empty()) return Predicate::False();
    if (values.size() == 1) return Predicate::Compare(predicate.column, Op::kEq, values[0]);
    return Predicate::In(predicate.column, std::move(values));
  }
  if (with_null) return Predicate::False();  // never true: unknown at best
  std::vector<Predicate> children;
  children.reserve(values.size());
  for (Value& value : values) {
    children.push_back(Predicate::Compare(predicate.column, Op::kNe, std::move(value)));
  }
  if (children.empty()) return Predicate::True();  // NOT IN () holds for NULL too
  return children.size() == 1 ? std::move(children[0]) : Predicate::And(std::move(children));
}

Predicate NormalizePrefix(const Predicate& predicate, bool negated) {
  const Value& prefix = predicate.values[0];
  if (prefix.is_null()) return Predicate::False();
  if (prefix.str().empty()) {
    return negated ? Predicate::False() : Predicate::NotNull(predicate.column);
  }
  if (!negated) return predicate;
  Predicate below = Predicate::Compare(predicate.column, Op::kLt, prefix);
  std::string end = PrefixEnd(prefix.str());
  if (end.empty()) return below;
  Predicate above =
      Predicate::Compare(predicate.column, Op::kGe, LikeValue(prefix, std::move(end)));
  return Predicate::Or({std::move(below), std::move(above)});
}

// AND when `conjunction`, else OR.
Predicate NormalizeChildren(const std::vector<Predicate>& children, bool conjunction,
                            bool negated) {
  if (negated) conjunction = !conjunction;
  const Kind kind = conjunction ? Kind::kAnd : Kind::kOr;
  const Kind neutral = conjunction ? Kind::kTrue : Kind::kFalse;
  const Kind absorbing = conjunction ? Kind::kFalse : Kind::kTrue;
  std::vector<Predicate> kept;
  for (const Predicate& child : children) {
    Predicate normal = Normalize(child, negated);
    if (normal.kind == neutral) continue;
    if (normal.kind == absorbing) return normal;
    if (normal.kind == kind) {
      std::move(normal.children.begin(), normal.children.end(), std::back_inserter(kept));
    } else {
      kept.push_back(std::move(normal));
    }
  }
  if (kept.empty()) return conjunction ? Predicate::True() : Predicate::False();
  if (kept.size() == 1) return std::move(kept[0]);
  return conjunction ? Predicate::And(std::move(kept)) : Predicate::Or(std::move(kept));
}

// The predicate, or its negation, with NOT pushed down to the leaves. Once no NOT is left,
// "unknown" and "false" mean the same to the whole, which is what allows most of the folding.
Predicate Normalize(const Predicate& predicate, bool negated) {
  switch (predicate.kind) {
    case Kind::kTrue:
    case Kind::kFalse:
      return (predicate.kind == Kind::kTrue) != negated ? Predicate::True() : Predicate::False();
    case Kind::kAnd:
    case Kind::kOr:
      return NormalizeChildren(predicate.children, predicate.kind == Kind::kAnd, negated);
    case Kind::kNot:
      return Normalize(predicate.children[0], !negated);
    case Kind::kCompare:
      return NormalizeCompare(predicate, negated);
    case Kind::kIn:
      return NormalizeIn(predicate, negated);
    case Kind::kPrefix:
      return NormalizePrefix(predicate, negated);
    case Kind::kIsNull:
    case Kind::kNotNull:
      return (predicate.kind == Kind::kIsNull) != negated ? Predicate::IsNull(predicate.column)
                                                          : Predicate::NotNull(predicate.column);
  }
  return predicate;
}

Status ValidateAt(const Predicate& predicate, const TableSchema& schema, int depth) {
  if (depth > kMaxDepth) {
    return InvalidArgument("the condition is nested more than " + std::to_string(kMaxDepth) +
                           " deep; write it flatter");
  }
  const auto shaped = [&](bool good) {
    return good ? Status::Ok()
                : InvalidArgument("the condition is malformed (kind " +
                                  std::to_string(static_cast<int>(predicate.kind)) + ")");
  };
  switch (predicate.kind) {
    case Kind::kTrue:
    case Kind::kFalse:
      return shaped(predicate.values.empty() && predicate.children.empty());
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kNot:
      TAMIS_RETURN_IF_ERROR(shaped(predicate.values.empty() && (predicate.kind != Kind::kNot ||
                                                                predicate.children.size() == 1)));
      for (const Predicate& child : predicate.children) {
        TAMIS_RETURN_IF_ERROR(ValidateAt(child, schema, depth + 1));
      }
      return Status::Ok();
    case Kind::kCompare:
      TAMIS_RETURN_IF_ERROR(shaped(predicate.op >= Op::kEq && predicate.op <= Op::kGe));
      [[fallthrough]];
    case Kind::kPrefix:
      TAMIS_RETURN_IF_ERROR(shaped(predicate.values.size() == 1));
      break;
    case Kind::kIn:
      break;
    case Kind::kIsNull:
    case Kind::kNotNull:
      TAMIS_RETURN_IF_ERROR(shaped(predicate.values.empty()));
      break;
    default:
      return shaped(false);
  }
  TAMIS_RETURN_IF_ERROR(shaped(predicate.children.empty()));
  if (predicate.column >= schema.columns.size()) {
    return InvalidArgument("the condition names column number " + std::to_string(predicate.column) +
                           ", which table \"" + schema.name + "\" does not have");
  }
  const Column& column = schema.columns[predicate.column];
  for (const Value& value : predicate.values) {
    if (!value.is_null() && value.type() != column.type) {
      return InvalidArgument("the condition compares column \"" + column.name + "\" of type " +
                             std::string(TypeName(column.type)) + " with a value of type " +
                             std::string(TypeName(value.type())));
    }
  }
  if (predicate.kind == Kind::kPrefix && column.type != Type::kText &&
      column.type != Type::kBytes) {
    return InvalidArgument("the condition asks for a prefix of column \"" + column.name +
                           "\", which is neither text nor bytes");
  }
  return Status::Ok();
}

// The conjunction `low <= column AND column <= high` as BETWEEN is the same; it is printed as it
// is.
std::string Print(const Predicate& predicate, const TableSchema& schema, bool in_and) {
  const std::string column = predicate.column < schema.columns.size()
                                 ? schema.columns[predicate.column].name
                                 : "column " + std::to_string(predicate.column);
  switch (predicate.kind) {
    case Kind::kTrue:
      return "true";
    case Kind::kFalse:
      return "false";
    case Kind::kAnd:
    case Kind::kOr: {
      const bool conjunction = predicate.kind == Kind::kAnd;
      if (predicate.children.empty()) return conjunction ? "true" : "false";
      std::string out;
      for (const Predicate& child : predicate.children) {
        if (!out.empty()) out += conjunction ? " AND " : " OR ";
        out += Print(child, schema, conjunction);
      }
      return !conjunction && in_and && predicate.children.size() > 1 ? "(" + out + ")" : out;
    }
    case Kind::kNot:
      return "NOT (" + Print(predicate.children[0], schema, false) + ")";
    case Kind::kCompare:
      return column + " " + std::string(OpName(predicate.op)) + " " + Literal(predicate.values[0]);
    case Kind::kIn: {
      std::string out;
      for (const Value& value : predicate.values) {
        if (!out.empty()) out += ", ";
        out += Literal(value);
      }
      return column + " IN (" + out + ")";
    }
    case Kind::kPrefix:
      return column + " LIKE " +
             Literal(predicate.values[0].is_null()
                         ? Value()
                         : LikeValue(predicate.values[0], predicate.values[0].str() + "%"));
    case Kind::kIsNull:
      return column + " IS NULL";
    case Kind::kNotNull:
      return column + " IS NOT NULL";
  }
  return "?";
}

}  // namespace

Predicate Predicate::And(std::vector<Predicate> children) {
  return {.kind = Kind::kAnd, .children = std::move(children)};
}
Predicate Predicate::Or(std::vector<Predicate> children) {
  return {.kind = Kind::kOr, .children = std::move(children)};
}
Predicate Predicate::Not(Predicate child) {
  Predicate out{.kind = Kind::kNot};
  out.children.push_back(std::move(child));
  return out;
}
Predicate Predicate::Compare(uint32_t column, Op op, Value value) {
  Predicate out{.kind = Kind::kCompare, .op = op, .column = column};
  out.values.push_back(std::move(value));
  return out;
}
Predicate Predicate::Between(uint32_t column, Value low, Value high) {
  return And({Compare(column, Op::kGe, std::move(low)), Compare(column, Op::kLe, std::move(high))});
}
Predicate Predicate::In(uint32_t column, std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return {.kind = Kind::kIn, .column = column, .values = std::move(values)};
}
Predicate Predicate::Prefix(uint32_t column, std::string prefix) {
  Predicate out{.kind = Kind::kPrefix, .column = column};
  out.values.push_back(Value::Text(std::move(prefix)));
  return out;
}
Predicate Predicate::IsNull(uint32_t column) { return {.kind = Kind::kIsNull, .column = column}; }
Predicate Predicate::NotNull(uint32_t column) { return {.kind = Kind::kNotNull, .column = column}; }

void Predicate::AddColumns(std::vector<bool>* columns) const {
  const bool has_column = kind == Kind::kCompare || kind == Kind::kIn || kind == Kind::kPrefix ||
                          kind == Kind::kIsNull || kind == Kind::kNotNull;
  if (has_column) (*columns)[column] = true;
  for (const Predicate& child : children) child.AddColumns(columns);
}

std::optional<bool> Predicate::Evaluate(const Row& row) const {
  switch (kind) {
    case Kind::kTrue:
      return true;
    case Kind::kFalse:
      return false;
    case Kind::kAnd:
    case Kind::kOr: {
      const bool decisive = kind == Kind::kOr;
      bool unknown = false;
      for (const Predicate& child : children) {
        const std::optional<bool> truth = child.Evaluate(row);
        if (truth == decisive) return decisive;
        if (!truth) unknown = true;
      }
      if (unknown) return std::nullopt;
      return !decisive;
    }
    case Kind::kNot: {
      const std::optional<bool> truth = children[0].Evaluate(row);
      if (!truth) return std::nullopt;
      return !*truth;
    }
    case Kind::kCompare: {
      const Value& left = row[column];
      if (left.is_null() || values[0].is_null()) return std::nullopt;
      return Holds(op, left <=> values[0]);
    }
    case Kind::kIn: {
      if (values.empty()) return false;
      const Value& left = row[column];
      if (left.is_null()) return std::nullopt;
      if (std::binary_search(values.begin(), values.end(), left)) return true;
      if (values.front().is_null()) return std::nullopt;
      return false;
    }
    case Kind::kPrefix: {
      const Value& left = row[column];
      if (left.is_null() || values[0].is_null()) return std::nullopt;
      return left.str().starts_with(values[0].str());
    }
    case Kind::kIsNull:
      return row[column].is_null();
    case Kind::kNotNull:
      return !row[column].is_null();
  }
  return std::nullopt;
}

Status Predicate::Validate(const TableSchema& schema) const { return ValidateAt(*this, schema, 1); }

Predicate Predicate::Normalized() const { return Normalize(*this, false); }

std::string Predicate::ToString(const TableSchema& schema) const {
  return Print(*this, schema, false);
}

}  // namespace tamis
