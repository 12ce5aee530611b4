#include "tamis/sql/aggregate_query.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "tamis/sql/grouped_rows.h"
#include "tamis/sql/literal_condition.h"
#include "tamis/sql/sql_name.h"
#include "tamis/table/condition.h"
#include "tamis/table/expression.h"
#include "tamis/table/literal.h"

namespace tamis {
namespace {

using Range = SelectStatement::Range;
using Function = SqlAggregate::Function;

constexpr char kGroupedRows[] = "tamis_grouped";
constexpr size_t kMostDigits = 18;

// Something that is shown, or that a clause names: a column of the groups or an aggregate.
struct Operand {
  bool is_aggregate = false;
  size_t place = 0;  // among the columns of the groups, or the aggregates
};

class AggregateRewriter {
 public:
  AggregateRewriter(const SelectStatement& statement, const TableSchema& schema)
      : statement_(statement), schema_(schema) {}

  Result<std::string> Run() {
    auto columns = statement_.ResultColumns();
    if (!columns.has_value()) {
      return InvalidArgument("it shows more than columns and aggregates of columns");
    }
    columns_ = *std::move(columns);
    TAMIS_RETURN_IF_ERROR(ReadGroups());
    TAMIS_RETURN_IF_ERROR(ReadShown());
    TAMIS_ASSIGN_OR_RETURN(const Predicate condition, LiteralCondition(statement_, schema_));
    TAMIS_ASSIGN_OR_RETURN(const std::string having, Having());
    TAMIS_ASSIGN_OR_RETURN(const std::string order, Order());
    TAMIS_ASSIGN_OR_RETURN(const std::string limit, Limit());
    TAMIS_RETURN_IF_ERROR(CheckOrderOfIndex());
    TAMIS_RETURN_IF_ERROR(CheckSumsOfAllGroups());
    if (aggregates_.size() > GroupedLimits::kAggregates) {
      return InvalidArgument("it has more than " + std::to_string(GroupedLimits::kAggregates) +
                             " aggregates");
    }
    TAMIS_ASSIGN_OR_RETURN(const std::string rows, Rows(condition));
    return "SELECT " + ShownText() + " FROM " + rows + having + order + limit;
  }

 private:
  const SqlToken& At(size_t i) const { return statement_.At(i); }
  std::string Text(Range range) const { return std::string(statement_.Text(range)); }

  // Calls `read` with the parts of the clause between commas that are in no parentheses.
  template <class Read>
  Status ForEachTerm(Range clause, Read&& read) const {
    if (clause.empty()) return Status::Ok();
    int depth = 0;
    size_t begin = clause.begin;
    for (size_t i = clause.begin; i < clause.end; ++i) {
      depth += At(i).Is("(") ? 1 : At(i).Is(")") ? -1 : 0;
      if (depth != 0 || !At(i).Is(",")) continue;
      TAMIS_RETURN_IF_ERROR(read(Range{begin, i}));
      begin = i + 1;
    }
    return read(Range{begin, clause.end});
  }

  // The column that is shown at the place that a number in GROUP BY or ORDER BY names, from 0.
  std::optional<size_t> PlaceOf(Range term) const {
    if (term.end != term.begin + 1 || At(term.begin).kind != SqlToken::Kind::kNumber)
      return std::nullopt;
    const std::string& digits = At(term.begin).word;
    if (digits.size() > 3 || digits.find('.') != std::string::npos) return std::nullopt;
    const size_t place = std::stoul(digits);
    return place >= 1 && place <= columns_.size() ? std::optional(place - 1) : std::nullopt;
  }
  // The column that is shown by this alias.
  std::optional<size_t> PlaceOfAlias(Range term) const {
    if (term.end != term.begin + 1 || !IsSqlName(At(term.begin))) return std::nullopt;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const auto& alias = columns_[i].alias;
      if (alias && AsciiLower(*alias) == AsciiLower(At(term.begin).word)) return i;
    }
    return std::nullopt;
  }

