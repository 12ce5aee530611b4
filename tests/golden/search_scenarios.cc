// searches.txt: tables, and what each search of them finds and reads, page by page.
#include <algorithm>
#include <sstream>

#include "tamis/query/plan.h"
#include "tamis/rocks/search_position.h"
#include "tamis/table/codec.h"
#include "tamis/table/definition.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/testing/random_values.h"
#include "tests/cluster/orders.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/scenario_table.h"
#include "tests/golden/scenarios.h"

namespace tamis {
namespace {

using enum Orders::Column;

std::string Text(const SearchPosition& position) {
  return std::to_string(position.branch) + " " + Text(position.order) + " " +
         std::to_string(position.index_id) + " " + Hex(position.last);
}

// All columns but the key may be NULL, which is so in every table of cells.
TableSchema SchemaOfCells(const Orders& orders) {
  TableSchema schema = orders.Schema();
  for (Column& column : schema.columns) column.nullable = column.name != "id";
  return schema;
}

class SearchScenarios {
 public:
  SearchScenarios(std::ostream& out, const TableSchema& schema, const std::vector<Row>& rows)
      : out_(out), table_(schema) {
    out_ << "# " << table_.schema().name << "\nT " << Hex(table_.SchemaOfCells()) << "\n";
    constexpr size_t kBatch = 500;
    std::vector<pb::Mutation> puts;
    for (const Row& row : rows) {
      out_ << "R " << Texts(row) << "\n";
      puts.push_back(PutOf(table_.schema(), row));
      if (puts.size() < kBatch && &row != &rows.back()) continue;
      table_.Mutate(puts);
      puts.clear();
    }
  }

  const TableSchema& schema() const { return table_.schema(); }
  // The key of the row with this id.
  std::string KeyOf(int64_t id) const {
    Row row(schema().columns.size());
    row[kId] = Value::Int64(id);
    return EncodeKey(schema(), row);
  }

  void Search(const Predicate& predicate, uint64_t limit, std::vector<uint32_t> columns = {},
              const KeyRange& keys = {}, const std::vector<OrderTerm>& order = {},
              bool groups = false, const std::vector<uint32_t>& totals = {}) {
    const Plan plan =
        MakePlan(schema(), predicate, {.columns = columns, .groups = groups, .order = order});
    const std::vector<pb::Branch>& branches = plan.branches;
    if (branches.empty()) return;  // a region server is not asked
    if (plan.order.has_value() == order.empty()) return;
    const std::string text = predicate.ToString(schema());
    if (std::ranges::all_of(text, [](unsigned char c) { return c >= ' ' && c < 0x7f; })) {
      out_ << "# " << text << "\n";
    }
    out_ << "S " << limit << " " << Hex(keys.start) << " " << Hex(keys.end);
    pb::SearchRequest request;
    for (const pb::Branch& branch : branches) *request.add_branches() = branch;
    for (const uint32_t column : columns) request.add_columns(schema().columns[column].id);
    if (plan.order.has_value()) {
      const IndexSpec* index = plan.order->index;
      request.mutable_order()->set_index_id(index == nullptr ? 0 : index->id);
      request.mutable_order()->set_descending(plan.order->descending);
    }
    request.set_groups(groups);
    for (const uint32_t column : totals) request.add_totals(schema().columns[column].id);
    out_ << " " << Hex(request.SerializeAsString()) << "\n";
    std::string resume;  // not a part of the request that is written
    for (bool first = true; first || !resume.empty(); first = false) {
      const pb::RangeResult page = table_.Search(request, limit, keys, resume);
      if (page.in_order() != request.has_order() || page.groups() != groups ||
          page.totals() == totals.empty()) {
        std::abort();
      }
      Write(page, !columns.empty());
      resume = page.resume();
    }
  }

