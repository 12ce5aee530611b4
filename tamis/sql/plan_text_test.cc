// The text that xBestIndex hands to xFilter through SQLite.
#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/sql/plan.h"

namespace tamis {
namespace {

TableSchema Schema() {
  TableSchema schema;
  schema.name = "t";
  for (int i = 0; i < 12; ++i) {
    schema.columns.push_back({.name = "c" + std::to_string(i), .type = Type::kInt64});
  }
  schema.columns[3].name = "odd #t1.2.3o";  // like a text that Parse reads
  schema.key = {0};
  return schema;
}

TEST(SqlPlanText, IsReadBackAsItWasWritten) {
  const TableSchema schema = Schema();
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    SqlPlan plan;
    for (uint64_t n = random.Uniform(6); n > 0; --n) {
      plan.terms.push_back(
          {.kind = static_cast<SqlPlan::Term::Kind>(
               random.Uniform(static_cast<uint64_t>(SqlPlan::Term::Kind::kOffset) + 1)),
           .op = static_cast<Predicate::Op>(1 + random.Uniform(6)),
           .column = static_cast<uint32_t>(random.Uniform(schema.columns.size()))});
    }
    plan.key_order = random.OneIn(2);
    for (uint64_t n = random.Uniform(3); n > 0; --n) {
      plan.order.push_back(
          {.column = static_cast<uint32_t>(random.Uniform(12)), .descending = random.OneIn(2)});
    }
    plan.sort = static_cast<SqlPlan::Sort>(random.Uniform(4));
    if (random.OneIn(2)) {
      plan.columns.emplace();
      for (uint64_t n = random.Uniform(5); n > 0; --n) {
        plan.columns->push_back(static_cast<uint32_t>(random.Uniform(12)));
      }
    }
    const std::string text = plan.ToString(schema);
    const SqlPlan read = SqlPlan::Parse(text);
    ASSERT_EQ(read.ToString(schema), text);
    ASSERT_EQ(read.terms.size(), plan.terms.size()) << text;
    ASSERT_EQ(read.columns, plan.columns) << text;
    ASSERT_EQ(read.key_order, plan.key_order) << text;
    ASSERT_EQ(read.order, plan.order) << text;
    ASSERT_EQ(read.sort, plan.sort) << text;
    for (size_t t = 0; t < plan.terms.size(); ++t) {
      ASSERT_EQ(read.terms[t].kind, plan.terms[t].kind) << text;
      ASSERT_EQ(read.terms[t].op, plan.terms[t].op) << text;
      ASSERT_EQ(read.terms[t].column, plan.terms[t].column) << text;
    }
  }
}

}  // namespace
}  // namespace tamis
