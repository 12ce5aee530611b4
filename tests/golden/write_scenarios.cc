// writes.txt: requests to write rows, their outcomes, and the rows and entries that stand
// afterwards.
#include <sstream>

#include "tamis/table/codec.h"
#include "tamis/table/definition.h"
#include "tamis/table/testing/random_values.h"
#include "tests/golden/golden_text.h"
#include "tests/golden/scenario_table.h"
#include "tests/golden/scenarios.h"

namespace tamis {
namespace {

constexpr int kRequests = 150;

TableSchema Schema() {
  TableSchema schema;
  schema.name = "written";
  schema.columns = {{.name = "k", .type = Type::kText, .nullable = false},
                    {.name = "a", .type = Type::kText},
                    {.name = "b", .type = Type::kInt64},
                    {.name = "c", .type = Type::kBytes}};
  schema.key = {0};
  schema.indexes = {{.name = "a", .columns = {1}},
                    {.name = "b_a", .columns = {2, 1}},
                    {.name = "b_with", .columns = {2}, .include = {3, 1}},
                    {.name = "c_sparse", .columns = {3}, .nulls = IndexNulls::kSkip},
                    {.name = "c_with", .columns = {3}, .nulls = IndexNulls::kSkip, .include = {1}},
                    {.name = "a_of_b", .columns = {1}, .where = Predicate::NotNull(2)}};
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  return schema;
}

// Values that are computed of values, of the key too, in indexes that skip NULL and others.
TableSchema ComputedSchema() {
  TableSchema schema = *ParseDefinition(
      "computed",
      {"k text", "a text", "at timestamp", "a_lower = lower(a)", "a_start = substr(a, 1, 1)",
       "day = date(at)", "hour = hour(at)", "k_lower = lower(k)", "city = json_text(a, '$.city')",
       "key (k)", "index a_lower (a_lower) nulls skip", "index day_hour (day, hour)",
       "index a_start (a_start, a) nulls skip", "index k_lower (k_lower) nulls skip",
       "index city (city) nulls skip"});
  for (IndexSpec& index : schema.indexes) index.expected_values = 100;
  return schema;
}

Value RandomText(Random& random) {
  static constexpr const char* kTexts[] = {
      "Ab", "aB", "ab", "\xc3\xa9", "\xff", "", R"({"city": "Rom"})", R"({"city": null})"};
  return random.OneIn(5) ? Value() : Value::Text(kTexts[random.Uniform(std::size(kTexts))]);
}

// One of few keys, so that one comes several times in a request.
pb::Mutation RandomMutation(const TableSchema& schema, Random& random) {
  Row row = RandomRow(schema, random);
  row[0] = Value::Text("k" + std::to_string(random.Uniform(5)));
  if (schema.HasComputedColumns()) {
    row[0] = Value::Text((random.OneIn(2) ? "k" : "K") + std::to_string(random.Uniform(3)));
    row[1] = RandomText(random);
    // A cell holds milliseconds.
    if (!row[2].is_null()) row[2] = Value::Timestamp(row[2].int64() / 1000 * 1000);
  }
  pb::Mutation mutation;
  mutation.set_kind(static_cast<pb::Mutation::Kind>(random.Uniform(4)));
  mutation.set_key(EncodeKey(schema, row));
  if (mutation.kind() == pb::Mutation::UPDATE) {
    for (uint32_t i = 1; i < schema.columns.size(); ++i) {
      // A region server refuses to set a computed column.
      if (random.OneIn(schema.columns[i].is_computed() ? 30 : 2)) {
        mutation.add_columns(schema.columns[i].id);
      }
    }
  }
  if (mutation.kind() != pb::Mutation::DELETE) mutation.set_row(EncodeRow(schema, row));
  if (random.OneIn(3)) {
    mutation.set_condition(SerializePredicate(RandomPredicate(schema, random, 2)));
  }
  return mutation;
}

void Requests(const TableSchema& wanted, uint64_t seed, std::ostream& out) {
  ScenarioTable table(wanted);
  const TableSchema& schema = table.schema();
  out << "T " << Hex(table.SchemaOfCells()) << "\n";
  Random random(seed);
  for (int i = 0; i < kRequests; ++i) {
    pb::RegionMutations mutations;
    for (uint64_t n = 1 + random.Uniform(4); n > 0; --n) {
      *mutations.add_mutations() = RandomMutation(schema, random);
    }
    out << "M " << Hex(mutations.SerializeAsString()) << "\n";
    const pb::RegionMutateResult result =
        table.Mutate({mutations.mutations().begin(), mutations.mutations().end()});
    out << "O " << static_cast<int>(result.error().code());
    for (const pb::Error& outcome : result.results())
      out << " " << static_cast<int>(outcome.code());
    out << "\n";
    for (const Row& row : table.Rows()) out << "R " << Texts(row) << "\n";
    for (const IndexSpec& index : schema.indexes) {
      for (const auto& [entry, included] : table.Entries(index.id)) {
        out << "E " << index.id << " " << Hex(entry) << " " << Hex(included) << "\n";
      }
    }
  }
}

}  // namespace

std::string Writes() {
  std::ostringstream out;
  out << "# T schema: a table in HBase; its one region is asked to write what follows\n"
         "# M mutations: a RegionMutations of which only the mutations are set\n"
         "# O outcomes: an error code for the whole request, and one for each mutation\n"
         "# R values: a row that stands afterwards, in key order\n"
         "# E index entry included: an entry that stands afterwards, in order: encoded values and\n"
         "#   row key, and its value\n";
  Requests(Schema(), 11, out);
  Requests(ComputedSchema(), 12, out);
  return out.str();
}

}  // namespace tamis
