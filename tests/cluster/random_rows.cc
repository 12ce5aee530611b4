#include "tests/cluster/random_rows.h"

#include <algorithm>

#include "tamis/rocks/index_entry.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

const Expression kFirstThree{
    .function = Expression::Function::kSubstr, .source = RandomRows::kName, .length = 3};

RandomWrite InsertOf(const Row& row, const RowState& sure) {
  const bool there = sure.has_value();
  return {.write = {.kind = Write::Kind::kInsert, .row = row},
          .after = there ? sure : row,
          .answer = there ? StatusCode::kAlreadyExists : StatusCode::kOk,
          .kind = "inserts"};
}

}  // namespace

TableSchema RandomRows::Schema(double fpr) {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "grp", .type = Type::kText},
                    {.name = "number", .type = Type::kInt64},
                    {.name = "name", .type = Type::kText},
                    {.name = "start", .type = Type::kText, .expression = kFirstThree}};
  schema.key = {kId};
  // Small filters, so that layers are added, and values hit each other.
  schema.indexes = {{.name = "grp",
                     .columns = {kGroup},
                     .fpr = fpr,
                     .expected_values = 8,
                     .include = {kNumber, kName, kStart}},
                    {.name = "number", .columns = {kNumber}, .fpr = fpr, .expected_values = 16},
                    {.name = "start",
                     .columns = {kStart},
                     .nulls = IndexNulls::kSkip,
                     .fpr = fpr,
                     .expected_values = 12},
                    IndexOnName(fpr),
                    {.name = "some_names",
                     .columns = {kName},
                     .fpr = fpr,
                     .expected_values = 12,
                     .include = {kGroup},
                     .where = Predicate::Compare(kNumber, Predicate::Op::kGe, Value::Int64(20))}};
  return schema;
}

IndexSpec RandomRows::IndexOnBoth(double fpr) {
  return {.name = "both",
          .columns = {kGroup, kNumber},
          .fpr = fpr,
          .expected_values = 16,
          .include = {kName}};
}

IndexSpec RandomRows::IndexOnName(double fpr) {
  return {.name = "name", .columns = {kName}, .fpr = fpr, .expected_values = 12};
}

IndexSpec RandomRows::WithCells(IndexSpec index) {
  std::vector<std::string> sample;
  for (int i = 0; i < 120; ++i) {
    const std::string digits = std::to_string(i);
    const Value value = index.columns[0] == kGroup  ? Value::Text("g" + digits)
                        : index.columns[0] == kName ? Value::Text("n" + digits)
                                                    : Value::Int64(i - 20);
    AppendIndexed(value, &sample.emplace_back());
  }
  std::ranges::sort(sample);
  index.cell_map =
      std::make_shared<const CellMap>(CellMap::Fit(sample, {.cells = 90, .knots = 20}));
  return index;
}

Column RandomRows::AddedColumn(size_t position) {
  return {.name = "added" + std::to_string(position), .type = Type::kInt64};
}

Row RandomRows::KeyRow(int64_t key) {
  Row row(kMostColumns);
  row[kId] = Value::Int64(key);
  return row;
}

void RandomRows::Compute(Row* row) { (*row)[kStart] = kFirstThree.Evaluate((*row)[kName]); }

Value RandomRows::RandomGroup() {
  if (random_.OneIn(12)) return Value();
  return Value::Text("g" + std::to_string(random_.Uniform(25)));
}

Value RandomRows::RandomName() {
  if (random_.OneIn(20)) return Value();
  std::string name = "n" + std::to_string(random_.Uniform(400));
  // Some are longer than what an entry holds, and differ only after that.
  if (random_.OneIn(15)) name = std::string(kIndexValueLimit, 'x') + name;
  return Value::Text(std::move(name));
}

Value RandomRows::RandomNumber() {
  if (random_.OneIn(20)) return Value();
  return Value::Int64(static_cast<int64_t>(random_.Uniform(120)) - 20);
}

Row RandomRows::RandomRow(int64_t key) {
  Row row = KeyRow(key);
  row[kGroup] = RandomGroup();
  row[kNumber] = RandomNumber();
  row[kName] = RandomName();
  if (!row[kGroup].is_null() && random_.OneIn(3)) {
    // The number follows from the group, as a city's country does.
    row[kNumber] = Value::Int64(static_cast<int64_t>(row[kGroup].str().back() - '0') * 10 - 5);
  }
  for (uint32_t column = kColumns; column < columns_; ++column) row[column] = RandomNumber();
  Compute(&row);
  return row;
}

RandomWrite RandomRows::RandomInsertOf(int64_t key, const RowState& sure) {
  return InsertOf(RandomRow(key), sure);
}

