// A table with an index in an embedded cluster, without SQL: make it, fill it, ask it, see who was
// asked. A program like this one needs of Tamis what `cmake --install` puts there (README.md, "As a
// library").
//
//   build/dev/bin/example_embedded /tmp/example.db
#include <cstdio>

#include "tamis/store/opened_store.h"

namespace {

using namespace tamis;  // NOLINT(google-build-using-namespace)

Status Run(const std::string& directory) {
  TAMIS_ASSIGN_OR_RETURN(const auto store, OpenedStore::Open(directory, {}));
  Engine& engine = store->engine();

  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr cities,
                         store->Define("cities", {"city", "country", "people int64", "key (city)",
                                                  "index country (country)"}));

  std::vector<Write> writes;
  for (const auto& [city, country, people] :
       {std::tuple("Lagos", "NG", 15388000), {"Kano", "NG", 4103000}, {"Lyon", "FR", 522250}}) {
    writes.push_back({.row = {Value::Text(city), Value::Text(country), Value::Int64(people)}});
  }
  for (const Status& status : engine.Apply(cities, std::move(writes))) {
    TAMIS_RETURN_IF_ERROR(status);
  }

  engine.WaitUntilRouted(*cities, std::chrono::seconds(10));
  RowStream rows = engine.Search(
      cities, {.predicate = Predicate::Compare(1, Predicate::Op::kEq, Value::Text("NG")),
               .key_order = true});
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<Row> row, rows.Next());
    if (!row) break;
    std::printf("%s: %s\n", (*row)[0].ToString().c_str(), (*row)[2].ToString().c_str());
  }
  std::printf("%s\n", rows.explain().ToLine().c_str());
  return Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  const tamis::Status status = Run(argc > 1 ? argv[1] : "example.db");
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