 private:
  void Write(const pb::RangeResult& page, bool with_rows) {
    out_ << "F";
    for (const pb::FoundRow& row : page.rows()) {
      if (page.groups()) {
        out_ << " " << row.count() << "*" << Hex(row.row());
        for (const pb::Totals& totals : row.totals()) {
          out_ << "/" << Hex(totals.SerializeAsString());
        }
        continue;
      }
      Row key(schema().columns.size());
      if (!DecodeKey(schema(), row.key(), &key).ok()) std::abort();
      out_ << " " << Text(key[schema().key[0]]) << (with_rows ? "=" + Hex(row.row()) : "");
    }
    out_ << "\n";
    const pb::SearchCounters& counters = page.counters();
    out_ << "P " << static_cast<int>(page.error().code()) << " " << counters.entries_read() << " "
         << counters.rows_read() << " " << counters.rows_from_entries() << " "
         << counters.rows_returned() << " " << counters.scanned_regions();
    for (const pb::IndexUse& use : counters.uses()) {
      out_ << " " << use.index_id() << ":" << use.led() << ":" << use.joined() << ":"
           << use.entries_expected() << ":" << use.entries_read();
    }
    out_ << "\n";
    if (const auto position = SearchPosition::Parse(page.resume())) {
      out_ << "N " << Text(*position) << "\n";
    }
  }

