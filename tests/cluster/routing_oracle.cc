#include "tests/cluster/routing_oracle.h"

#include "tamis/query/plan.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

using Op = Predicate::Op;

Predicate Equal(const Row& row, uint32_t column) {
  if (row[column].is_null()) return Predicate::IsNull(column);
  return Predicate::Compare(column, Op::kEq, row[column]);
}

}  // namespace

std::vector<Predicate> ConditionsMetBy(const TableSchema& schema, const Row& row) {
  std::vector<Predicate> conditions, equal;
  for (const IndexSpec& index : schema.indexes) {
    std::vector<Predicate> leading;
    for (const uint32_t column : index.columns) {
      leading.push_back(Equal(row, column));
      conditions.push_back(Predicate::And(leading));
    }
    if (index.where.Matches(row)) {
      leading.push_back(index.where);
      conditions.push_back(Predicate::And(std::move(leading)));
    }
    const uint32_t first = index.columns.front();
    equal.push_back(Equal(row, first));
    if (row[first].is_null()) continue;
    conditions.push_back(Predicate::Compare(first, Op::kLe, row[first]));
    conditions.push_back(Predicate::Compare(first, Op::kGe, row[first]));
    conditions.push_back(Predicate::And({Predicate::Compare(first, Op::kGe, row[first]),
                                         Predicate::Compare(first, Op::kLe, row[first])}));
  }
  if (!equal.empty()) conditions.push_back(Predicate::And(std::move(equal)));
  return conditions;
}

std::optional<std::string> LeftOut(const std::vector<Engine*>& engines, const TableSchema& schema,
                                   const Row& row) {
  const std::string key = EncodeKey(schema, row);
  for (const Predicate& condition : ConditionsMetBy(schema, row)) {
    const RoutingTerm asked = MakePlan(schema, condition, {.use_indexes = false}).routing;
    for (size_t i = 0; i < engines.size(); ++i) {
      if (engines[i]->LeavesOut(schema.id, asked, key)) {
        return "coordinator " + std::to_string(i) + ", by " + condition.ToString(schema);
      }
    }
  }
  return std::nullopt;
}

}  // namespace tamis
