#include "tamis/table/condition.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

constexpr int kMaxDepth = 50;  // the depth of parentheses and NOTs

Status Unreadable(const std::string& why) {
  return InvalidArgument("cannot read its condition: " + why);
}

std::optional<std::string> FromHex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    const int high = HexDigit(digits[i]), low = HexDigit(digits[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

class Parser {
 public:
  Parser(const TableSchema& schema, Tokens* tokens) : schema_(schema), tokens_(tokens) {}

  Result<Predicate> Alternatives() {
    std::vector<Predicate> any;
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate next, Conjunction());
      any.push_back(std::move(next));
    } while (tokens_->Take("or"));
    return any.size() == 1 ? std::move(any[0]) : Predicate::Or(std::move(any));
  }

 private:
  Result<Predicate> Conjunction() {
    std::vector<Predicate> all;
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate next, Term());
      all.push_back(std::move(next));
    } while (tokens_->Take("and"));
    return all.size() == 1 ? std::move(all[0]) : Predicate::And(std::move(all));
  }

  Result<Predicate> Term() {
    if (depth_ == kMaxDepth) {
      return Unreadable("it is nested more than " + std::to_string(kMaxDepth) +
                        " deep; write it flatter");
    }
    ++depth_;
    auto term = TermAtDepth();
    --depth_;
    return term;
  }

  Result<Predicate> TermAtDepth() {
    if (tokens_->Take("not")) {
      TAMIS_ASSIGN_OR_RETURN(Predicate child, Term());
      return Predicate::Not(std::move(child));
    }
    if (tokens_->Take("(")) {
      TAMIS_ASSIGN_OR_RETURN(Predicate inner, Alternatives());
      if (!tokens_->Take(")")) return Unreadable("the closing parenthesis is missing");
      return inner;
    }
    if (tokens_->Take("true")) return Predicate::True();
    if (tokens_->Take("false")) return Predicate::False();
    return OfColumn();
  }

  Result<Predicate> OfColumn() {
    if (tokens_->done() || tokens_->quote() == '\'') {
      return Unreadable("a column is missing before " + Next());
    }
    const std::string name = tokens_->TakeWord();
    const auto column = schema_.FindColumn(name);
    if (!column.has_value()) {
      return Unreadable("table \"" + schema_.name + "\" has no column \"" + name + "\"");
    }
    if (tokens_->Take("is")) {
      const bool negated = tokens_->Take("not");
      if (!tokens_->Take("null")) return Unreadable("NULL is missing behind IS");
      return negated ? Predicate::NotNull(*column) : Predicate::IsNull(*column);
    }
    const bool negated = tokens_->Take("not");
    auto found = Compared(*column);
    if (!found.ok() || !negated) return found;
    return Predicate::Not(*std::move(found));
  }

  Result<Predicate> Compared(uint32_t column) {
    if (tokens_->Take("in")) return In(column);
    if (tokens_->Take("between")) {
      TAMIS_ASSIGN_OR_RETURN(Predicate low, CompareNext(column, Op::kGe));
      if (!tokens_->Take("and")) return Unreadable("AND is missing behind BETWEEN");
      TAMIS_ASSIGN_OR_RETURN(Predicate high, CompareNext(column, Op::kLe));
      return Predicate::And({std::move(low), std::move(high)});
    }
    if (tokens_->Take("like")) return Prefix(column);
    TAMIS_ASSIGN_OR_RETURN(const Op op, TakeOp(column));
    return CompareNext(column, op);
  }

  Result<Op> TakeOp(uint32_t column) {
    if (tokens_->Take("<")) {
      if (tokens_->Take("=")) return Op::kLe;
      return tokens_->Take(">") ? Op::kNe : Op::kLt;
    }
    if (tokens_->Take(">")) return tokens_->Take("=") ? Op::kGe : Op::kGt;
    if (tokens_->Take("=")) {
      tokens_->Take("=");
      return Op::kEq;
    }
    if (tokens_->Take("!") && tokens_->Take("=")) return Op::kNe;
    return Unreadable("an operator is missing behind column \"" + schema_.columns[column].name +
                      "\", before " + Next() +
                      "; there are = <> < <= > >= BETWEEN IN LIKE IS NULL IS NOT NULL");
  }

  Result<Predicate> CompareNext(uint32_t column, Op op) {
    TAMIS_ASSIGN_OR_RETURN(const Value value, TakeValue(column));
    auto converted = CompareConverted(schema_, column, op, value);
    if (converted.has_value()) return *std::move(converted);
    const Column& of = schema_.columns[column];
    return Unreadable("column \"" + of.name + "\" of type " + std::string(TypeName(of.type)) +
                      " does not compare with " + value.ToString());
  }

  Result<Predicate> In(uint32_t column) {
    if (!tokens_->Take("(")) return Unreadable("values in parentheses are missing behind IN");
    std::vector<Value> values;
    std::optional<Predicate> never;  // equality with a number that the column cannot have
    if (tokens_->Take(")")) return Predicate::In(column, {});
    do {
      TAMIS_ASSIGN_OR_RETURN(Predicate next, CompareNext(column, Op::kEq));
      if (next.kind == Predicate::Kind::kCompare && next.op == Op::kEq) {
        values.push_back(std::move(next.values[0]));
      } else {
        never = std::move(next);
      }
    } while (tokens_->Take(","));
    if (!tokens_->Take(")")) return Unreadable("the closing parenthesis of IN is missing");
    // IN () is false of NULL, an IN with values is unknown of it.
    if (values.empty()) return *std::move(never);
    return Predicate::In(column, std::move(values));
  }

  Result<Predicate> Prefix(uint32_t column) {
    const Column& of = schema_.columns[column];
    if (of.type != Type::kText && of.type != Type::kBytes) {
      return Unreadable("LIKE is for text and bytes, and column \"" + of.name + "\" is neither");
    }
    TAMIS_ASSIGN_OR_RETURN(const Value pattern, TakeValue(column));
    if (pattern.is_null()) return Unreadable("LIKE needs a prefix, not NULL");
    std::string prefix = pattern.str();
    if (prefix.empty() || prefix.back() != '%' || prefix.find_first_of("%_") != prefix.size() - 1) {
      return Unreadable("LIKE '" + prefix + "' is no prefix; write LIKE 'PREFIX%'");
    }
    prefix.pop_back();
    Predicate found = Predicate::Prefix(column, std::move(prefix));
    if (of.type == Type::kBytes) found.values[0] = Value::Bytes(found.values[0].str());
    return found;
  }

  Result<Value> TakeValue(uint32_t column) {
    if (tokens_->quote() == '\'') return Value::Text(tokens_->TakeWord());
    if (tokens_->done() || tokens_->quoted())
      return Unreadable("a value is missing before " + Next());
    if (tokens_->Take("null")) return Value();
    std::string word = tokens_->TakeWord();
    if (word == "x" && tokens_->quote() == '\'') {
      const auto bytes = FromHex(tokens_->word());
      if (!bytes.has_value()) return Unreadable("x'" + tokens_->word() + "' is not hexadecimal");
      tokens_->TakeWord();
      return Value::Bytes(*bytes);
    }
    const Column& of = schema_.columns[column];
    if (of.type == Type::kText || of.type == Type::kBytes) {
      return Unreadable("column \"" + of.name + "\" of type " + std::string(TypeName(of.type)) +
                        " compares with " + (of.type == Type::kText ? "'text'" : "x'00ff'") +
                        ", not with " + word);
    }
    return Value::Text(std::move(word));  // it is read by the column's type
  }

  std::string Next() const { return tokens_->done() ? "the end" : "\"" + tokens_->word() + "\""; }

  const TableSchema& schema_;
  Tokens* const tokens_;
  int depth_ = 0;
};

}  // namespace

Result<Predicate> ParseCondition(const TableSchema& schema, Tokens* tokens) {
  return Parser(schema, tokens).Alternatives();
}

Result<Predicate> ParseCondition(const TableSchema& schema, std::string_view text) {
  Tokens tokens(text);
  TAMIS_ASSIGN_OR_RETURN(Predicate condition, ParseCondition(schema, &tokens));
  if (!tokens.done()) return Unreadable("\"" + tokens.word() + "\" is not understood");
  return condition;
}

}  // namespace tamis