RandomWrite RandomRows::RandomWriteOf(int64_t key, const RowState& sure) {
  Row row = RandomRow(key);
  const uint64_t dice = random_.Uniform(100);
  if (dice < 55) {
    // Sometimes the row that is there already: it must be findable once acknowledged, too.
    if (sure.has_value() && random_.OneIn(6)) row = *sure;
    for (uint32_t column = columns_; column < kMostColumns; ++column) row[column] = Value();
    return {.write = {.row = row}, .after = row, .kind = "puts"};
  }
  if (dice < 75) {
    return {.write = {.kind = Write::Kind::kDelete, .row = row}, .kind = "deletes"};
  }
  if (dice < 88) {
    RandomWrite drawn{.write = {.kind = Write::Kind::kUpdate, .row = row, .columns = {kNumber}},
                      .after = sure,
                      .answer = sure.has_value() ? StatusCode::kOk : StatusCode::kNotFound,
                      .kind = "updates"};
    if (sure.has_value()) (*drawn.after)[kNumber] = row[kNumber];
    return drawn;
  }
  if (dice < 94) return InsertOf(row, sure);
  const Predicate condition = Predicate::Compare(kNumber, Predicate::Op::kLt, Value::Int64(40));
  const bool holds = sure.has_value() && condition.Matches(*sure);
  return {.write = {.row = row, .condition = condition},
          .after = holds ? row : sure,
          .answer = holds ? StatusCode::kOk : StatusCode::kFailedPrecondition,
          .kind = "conditional puts"};
}

Predicate RandomRows::RandomLeaf(const std::optional<Row>& near) {
  const auto pick = [&](uint32_t column, Value random) {
    return near.has_value() && random_.OneIn(2) ? (*near)[column] : std::move(random);
  };
  const auto equal = [&](uint32_t column, Value value) {
    return value.is_null() ? Predicate::IsNull(column)
                           : Predicate::Compare(column, Predicate::Op::kEq, std::move(value));
  };
  switch (random_.Uniform(13)) {
    case 11:
    case 12: {
      Row row = KeyRow(0);
      row[kName] = pick(kName, RandomName());
      Compute(&row);
      return equal(kStart, row[kStart]);
    }
    case 0:
    case 1:
      return equal(kGroup, pick(kGroup, RandomGroup()));
    case 2:
    case 3:
      return equal(kName, pick(kName, RandomName()));
    case 4:
      return equal(kNumber, pick(kNumber, RandomNumber()));
    case 5: {
      const int64_t low = static_cast<int64_t>(random_.Uniform(120)) - 20;
      return Predicate::Between(kNumber, Value::Int64(low),
                                Value::Int64(low + static_cast<int64_t>(random_.Uniform(12))));
    }
    case 6: {
      std::vector<Value> values;
      const uint64_t n = 1 + random_.Uniform(12);  // more than are merged, sometimes
      for (uint64_t i = 0; i < n; ++i) {
        Value value = RandomGroup();
        if (!value.is_null()) values.push_back(std::move(value));
      }
      return Predicate::In(kGroup, std::move(values));
    }
    case 7:
      return Predicate::Prefix(kName, "n" + std::to_string(random_.Uniform(40)));
    case 8:
    case 9: {
      // For long names, too, which are equal as far as an entry holds them.
      constexpr Predicate::Op kOps[] = {Predicate::Op::kLt, Predicate::Op::kLe, Predicate::Op::kGt,
                                        Predicate::Op::kGe};
      Value name = pick(kName, RandomName());
      if (name.is_null()) return Predicate::IsNull(kName);
      return Predicate::Compare(kName, kOps[random_.Uniform(4)], std::move(name));
    }
    default: {
      const int64_t low = RandomKey();
      if (random_.OneIn(2)) {  // several key ranges
        return Predicate::In(kId, {Value::Int64(low), pick(kId, Value::Int64(RandomKey())),
                                   Value::Int64(RandomKey())});
      }
      return Predicate::Between(kId, Value::Int64(low), Value::Int64(low + 20));
    }
  }
}

Predicate RandomRows::RandomPredicate(const std::optional<Row>& near) {
  switch (random_.Uniform(8)) {
    case 0:
      return Predicate::And({RandomLeaf(near), RandomLeaf(near)});
    case 1:
      return Predicate::Or({RandomLeaf(near), RandomLeaf(near)});
    case 2:
      return Predicate::And(
          {RandomLeaf(near), Predicate::Or({RandomLeaf(near), RandomLeaf(near)})});
    case 3:
      if (random_.OneIn(4)) return Predicate::Not(RandomLeaf(near));
      return RandomLeaf(near);
    case 4:
      return Predicate::And({RandomLeaf(near), RandomLeaf(near), RandomLeaf(near)});
    default:
      return RandomLeaf(near);
  }
}

Predicate RandomRows::EqualTo(const Row& row, uint32_t column) {
  if (row[column].is_null()) return Predicate::IsNull(column);
  return Predicate::Compare(column, Predicate::Op::kEq, row[column]);
}

Predicate RandomRows::ProbeOf(const Row& row) {
  const uint32_t columns[] = {kGroup, kNumber, kName, kStart};
  if (random_.OneIn(4)) return Predicate::And({EqualTo(row, kName), EqualTo(row, kNumber)});
  return EqualTo(row, columns[random_.Uniform(4)]);
}

}  // namespace tamis