  Status ReadGroups() {
    return ForEachTerm(statement_.group_by, [&](Range term) -> Status {
      auto column = statement_.ColumnAt(term, schema_);
      if (!column.has_value()) {  // SQLite, too, looks for a column first
        const auto place = PlaceOf(term).has_value() ? PlaceOf(term) : PlaceOfAlias(term);
        if (place) column = statement_.ColumnAt(columns_[*place].expression, schema_);
      }
      if (!column.has_value()) {
        return InvalidArgument("GROUP BY " + Text(term) + " names no column of the table");
      }
      if (schema_.IsKey(*column)) return KeyColumn(*column);
      if (std::ranges::find(groups_, *column) == groups_.end()) groups_.push_back(*column);
      if (groups_.size() <= GroupedLimits::kGroupColumns) return Status::Ok();
      return InvalidArgument("it groups by more than " +
                             std::to_string(GroupedLimits::kGroupColumns) + " columns");
    });
  }
  Status KeyColumn(uint32_t column) const {
    return InvalidArgument("servers send column \"" + schema_.columns[column].name +
                           "\" of the key with the rows alone");
  }

  Status ReadShown() {
    for (const auto& column : columns_) {
      TAMIS_ASSIGN_OR_RETURN(const Operand operand, OperandAt(column.expression));
      shown_.push_back(operand);
    }
    return Status::Ok();
  }

  Result<Operand> OperandAt(Range range) {
    if (const auto column = statement_.ColumnAt(range, schema_)) {
      const auto at = std::ranges::find(groups_, *column);
      if (at != groups_.end()) return Operand{false, static_cast<size_t>(at - groups_.begin())};
      return InvalidArgument("column \"" + schema_.columns[*column].name +
                             "\" stands outside of aggregates and is none of GROUP BY");
    }
    TAMIS_ASSIGN_OR_RETURN(const SqlAggregate aggregate, AggregateAt(range));
    const auto at = std::ranges::find(aggregates_, aggregate);
    const auto place = static_cast<size_t>(at - aggregates_.begin());
    if (at == aggregates_.end()) aggregates_.push_back(aggregate);
    return Operand{true, place};
  }

  Result<SqlAggregate> AggregateAt(Range range) const {
    const auto unknown = [&] {
      return InvalidArgument(Text(range) + " is no count, sum, total, avg, min or max of a column");
    };
    const bool is_call = range.end >= range.begin + 4 &&
                         At(range.begin).kind == SqlToken::Kind::kWord &&
                         At(range.begin + 1).Is("(") && At(range.end - 1).Is(")");
    if (!is_call) return unknown();
    const auto function = SqlAggregate::FunctionOf(At(range.begin).word);
    if (!function.has_value()) return unknown();
    const Range argument = {range.begin + 2, range.end - 1};
    if (argument.end == argument.begin + 1 && At(argument.begin).Is("*")) {
      if (*function != Function::kCount) return unknown();
      return SqlAggregate{Function::kCountRows, 0};
    }
    const auto column = statement_.ColumnAt(argument, schema_);
    if (!column.has_value()) return unknown();
    const Column& of = schema_.columns[*column];
    if (schema_.IsKey(*column)) {
      // A row has its key.
      if (*function == Function::kCount && !of.nullable) {
        return SqlAggregate{Function::kCountRows, 0};
      }
      return KeyColumn(*column);
    }
    if (const char* why = SqlAggregate::WhyNot(*function, of.type)) {
      return InvalidArgument(Text(range) + ": " + why);
    }
    return SqlAggregate{*function, *column};
  }