  std::ostream& out_;
  ScenarioTable table_;
};

// The choice between indexes, scans and joins. No index has more entries than may be
// read ahead, so that no choice depends on what a store estimates.
void SkewedOrders(std::ostream& out) {
  const Orders orders{.count = 250,
                      .countries = 6,
                      .cities = 5,
                      .days = 500,
                      .longest_delay = 20,
                      .amounts = 250,
                      .expected_values = 500,
                      .seed = 5};
  const TableSchema schema = SchemaOfCells(orders);
  SearchScenarios scenarios(out, schema, orders.Rows());
  std::vector<Value> days;
  for (int64_t day = 0; day < 5; ++day) days.push_back(Value::Int64(day * 60));
  const Predicate questions[] = {
      Equal(kCountry, 3),
      Equal(kCountry, 77),
      Predicate::And({Between(kAmount, 20, 25), Equal(kCountry, 0)}),
      Predicate::And({Between(kAmount, 20, 110), Equal(kCountry, 0)}),
      Predicate::And({Between(kAmount, 20, 110), Equal(kCountry, 4)}),
      Predicate::And({Between(kAmount, 0, 20), Equal(kCity, 1)}),
      Predicate::And({Equal(kCountry, 0), Equal(kCity, 3)}),
      Predicate::And({Equal(kCountry, 1), Equal(kCity, 3)}),
      Predicate::And({Equal(kCountry, 0), Equal(kYear, 1)}),
      Predicate::And({Equal(kCountry, 1), Equal(kYear, 1)}),
      Predicate::And({Between(kDay, 50, 200), Between(kShipped, 50, 210)}),
      Predicate::And({Between(kDay, 50, 300), Between(kShipped, 290, 460)}),
      Predicate::And({Equal(kYear, 0), Between(kDay, 0, 20), Between(kAmount, 0, 100)}),
      Predicate::And({Equal(kCountry, 0), Between(kDay, 0, 300), Between(kShipped, 280, 460)}),
      Predicate::And({Predicate::In(kDay, days), Equal(kCountry, 3)}),
      Predicate::And({Predicate::In(kDay, days), Between(kAmount, 0, 100)}),
      Predicate::And({Equal(kDay, 77), Between(kAmount, 0, 240), Equal(kCountry, 0)}),
      Predicate::Or({Equal(kCountry, 4), Equal(kDay, 33), Between(kAmount, 0, 10)}),
      Predicate::Compare(kAmount, Predicate::Op::kGt, Value::Int64(20)),
      Predicate::Compare(kAmount, Predicate::Op::kLt, Value::Int64(20)),
      Predicate::Compare(kId, Predicate::Op::kLt, Value::Int64(100)),
  };
  for (const Predicate& question : questions) {
    for (const uint64_t limit : {1000, 256, 255, 15}) scenarios.Search(question, limit, {kNote});
    // The entries of some indexes give the rows of these.
    for (const uint64_t limit : {1000, 15}) scenarios.Search(question, limit, {kAmount});
    for (const int64_t end : {60, 220}) {
      scenarios.Search(question, 1000, {kNote}, {scenarios.KeyOf(50), scenarios.KeyOf(end)});
      scenarios.Search(question, 1000, {}, {scenarios.KeyOf(50), scenarios.KeyOf(end)});
    }
  }
}

// Searches at the bounds of each choice by cost: one entry or one row less, and the other way is
// the cheaper one.
void CostsAtTheirBounds(std::ostream& out) {
  constexpr int64_t kRows = 400;
  const Orders orders{.expected_values = 500};
  std::vector<Row> rows;
  for (int64_t id = 0; id < kRows; ++id) {
    Row row(orders.Schema().columns.size());
    row[kId] = row[kAmount] = Value::Int64(id);
    row[kCountry] = Value::Int64(id % 2);
    row[kCity] = Value::Int64(id < 81 ? id % 10 : id);
    row[kYear] = Value::Int64(id < 80 ? id % 10 : id);
    row[kShipped] = Value::Int64(id < 72 ? 1000 + id : id - 72);
    // Below 345 for every second row of the first 90, and for all others.
    row[kDay] = Value::Int64(id >= 90 ? id - 45 : id % 2 == 0 ? id / 2 : 1000 + id);
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, SchemaOfCells(orders), rows);
  std::vector<Value> ten;
  for (int64_t value = 0; value < 10; ++value) ten.push_back(Value::Int64(value));
  const auto keys = [&](int64_t count) {
    return KeyRange{scenarios.KeyOf(100), scenarios.KeyOf(100 + count)};
  };
  // All rows, or 81 or 80 rows by the entries of ten values.
  for (const uint64_t limit : {256, 255}) {
    scenarios.Search(Predicate::In(kCity, ten), limit, {kNote});
    scenarios.Search(Predicate::In(kYear, ten), limit, {kNote});
  }
  // The rows of a part of the keys, or the entries of all keys.
  for (const int64_t entries : {31, 32, 33, 34}) {
    for (const int64_t count : {2 * entries - 1, 2 * entries}) {
      scenarios.Search(Between(kAmount, 0, entries - 1), 1000, {kNote}, keys(count));
    }
  }
  // A stream is joined with one of 72 entries, of whose first rows it has none; with one of 90, of
  // whose first rows it has half.
  for (const int64_t entries : {158, 159, 160, 161}) {
    scenarios.Search(Predicate::And({Between(kAmount, 0, 71), Between(kShipped, 0, entries - 1)}),
                     255, {kNote});
  }
  for (const int64_t entries : {94, 95, 96, 97}) {
    scenarios.Search(Predicate::And({Between(kAmount, 0, 89), Between(kDay, 0, entries - 1)}), 40,
                     {kNote});
  }
  // The first of two streams with as many entries drives; one of ten ranges is read later than
  // another, since it costs more to open.
  scenarios.Search(Predicate::And({Between(kAmount, 0, 59), Between(kShipped, 0, 59)}), 255,
                   {kNote});
  for (const int64_t entries : {97, 98, 99, 100}) {
    scenarios.Search(Predicate::And({Between(kAmount, 0, entries - 1), Predicate::In(kCity, ten)}),
                     255, {kNote});
  }
  // The first rows in an order: by the entries of the order, or sorted.
  const std::vector<OrderTerm> by_amount = {{.column = kAmount}};
  for (const int64_t count : {98, 99, 100, 101}) {
    scenarios.Search(Between(kShipped, 0, count - 1), 25, {}, {}, by_amount);
    scenarios.Search(Predicate::True(), 25, {}, keys(count), by_amount);
  }
  for (const int64_t count : {48, 49, 50, 51}) {
    scenarios.Search(Between(kAmount, 100, 199), 25, {}, keys(count), by_amount);
  }
}

// Equalities whose entries are no fewer than those of the first index, but are rare behind the
// first page: there both are joined with it.
void EqualitiesJoinedLater(std::ostream& out) {
  const Orders orders{.expected_values = 500};
  std::vector<Row> rows;
  constexpr int64_t kEarly = 140;  // rows with all entries
  for (int64_t id = 0; id < kEarly + 204; ++id) {
    Row row(orders.Schema().columns.size());
    for (const uint32_t column : {kId, kCity, kDay, kAmount}) row[column] = Value::Int64(id);
    row[kCountry] = Value::Int64(id % 2);
    row[kShipped] = Value::Int64(id < kEarly || id % 4 == 0 ? 0 : 1);
    const bool is_of_year = id % 2 == 1 ? id < kEarly + 40 : id < kEarly + 64 && id % 8 < 4;
    row[kYear] = Value::Int64(id < kEarly || is_of_year ? 0 : 1);
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, SchemaOfCells(orders), rows);
  const Predicate all = Predicate::And({Equal(kCountry, 0), Equal(kYear, 0), Equal(kShipped, 0)});
  for (const uint64_t limit : {70, 60}) scenarios.Search(all, limit, {kNote});
}

// The keys of a driving equality of which most are not among those of a joined range: they are
// passed over, and the rows of both are all found.
void EqualityJoinedWithARange(std::ostream& out) {
  constexpr int64_t kOfCountry = 90, kInRange = 190, kAll = 900;
  const Orders orders{.expected_values = 500};
  std::vector<Row> rows;
  for (int64_t id = 0; id < kAll; ++id) {
    Row row(orders.Schema().columns.size());
    for (const uint32_t column : {kId, kCity, kDay, kShipped, kYear})
      row[column] = Value::Int64(id);
    row[kCountry] = Value::Int64(id < kOfCountry ? 0 : 1);
    const bool is_in_range = id < kOfCountry ? id % 10 == 7 : id < kInRange;
    row[kAmount] = Value::Int64(is_in_range ? id : 1000 + id);
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, SchemaOfCells(orders), rows);
  const Predicate both = Predicate::And({Equal(kCountry, 0), Between(kAmount, 0, kInRange)});
  for (const uint64_t limit : {1000, 6}) scenarios.Search(both, limit, {kNote});
}

// Rows in the order of an index: all of the index or a part of it, a condition that few rows meet,
// key ranges that are a part of the region.
void OrderedOrders(std::ostream& out) {
  const Orders orders{.count = 200,
                      .countries = 6,
                      .cities = 5,
                      .days = 500,
                      .longest_delay = 20,
                      .amounts = 250,
                      .expected_values = 500,
                      .seed = 6};
  const TableSchema schema = SchemaOfCells(orders);
  SearchScenarios scenarios(out, schema, orders.Rows());
  const Predicate questions[] = {
      Predicate::True(),
      Predicate::NotNull(kAmount),
      Equal(kCountry, 3),
      Equal(kCountry, 0),
      Equal(kCountry, 77),
      Between(kAmount, 20, 110),
      Predicate::And({Between(kAmount, 20, 110), Equal(kCountry, 0)}),
      Predicate::And({Between(kDay, 50, 200), Between(kShipped, 50, 210)}),
      Predicate::In(kYear, {Value::Int64(0), Value::Int64(1)}),
      Predicate::Or({Equal(kCountry, 4), Equal(kDay, 33)}),
  };
  const std::vector<OrderTerm> by[] = {
      {{.column = kAmount}},
      {{.column = kAmount, .descending = true}},
      {{.column = kYear, .descending = true}},
      {{.column = kYear}, {.column = kId}},
      {{.column = kDay}},
  };
  for (const Predicate& question : questions) {
    for (const std::vector<OrderTerm>& order : by) {
      for (const uint64_t limit : {1000, 90, 25}) scenarios.Search(question, limit, {}, {}, order);
      for (const int64_t end : {60, 180}) {
        scenarios.Search(question, 40, {}, {scenarios.KeyOf(50), scenarios.KeyOf(end)}, order);
      }
    }
  }
}

// Rows from the last key to the first: all of them, those of a part of the keys, those that meet a
// condition without an index.
void OrdersFromTheLast(std::ostream& out) {
  const Orders orders{.count = 120,
                      .countries = 6,
                      .cities = 5,
                      .days = 500,
                      .longest_delay = 20,
                      .amounts = 250,
                      .expected_values = 500,
                      .seed = 8};
  TableSchema schema = SchemaOfCells(orders);
  schema.indexes.erase(schema.indexes.begin() + 1, schema.indexes.end());
  SearchScenarios scenarios(out, schema, orders.Rows());
  const auto id = [](Predicate::Op op, int64_t value) {
    return Predicate::Compare(kId, op, Value::Int64(value));
  };
  const Predicate questions[] = {
      Predicate::True(),
      Between(kAmount, 20, 110),
      Between(kAmount, 1000, 2000),
      id(Predicate::Op::kLt, 70),
      Predicate::And({id(Predicate::Op::kGe, 30), Between(kAmount, 20, 110)}),
      Predicate::Or({id(Predicate::Op::kLt, 20), id(Predicate::Op::kGt, 90)}),
  };
  const std::vector<OrderTerm> down = {{.column = kId, .descending = true}};
  for (const Predicate& question : questions) {
    for (const uint64_t limit : {1000, 40, 7, 1}) {
      scenarios.Search(question, limit, {kNote, kAmount}, {}, down);
    }
    scenarios.Search(question, 10, {}, {scenarios.KeyOf(25), scenarios.KeyOf(60)}, down);
    scenarios.Search(question, 10, {}, {scenarios.KeyOf(100), ""}, down);
  }
}

// Groups of equal rows: made of entries that have all columns, of entries whose rows are read, and
// of scanned rows.
void CountedOrders(std::ostream& out) {
  const Orders orders{.count = 250,
                      .countries = 6,
                      .cities = 5,
                      .days = 500,
                      .longest_delay = 20,
                      .amounts = 40,
                      .expected_values = 500,
                      .seed = 7};
  const TableSchema schema = SchemaOfCells(orders);
  SearchScenarios scenarios(out, schema, orders.Rows());
  const Predicate questions[] = {
      Predicate::True(),
      Predicate::NotNull(kAmount),
      Equal(kCountry, 0),
      Equal(kCountry, 3),
      Equal(kCountry, 77),
      Predicate::In(kCountry, {Value::Int64(1), Value::Int64(2), Value::Int64(4)}),
      Between(kAmount, 4, 30),
      Predicate::And({Between(kAmount, 4, 30), Equal(kCountry, 0)}),
      Predicate::And({Between(kDay, 50, 300), Between(kShipped, 290, 460)}),
      Predicate::Or({Equal(kCountry, 4), Between(kDay, 30, 90), Between(kAmount, 0, 10)}),
      Predicate::Compare(kId, Predicate::Op::kLt, Value::Int64(100)),
  };
  const std::vector<uint32_t> columns[] = {{}, {kAmount}, {kCountry}, {kCountry, kYear}, {kNote}};
  for (const Predicate& question : questions) {
    for (const std::vector<uint32_t>& of : columns) {
      for (const uint64_t limit : {1000, 35}) {
        scenarios.Search(question, limit, of, {}, {}, /*groups=*/true);
      }
      scenarios.Search(question, 1000, of, {scenarios.KeyOf(50), scenarios.KeyOf(180)}, {},
                       /*groups=*/true);
    }
  }
}

// Conditions on NULL, values that share prefixes or are cut in the index, several columns.
void AwkwardValues(std::ostream& out) {
  TableSchema schema;
  schema.name = "awkward";
  schema.columns = {{.name = "k", .type = Type::kText, .nullable = false},
                    {.name = "a", .type = Type::kText},
                    {.name = "b", .type = Type::kInt64},
                    {.name = "c", .type = Type::kBytes},
                    {.name = "d", .type = Type::kDouble}};
  schema.key = {0};
  schema.indexes = {{.name = "a", .columns = {1}},
                    {.name = "b_c", .columns = {2, 3}},
                    {.name = "c_sparse", .columns = {3}, .nulls = IndexNulls::kSkip},
                    {.name = "d", .columns = {4}, .include = {1, 3}},
                    {.name = "b_of_a", .columns = {2}, .where = Predicate::NotNull(1)}};
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  Random random(3);
  std::vector<Row> rows;
  for (int i = 0; i < 150; ++i) {
    Row row = RandomRow(schema, random);
    row[0] = Value::Text("k" + std::to_string(1000 + i));
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, schema, rows);
  for (int i = 0; i < 120; ++i) {
    const Predicate predicate = RandomPredicate(scenarios.schema(), random, 3);
    const uint64_t limit = random.OneIn(3) ? 1 + random.Uniform(5) : 1000;
    scenarios.Search(predicate, limit,
                     random.OneIn(8) ? std::vector<uint32_t>{1, 2, 4} : std::vector<uint32_t>{});
  }
  for (int i = 0; i < 60; ++i) {
    const Predicate predicate = RandomPredicate(scenarios.schema(), random, 2);
    const uint64_t limit = random.OneIn(3) ? 1000 : 1 + random.Uniform(20);
    std::vector<OrderTerm> order = {
        {.column = static_cast<uint32_t>(1 + random.Uniform(4)), .descending = random.OneIn(2)}};
    if (random.OneIn(3)) order.push_back({.column = 3, .descending = order[0].descending});
    scenarios.Search(predicate, limit, {}, {}, order);
  }
  for (int i = 0; i < 60; ++i) {
    const Predicate predicate = RandomPredicate(scenarios.schema(), random, 2);
    const uint64_t limit = random.OneIn(3) ? 1 + random.Uniform(20) : 1000;
    std::vector<uint32_t> columns;
    for (uint32_t column = 1; column < 5; ++column) {
      if (random.OneIn(3)) columns.push_back(column);
    }
    scenarios.Search(predicate, limit, columns, {}, {}, /*groups=*/true);
  }
  // Rows of the partial index.
  for (int i = 0; i < 40; ++i) {
    const Predicate of_b = i % 2 == 0
                               ? Predicate::NotNull(2)
                               : Predicate::Compare(2, Predicate::Op::kGt, Value::Int64(i - 20));
    const Predicate predicate = Predicate::And(
        {Predicate::NotNull(1), of_b, RandomPredicate(scenarios.schema(), random, 1)});
    const uint64_t limit = random.OneIn(3) ? 1 + random.Uniform(5) : 1000;
    std::vector<uint32_t> columns;
    if (random.OneIn(2)) columns = {1, 2};
    std::vector<OrderTerm> order;
    if (random.OneIn(2)) order = {{.column = 2, .descending = random.OneIn(2)}};
    scenarios.Search(predicate, limit, columns, {}, order);
  }
}

// A table whose key is its last column. Columns in front of the key that are not wanted are left
// out of rows, and do not tell groups apart.
void KeyBehindOtherColumns(std::ostream& out) {
  TableSchema schema;
  schema.name = "key_behind";
  schema.columns = {{.name = "a", .type = Type::kInt64},
                    {.name = "b", .type = Type::kInt64},
                    {.name = "k", .type = Type::kInt64, .nullable = false}};
  schema.key = {2};
  schema.indexes = {{.name = "b_a", .columns = {1, 0}}, {.name = "a", .columns = {0}}};
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  std::vector<Row> rows;
  for (int64_t k = 0; k < 60; ++k) {
    rows.push_back({Value::Int64(k % 7), Value::Int64(k % 3), Value::Int64(k)});
  }
  SearchScenarios scenarios(out, schema, rows);
  const Predicate questions[] = {
      Predicate::True(),
      Predicate::Compare(1, Predicate::Op::kEq, Value::Int64(2)),
      Predicate::Compare(0, Predicate::Op::kLt, Value::Int64(3)),
  };
  const std::vector<uint32_t> wanted[] = {{0}, {1}, {0, 1}, {1, 2}};
  for (const Predicate& question : questions) {
    for (const std::vector<uint32_t>& columns : wanted) {
      for (const uint64_t limit : {1000, 7}) {
        scenarios.Search(question, limit, columns);
        if (columns.back() == 2) continue;  // groups have no column of the key
        scenarios.Search(question, limit, columns, {}, {}, /*groups=*/true);
      }
    }
  }
}

// Computed columns in conditions, indexes, orders and results.
void ComputedColumns(std::ostream& out) {
  TableSchema schema = *ParseDefinition(
      "computed",
      {"k text", "a text", "at timestamp", "n int64", "a_lower = lower(a)",
       "a_start = substr(a, 1, 2)", "day = date(at)", "hour = hour(at)", "k_lower = lower(k)",
       "key (k)", "index a_lower (a_lower)", "index day_hour (day, hour)",
       "index a_start (a_start, n) nulls skip", "index k_lower (k_lower) nulls skip"});
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  Random random(8);
  std::vector<Row> rows;
  const auto text = [&](int letters) {
    static constexpr const char* kLetters[] = {"a", "A", "b", "B", "\xc3\xa9", "\xff"};
    std::string drawn;
    for (int i = 0; i < letters; ++i) drawn += kLetters[random.Uniform(std::size(kLetters))];
    return Value::Text(std::move(drawn));
  };
  for (int i = 0; i < 150; ++i) {
    Row row(schema.columns.size());
    row[0] = Value::Text((random.OneIn(2) ? "k" : "K") + std::to_string(1000 + i));
    if (!random.OneIn(8)) row[1] = text(static_cast<int>(random.Uniform(4)));
    constexpr int64_t kHour = 3'600'000'000;
    if (!random.OneIn(8)) {
      row[2] = Value::Timestamp(static_cast<int64_t>(random.Uniform(72)) * kHour - 24 * kHour);
    }
    row[3] = Value::Int64(static_cast<int64_t>(random.Uniform(5)));
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, schema, rows);
  // A comparison of a column with the value that a row has there.
  const auto condition = [&] {
    Row row = rows[random.Uniform(rows.size())];
    SetComputedColumns(schema, &row);
    const auto column = static_cast<uint32_t>(4 + random.Uniform(5));
    if (row[column].is_null()) return Predicate::IsNull(column);
    if (random.OneIn(2)) return Predicate::Compare(column, Predicate::Op::kEq, row[column]);
    return Predicate::Compare(column, static_cast<Predicate::Op>(1 + random.Uniform(6)),
                              row[column]);
  };
  const auto columns = [&] {
    std::vector<uint32_t> some;
    for (uint32_t column = 1; column < 9; ++column) {
      if (random.OneIn(3)) some.push_back(column);
    }
    return some;
  };
  for (int i = 0; i < 120; ++i) {
    const Predicate predicate = random.OneIn(3)
                                    ? condition()
                                    : (random.OneIn(2) ? Predicate::And({condition(), condition()})
                                                       : Predicate::Or({condition(), condition()}));
    const uint64_t limit = random.OneIn(3) ? 1 + random.Uniform(20) : 1000;
    std::vector<OrderTerm> order;
    if (random.OneIn(3)) {
      order.push_back(
          {.column = static_cast<uint32_t>(4 + random.Uniform(3)), .descending = random.OneIn(2)});
    }
    const bool groups = order.empty() && random.OneIn(3);
    scenarios.Search(predicate, limit, columns(), {}, order, groups);
  }
}

// Totals of columns of each type, by entries, rows read, and rows scanned.
void Totals(std::ostream& out) {
  TableSchema schema;
  schema.name = "totals";
  schema.columns = {{.name = "k", .type = Type::kInt64, .nullable = false},
                    {.name = "g", .type = Type::kInt64},
                    {.name = "n", .type = Type::kInt64},
                    {.name = "d", .type = Type::kDecimal},
                    {.name = "r", .type = Type::kDouble},
                    {.name = "b", .type = Type::kBool},
                    {.name = "t", .type = Type::kTimestamp},
                    {.name = "s", .type = Type::kText}};
  schema.key = {0};
  schema.indexes = {{.name = "g_n", .columns = {1, 2}},
                    {.name = "g_d", .columns = {1, 3}},
                    {.name = "r_b", .columns = {4, 5}},
                    {.name = "s", .columns = {7}}};
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  Random random(4);
  std::vector<Row> rows;
  for (int i = 0; i < 120; ++i) {
    Row row = RandomRow(schema, random);
    row[0] = Value::Int64(i);
    if (!row[6].is_null()) row[6] = Value::Timestamp(row[6].int64() / 1'000'000 * 1000);  // millis
    row[1] = random.OneIn(8) ? Value() : Value::Int64(static_cast<int64_t>(random.Uniform(5)));
    rows.push_back(std::move(row));
  }
  SearchScenarios scenarios(out, schema, rows);
  const Predicate questions[] = {Predicate::True(),
                                 Predicate::Compare(1, Predicate::Op::kEq, Value::Int64(3)),
                                 Predicate::Between(1, Value::Int64(1), Value::Int64(3)),
                                 Predicate::Compare(0, Predicate::Op::kLt, Value::Int64(50))};
  const std::pair<std::vector<uint32_t>, std::vector<uint32_t>> wanted[] = {
      {{1, 2}, {2}}, {{2}, {2}},    {{1, 3}, {3}},          {{3}, {3}},
      {{4}, {4}},    {{4, 5}, {5}}, {{1, 5, 6, 7}, {5, 6}}, {{1, 2, 3, 4, 7}, {7, 2, 3, 4}}};
  for (const Predicate& question : questions) {
    for (const auto& [columns, totals] : wanted) {
      for (const uint64_t limit : {1000, 45}) {
        scenarios.Search(question, limit, columns, {}, {}, /*groups=*/true, totals);
      }
    }
  }
}

}  // namespace

std::string Searches() {
  std::ostringstream out;
  out << "# T schema: a table in HBase, whose one region has the rows and searches that follow\n"
         "# R values: a row\n"
         "# S limit start end request: a search of the row keys from start to end, `limit` rows a\n"
         "#   page; of the SearchRequest only the branches, columns, order, groups and totals are "
         "set\n"
         "# F key...: the rows of a page; with columns KEY=ROW; groups COUNT*ROW/TOTALS\n"
         "# P error entries rows from_entries returned scanned INDEX:LED:JOINED:EXPECTED:READ...:\n"
         "#   the end of a page: its SearchCounters, but for seeks, which are the store's own way\n"
         "# N branch key|entry|descending|key_descending index last: where the next page "
         "continues\n";
  SkewedOrders(out);
  CostsAtTheirBounds(out);
  EqualitiesJoinedLater(out);
  EqualityJoinedWithARange(out);
  OrderedOrders(out);
  OrdersFromTheLast(out);
  CountedOrders(out);
  AwkwardValues(out);
  KeyBehindOtherColumns(out);
  ComputedColumns(out);
  Totals(out);
  return out.str();
}

}  // namespace tamis
