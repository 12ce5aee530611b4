#include "tamis/sql/lower_query.h"

#include <algorithm>

#include "tamis/table/expression.h"

namespace tamis {
namespace {

class LowerRewriter {
 public:
  LowerRewriter(const SelectStatement& statement, Engine* engine)
      : statement_(statement), engine_(engine) {
    has_between_ = std::ranges::any_of(statement.tokens,
                                       [](const SqlToken& token) { return token.Is("between"); });
  }

  std::optional<std::string> Run() {
    const std::string_view sql = statement_.sql;
    std::string out;
    size_t copied = 0;
    for (size_t i = statement_.conditions.begin; i < statement_.conditions.end; ++i) {
      const auto column = ComparedColumn(i);
      if (!column.has_value()) continue;
      // From "lower" to the parenthesis.
      out += sql.substr(copied, At(i).begin - copied);
      out += *column;
      copied = At(CloseOf(i)).end;
    }
    if (copied == 0) return std::nullopt;
    return out.append(sql.substr(copied));
  }

 private:
  const SqlToken& At(size_t i) const { return statement_.At(i); }

  // The position of the parenthesis after lower(c) or lower(t.c).
  size_t CloseOf(size_t i) const { return At(i + 3).Is(".") ? i + 5 : i + 3; }

  // If a comparison of lower() with literals begins here: the computed column, as SQL.
  std::optional<std::string> ComparedColumn(size_t i) const {
    const size_t close = CloseOf(i);
    const bool is_qualified = close == i + 5;
    if (!At(i).Is("lower") || !At(i + 1).Is("(") || !At(i + 2).IsName() ||
        !At(close - 1).IsName() || !At(close).Is(")") || !IsWholeComparison(i, close)) {
      return std::nullopt;
    }
    const auto& tables = statement_.tables;
    const auto table = std::ranges::find_if(tables, [&](const SelectStatement::Table& one) {
      return is_qualified ? one.name == AsciiLower(At(i + 2).word) : tables.size() == 1;
    });
    if (table == tables.end()) return std::nullopt;
    const auto computed = ComputedColumn(table->table, AsciiLower(At(close - 1).word));
    if (!computed.has_value()) return std::nullopt;
    const auto qualifier = statement_.sql.substr(At(i + 2).begin, At(i + 2).end - At(i + 2).begin);
    return (is_qualified ? std::string(qualifier) + "." : "") + Quoted(*computed);
  }

  // Whether the operator and its literals follow, and neither they nor lower() belong to a larger
  // operand.
  bool IsWholeComparison(size_t i, size_t close) const {
    const SqlToken& before = At(i - 1);
    if (!before.IsOneOf({"where", "on", "and", "or", "not", "("})) return false;
    if (before.Is("and") && has_between_) return false;
    size_t next = close + 1;
    if (At(next).Is("in")) {
      if (!At(++next).Is("(")) return false;
      do {
        if (At(next + 1).kind != SqlToken::Kind::kText) return false;
        next += 2;
      } while (At(next).Is(","));
      if (!At(next).Is(")")) return false;
    } else {
      if (!At(next).IsOneOf({"=", "<", ">", "like", "glob"})) return false;
      if (!At(next).IsOneOf({"like", "glob"}) && At(next + 1).Is("=")) ++next;
      if (At(++next).kind != SqlToken::Kind::kText) return false;
    }
    const SqlToken& behind = At(next + 1);
    return behind.kind == SqlToken::Kind::kEnd || behind.IsOneOf({"and", "or", ")"}) ||
           SelectStatement::EndsWhere(behind) || SelectStatement::IsBetweenTables(behind) ||
           behind.Is("where");
  }

  // The column that is lower() of this one.
  std::optional<std::string> ComputedColumn(const std::string& table,
                                            const std::string& source) const {
    const auto schema = engine_->Table(table);
    if (!schema.ok()) return std::nullopt;
    for (const Column& column : (*schema)->columns) {
      if (!column.is_computed() || column.is_dropped() ||
          column.expression->function != Expression::Function::kLower) {
        continue;
      }
      if (AsciiLower((*schema)->columns[column.expression->source].name) == source) {
        return column.name;
      }
    }
    return std::nullopt;
  }

  // SQLite takes a name in double quotes for a text where there is no such column.
  static std::string Quoted(const std::string& name) {
    std::string out = "`";
    for (const char c : name) out += c == '`' ? "``" : std::string(1, c);
    return out + "`";
  }

  const SelectStatement& statement_;
  Engine* const engine_;
  bool has_between_ = false;
};

}  // namespace

std::optional<std::string> RewriteLower(const SelectStatement& statement, Engine* engine) {
  return LowerRewriter(statement, engine).Run();
}

}  // namespace tamis
