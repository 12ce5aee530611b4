// Writes rows to a store until it is killed, or checks what is there; driven by kill_test.py.
//
//   crash_store write DIRECTORY FIRST [BATCHES]   writes rows FIRST, FIRST + 1, ...; prints the
//       number of each batch's last row once the batch is acknowledged. Closes the store in good
//       order after so many batches, when it is not killed before
//   crash_store verify DIRECTORY LAST             every row up to LAST must be found by key and by
//       each index
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>

#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"

namespace tamis {
namespace {

constexpr int64_t kBatch = 20;

Row RowOf(int64_t i) {
  return {Value::Int64(i * 7919 % 1'000'003), Value::Text("group " + std::to_string(i / 3)),
          Value::Int64(i), Value::Text(std::string(100, static_cast<char>('a' + i % 26)))};
}

TableSchema Definition() {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "grp", .type = Type::kText},
                    {.name = "number", .type = Type::kInt64},
                    {.name = "filling", .type = Type::kText}};
  schema.key = {0};
  schema.indexes = {{.name = "grp", .columns = {1}, .expected_values = 500},
                    {.name = "number", .columns = {2}, .expected_values = 500}};
  return schema;
}

int Fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  return 1;
}

int Write(Engine* engine, const SchemaPtr& table, int64_t first, int64_t batches) {
  for (int64_t i = first; batches-- > 0; i += kBatch) {
    std::vector<tamis::Write> writes;
    for (int64_t j = i; j < i + kBatch; ++j) writes.push_back({.row = RowOf(j)});
    for (const Status& status : engine->Apply(table, std::move(writes))) {
      if (!status.ok()) return Fail("not written: " + status.ToString());
    }
    std::printf("%lld\n", static_cast<long long>(i + kBatch - 1));
    std::fflush(stdout);
  }
  return 0;
}

Result<bool> Finds(Engine* engine, const SchemaPtr& table, Predicate predicate, const Row& row) {
  SearchOptions options;
  options.predicate = std::move(predicate);
  RowStream rows = engine->Search(table, std::move(options));
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(std::optional<Row> found, rows.Next());
    if (!found.has_value()) return false;
    if (*found == row) return true;
  }
}

int Verify(RocksCluster* cluster, Engine* engine, Executor* executor, const SchemaPtr& table,
           int64_t last) {
  engine->WaitUntilRouted(*table, std::chrono::seconds(60));
  for (int64_t i = 0; i <= last; ++i) {
    const Row row = RowOf(i);
    for (const uint32_t column : {0u, 1u, 2u}) {
      // All of the newest rows, and some of the old ones.
      if (i < last - 200 && i % 17 != 0) continue;
      const auto found =
          Finds(engine, table, Predicate::Compare(column, Predicate::Op::kEq, row[column]), row);
      if (!found.ok()) return Fail("cannot search: " + found.status().ToString());
      if (!*found) {
        return Fail("row " + std::to_string(i) + " was acknowledged and is not found by " +
                    table->columns[column].name);
      }
    }
  }
  const auto report =
      Await<Result<CheckReport>>(executor, [&](auto done) { cluster->Check("t", done); });
  if (!report.ok()) return Fail("cannot check: " + report.status().ToString());
  if (!report->ok()) return Fail(report->ToString());
  std::printf("%llu rows in %llu regions\n", static_cast<unsigned long long>(report->rows),
              static_cast<unsigned long long>(report->regions));
  return 0;
}

int Main(int argc, char** argv) {
  if (argc < 4) return Fail("usage: crash_store write|verify DIRECTORY NUMBER [BATCHES]");
  ThreadExecutor executor(3);
  RocksCluster::Options options;
  options.store.directory = argv[2];
  options.servers = 4;
  options.server.split_bytes = 100 << 10;
  auto cluster = RocksCluster::Open(options, &executor);
  if (!cluster.ok()) return Fail(cluster.status().ToString());
  int result = 0;
  {
    Engine engine(cluster->get(), &executor, {});
    auto table = engine.Table("t");
    if (!table.ok()) {
      const auto made = Await<Result<TableSchema>>(
          &executor, [&](auto done) { (*cluster)->CreateTable(Definition(), done); });
      if (!made.ok()) return Fail(made.status().ToString());
      table = engine.Table("t");
    }
    const int64_t number = std::stoll(argv[3]);
    result = std::strcmp(argv[1], "write") == 0
                 ? Write(&engine, *table, number,
                         argc > 4 ? std::stoll(argv[4]) : std::numeric_limits<int64_t>::max())
                 : Verify(cluster->get(), &engine, &executor, *table, number);
    executor.Stop();
  }
  return result;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) { return tamis::Main(argc, argv); }