  // A comparison of an aggregate, or its alias, with an integer, joined by AND.
  Result<std::string> Having() {
    if (statement_.having.empty()) return std::string();
    const auto unknown = [&] {
      return InvalidArgument(
          "its HAVING clause has more than comparisons of aggregates with integers");
    };
    if (statement_.group_by.empty()) return unknown();
    std::string out;
    const size_t end = statement_.having.end;
    for (size_t i = statement_.having.begin; i < end; ++i) {
      size_t op = i;
      while (op < end && !At(op).IsOneOf({"=", "<", ">", "!"})) ++op;
      size_t behind = op;
      while (behind < end && At(behind).IsOneOf({"=", "<", ">", "!"})) ++behind;
      const std::string operation = Text({op, behind});
      static constexpr std::string_view kOperations[] = {
          "=", "==", "<>", "!=", "<", "<=", ">", ">="};
      if (std::ranges::find(kOperations, operation) == std::end(kOperations)) return unknown();
      const bool negative = At(behind).Is("-");
      if (negative) ++behind;
      const SqlToken& number = At(behind);
      if (behind >= end || number.kind != SqlToken::Kind::kNumber || !IsInteger(number.word)) {
        return unknown();
      }
      const Range left = {i, op};
      const bool is_column = statement_.ColumnAt(left, schema_).has_value();
      const auto alias = is_column ? std::nullopt : PlaceOfAlias(left);
      TAMIS_ASSIGN_OR_RETURN(const Operand operand,
                             alias ? Result<Operand>(shown_[*alias]) : OperandAt(left));
      if (!operand.is_aggregate) return unknown();
      out += (out.empty() ? " WHERE " : " AND ") + NameOf(operand) + " " + operation + " " +
             (negative ? "-" : "") + number.word;
      i = behind + 1;
      if (i < end && !At(i).Is("and")) return unknown();
      if (i + 1 == end) return unknown();
    }
    return out;
  }
  static bool IsInteger(const std::string& digits) {
    return digits.size() <= kMostDigits && digits.find('.') == std::string::npos;
  }

  Result<std::string> Order() {
    std::string out;
    TAMIS_RETURN_IF_ERROR(ForEachTerm(statement_.order_by, [&](Range term) -> Status {
      Range what = term;
      while (what.end > what.begin &&
             At(what.end - 1).IsOneOf({"asc", "desc", "nulls", "first", "last"})) {
        --what.end;
      }
      // SQLite looks for a place and an alias first.
      const auto place = PlaceOf(what).has_value() ? PlaceOf(what) : PlaceOfAlias(what);
      TAMIS_ASSIGN_OR_RETURN(const Operand operand,
                             place ? Result<Operand>(shown_[*place]) : OperandAt(what));
      ordered_by_aggregate_ |= operand.is_aggregate;
      out += (out.empty() ? " ORDER BY " : ", ") + NameOf(operand);
      if (what.end < term.end) out += " " + Text({what.end, term.end});
      return Status::Ok();
    }));
    return out;
  }

  Result<std::string> Limit() const {
    for (size_t i = statement_.limit.begin; i < statement_.limit.end; ++i) {
      const bool is_number = At(i).kind == SqlToken::Kind::kNumber && IsInteger(At(i).word);
      if (!is_number && !At(i).IsOneOf({",", "-", "offset"})) {
        return InvalidArgument("its LIMIT is no integer");
      }
    }
    return statement_.limit.empty() ? std::string() : " LIMIT " + Text(statement_.limit);
  }

  // SQLite takes a minimum or maximum alone from the first row in the order of an index.
  Status CheckOrderOfIndex() const {
    if (!groups_.empty() || aggregates_.size() != 1) return Status::Ok();
    const SqlAggregate& one = aggregates_[0];
    if (one.function != Function::kMin && one.function != Function::kMax) return Status::Ok();
    const bool indexed = std::ranges::any_of(schema_.indexes, [&](const IndexSpec& index) {
      return std::ranges::find(index.columns, one.column) != index.columns.end();
    });
    if (!indexed) return Status::Ok();
    return InvalidArgument("an index may give the rows in the order of a minimum or maximum alone");
  }

