#include "tamis/sql/literal_condition.h"

#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "tamis/sql/values.h"

namespace tamis {
namespace {

using Op = Predicate::Op;
constexpr int kMaxDepth = 20;  // the depth of parentheses
constexpr size_t kMostIntegerDigits = 18;
// SQLite divides a number of so many digits by 10 once for each digit behind the point. Within
// these bounds the result is the nearest double, whatever the precision that it divides with.
constexpr size_t kMostRealDigits = 15;
constexpr size_t kMostFractionDigits = 4;

// nullopt: SQLite may read another value, or none.
std::optional<Value> NumberOf(const std::string& digits, bool negative) {
  const std::string text = (negative ? "-" : "") + digits;
  const char* const end = text.data() + text.size();
  const size_t point = digits.find('.');
  if (point == std::string::npos) {
    int64_t number = 0;
    const bool leading_zero = digits.size() > 1 && digits[0] == '0';
    if (leading_zero || digits.size() > kMostIntegerDigits) return std::nullopt;
    if (std::from_chars(text.data(), end, number).ptr != end) return std::nullopt;
    return Value::Int64(number);
  }
  const size_t fraction = digits.size() - point - 1;
  if (fraction == 0 || fraction > kMostFractionDigits || digits.size() - 1 > kMostRealDigits) {
    return std::nullopt;
  }
  double number = 0;
  if (std::from_chars(text.data(), end, number).ptr != end) return std::nullopt;
  auto value = Value::Double(number);
  if (!value.ok()) return std::nullopt;
  return *std::move(value);
}

class ConditionReader {
 public:
  ConditionReader(const SelectStatement& statement, const TableSchema& schema)
      : statement_(statement), schema_(schema), next_(statement.where.begin) {}

  Result<Predicate> Read() {
    TAMIS_ASSIGN_OR_RETURN(Predicate condition, Alternatives());
    if (next_ != statement_.where.end) return Unknown();
    return condition;
  }

 private:
  const SqlToken& Next() const { return statement_.At(next_); }
  bool Take(std::string_view word) {
    if (next_ >= statement_.where.end || !Next().Is(word)) return false;
    ++next_;
    return true;
  }
  Status Unknown() const {
    const bool at_end = next_ >= statement_.where.end;
    return InvalidArgument(
        "its WHERE clause has more than comparisons of columns with literals of the same kind, " +
        (at_end ? std::string("at its end")
                : "at \"" + std::string(statement_.Text({next_, next_ + 1})) + "\""));
  }

  Result<Predicate> Alternatives() {
    std::vector<Predicate> any;
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate next, Conjunction());
      any.push_back(std::move(next));
    } while (Take("or"));
    return any.size() == 1 ? std::move(any[0]) : Predicate::Or(std::move(any));
  }
  Result<Predicate> Conjunction() {
    std::vector<Predicate> all;
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate next, Term());
      all.push_back(std::move(next));
    } while (Take("and"));
    return all.size() == 1 ? std::move(all[0]) : Predicate::And(std::move(all));
  }
  Result<Predicate> Term() {
    if (!Take("(")) return Comparison();
    if (++depth_ > kMaxDepth) return Unknown();
    TAMIS_ASSIGN_OR_RETURN(Predicate inner, Alternatives());
    --depth_;
    if (!Take(")")) return Unknown();
    return inner;
  }

  Result<Predicate> Comparison() {
    TAMIS_ASSIGN_OR_RETURN(const uint32_t column, TakeColumn());
    if (Take("is")) {
      const bool negated = Take("not");
      if (!Take("null")) return Unknown();
      return negated ? Predicate::NotNull(column) : Predicate::IsNull(column);
    }
    const bool negated = Take("not");
    if (Take("between")) return Between(column, negated);
    if (Take("in")) return In(column, negated);
    if (negated) return Unknown();
    TAMIS_ASSIGN_OR_RETURN(const Op op, TakeOp());
    return Compare(column, op);
  }
  Result<Predicate> Between(uint32_t column, bool negated) {
    TAMIS_ASSIGN_OR_RETURN(Predicate low, Compare(column, negated ? Op::kLt : Op::kGe));
    if (!Take("and")) return Unknown();
    TAMIS_ASSIGN_OR_RETURN(Predicate high, Compare(column, negated ? Op::kGt : Op::kLe));
    std::vector<Predicate> both = {std::move(low), std::move(high)};
    return negated ? Predicate::Or(std::move(both)) : Predicate::And(std::move(both));
  }
  Result<Predicate> In(uint32_t column, bool negated) {
    if (!Take("(")) return Unknown();
    std::vector<Predicate> each;
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate one, Compare(column, negated ? Op::kNe : Op::kEq));
      each.push_back(std::move(one));
    } while (Take(","));
    if (!Take(")")) return Unknown();
    if (negated) return Predicate::And(std::move(each));
    std::vector<Value> values;
    for (Predicate& one : each) {
      // A number that the column cannot have is not equal to any.
      if (one.kind == Predicate::Kind::kCompare) values.push_back(std::move(one.values[0]));
    }
    return Predicate::In(column, std::move(values));
  }

  Result<uint32_t> TakeColumn() {
    for (const size_t size : {size_t{3}, size_t{1}}) {
      if (next_ + size > statement_.where.end) continue;
      const auto column = statement_.ColumnAt({next_, next_ + size}, schema_);
      if (!column.has_value()) continue;
      next_ += size;
      return *column;
    }
    return Unknown();
  }
  // The second character of an operator follows the first one at once.
  bool TakeSecond(std::string_view character) {
    return statement_.At(next_ - 1).end == Next().begin && Take(character);
  }
  Result<Op> TakeOp() {
    if (Take("<")) return TakeSecond("=") ? Op::kLe : TakeSecond(">") ? Op::kNe : Op::kLt;
    if (Take(">")) return TakeSecond("=") ? Op::kGe : Op::kGt;
    if (Take("!")) {
      if (TakeSecond("=")) return Op::kNe;
      return Unknown();
    }
    if (!Take("=")) return Unknown();
    TakeSecond("=");
    return Op::kEq;
  }
  // column op the literal that follows
  Result<Predicate> Compare(uint32_t column, Op op) {
    const Type type = schema_.columns[column].type;
    std::optional<Value> value;
    if (type == Type::kText || type == Type::kTimestamp) {
      if (next_ < statement_.where.end && Next().kind == SqlToken::Kind::kText) {
        value = Value::Text(Next().word);
      }
    } else if (type == Type::kInt64 || type == Type::kDouble || type == Type::kBool) {
      const bool negative = Take("-");
      if (next_ < statement_.where.end && Next().kind == SqlToken::Kind::kNumber) {
        value = NumberOf(Next().word, negative);
      }
    }
    if (!value.has_value()) return Unknown();
    ++next_;
    return CompareSql(schema_, column, op, *value);
  }

  const SelectStatement& statement_;
  const TableSchema& schema_;
  size_t next_;
  int depth_ = 0;
};

}  // namespace

Result<Predicate> LiteralCondition(const SelectStatement& statement, const TableSchema& schema) {
  if (statement.where.empty()) return Predicate::True();
  return ConditionReader(statement, schema).Read();
}

}  // namespace tamis