  // Unless SQLite must know all groups to put them into an order, it ends with the last one that
  // LIMIT asks for, and does not come to a later sum that does not fit.
  Status CheckSumsOfAllGroups() const {
    const bool has_sum = std::ranges::any_of(aggregates_, [](const SqlAggregate& aggregate) {
      return aggregate.function == Function::kSum;
    });
    if (groups_.empty() || statement_.limit.empty() || ordered_by_aggregate_ || !has_sum) {
      return Status::Ok();
    }
    return InvalidArgument("with its LIMIT it may end before a sum that does not fit in 64 bits");
  }

  std::string NameOf(const Operand& operand) const {
    return std::string(kGroupedRows) + "." +
           (operand.is_aggregate
                ? AggregateColumnName(operand.place)
                : GroupColumnName(operand.place, schema_.columns[groups_[operand.place]].type));
  }

  std::string ShownText() const {
    std::string out;
    for (size_t i = 0; i < shown_.size(); ++i) {
      // SQLite names a column that is shown as the table does, and an expression by its text.
      const std::string name = columns_[i].alias.value_or(
          shown_[i].is_aggregate ? columns_[i].span
                                 : schema_.columns[groups_[shown_[i].place]].name);
      out += (i == 0 ? "" : ", ") + NameOf(shown_[i]) + " AS " + QuotedName(name);
    }
    return out;
  }

  // The call of tamis_grouped. kInvalidArgument: the condition cannot be handed over.
  Result<std::string> Rows(const Predicate& condition) const {
    std::string by, aggregates, statement;
    for (const uint32_t column : groups_) {
      by += (by.empty() ? "" : ", ") + schema_.columns[column].name;
      statement += (statement.empty() ? "" : ", ") + QuotedName(schema_.columns[column].name);
    }
    const std::string columns = statement;
    for (const SqlAggregate& aggregate : aggregates_) {
      const std::string text = aggregate.ToString(schema_);
      aggregates += (aggregates.empty() ? "" : ", ") + text;
      const size_t open = text.find('(');
      const bool has_column = aggregate.function != Function::kCountRows;
      statement += (statement.empty() ? "" : ", ") +
                   (has_column ? text.substr(0, open + 1) +
                                     QuotedName(schema_.columns[aggregate.column].name) + ")"
                               : text);
    }
    statement = "SELECT " + statement + " FROM " + Text(statement_.from);
    if (!statement_.where.empty()) statement += " WHERE " + Text(statement_.where);
    if (!groups_.empty()) statement += " GROUP BY " + columns;
    std::string where;
    if (!statement_.where.empty()) {
      where = condition.ToString(schema_);
      const auto back = ParseCondition(schema_, where);
      if (!back.ok() || back->Normalized() != condition.Normalized()) {
        return InvalidArgument("its condition has a column whose name is a keyword");
      }
    }
    std::string call = std::string(kGroupedRows) + "(";
    for (const std::string& argument : {schema_.name, by, aggregates, where, statement}) {
      if (!call.ends_with('(')) call += ", ";
      call += Literal(Value::Text(argument));
    }
    return call + ")";
  }

  const SelectStatement& statement_;
  const TableSchema& schema_;
  std::vector<SelectStatement::ResultColumn> columns_;
  std::vector<Operand> shown_;  // one for each of columns_
  std::vector<uint32_t> groups_;
  std::vector<SqlAggregate> aggregates_;
  bool ordered_by_aggregate_ = false;
};

}  // namespace

bool CallsAggregate(const std::vector<SqlToken>& tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].kind == SqlToken::Kind::kWord && tokens[i + 1].Is("(") &&
        SqlAggregate::FunctionOf(tokens[i].word).has_value()) {
      return true;
    }
  }
  return false;
}

Result<std::string> RewriteAggregates(const SelectStatement& statement, Engine* engine) {
  if (!statement.is_plain) {
    return InvalidArgument("it joins tables, or has a clause that is not known here");
  }
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, engine->Table(statement.tables[0].table));
  return AggregateRewriter(statement, *schema).Run();
}

}  // namespace tamis
