#include "bench/benched_store.h"

#include <algorithm>
#include <utility>

#include "bench/checked.h"
#include "tamis/server/memory_database.h"
#include "tamis/sql/rewritten_query.h"
#include "tamis/table/codec.h"

namespace tamis {

BenchedStore::BenchedStore(const std::string& name) {
  directory_ = std::filesystem::temp_directory_path() / ("tamis_bench_" + name);
  std::filesystem::remove_all(directory_);
  std::filesystem::create_directories(directory_);
  RocksCluster::Options options;
  options.store.directory = directory_ / "store";
  options.server.split_bytes = 0;
  cluster_ = Get(RocksCluster::Open(options, &executor_));
  counted_ = std::make_unique<CountedCluster>(cluster_.get());
  session_ = std::make_shared<Session>();
  session_->engine = std::make_shared<Engine>(counted_.get(), &executor_, Engine::Options{});
}

BenchedStore::~BenchedStore() {
  sqlite3_close(db_);
  executor_.Stop();
  session_.reset();
  counted_.reset();
  cluster_.reset();
  std::filesystem::remove_all(directory_);
}

SchemaPtr BenchedStore::MakeTable(const TableSchema& schema, int64_t rows, int64_t regions) {
  const SchemaPtr table = std::make_shared<const TableSchema>(Get(Await<Result<TableSchema>>(
      &executor_, [&](auto done) { cluster_->CreateTable(schema, done); })));
  for (int64_t i = 1; i < regions; ++i) {
    Row row(table->columns.size());
    row[0] = Value::Int64(rows * i / regions);
    const std::string key = EncodeKey(*table, row);
    // The last region is the one that is split, since the keys ascend.
    const auto all = Get(Await<Result<std::vector<RegionInfo>>>(
        &executor_, [&](auto done) { cluster_->ListRegions(schema.name, {}, done); }));
    const auto region =
        std::ranges::find_if(all, [&](const RegionInfo& one) { return one.Contains(key); });
    Check(Await<Status>(&executor_,
                        [&](auto done) { cluster_->SplitRegion(region->id, key, done); }));
  }
  (void)Await<Result<uint64_t>>(&executor_, [&](auto done) { cluster_->Balance(done); });
  while (cluster_->pending_work() > 0) Sleep(&executor_, std::chrono::milliseconds(5));
  return table;
}

void BenchedStore::Put(const SchemaPtr& table, std::vector<Write> writes) {
  for (const Status& status : engine().Apply(table, std::move(writes))) Check(status);
}

void BenchedStore::AwaitFilters(const SchemaPtr& table) {
  if (!engine().WaitUntilRouted(*table, std::chrono::seconds(120))) Die("the filters did not come");
}

std::string BenchedStore::Run(const std::string& sql) {
  // The tables that there are by now are those of the database.
  if (db_ == nullptr) Check(server::OpenMemoryDatabase(session_, &db_));
  std::string rows;
  char* error = nullptr;
  const auto add = [](void* to, int columns, char** values, char**) {
    auto* out = static_cast<std::string*>(to);
    for (int i = 0; i < columns; ++i) {
      *out += (i > 0 ? "|" : "") + std::string(values[i] == nullptr ? "NULL" : values[i]);
    }
    *out += "\n";
    return 0;
  };
  if (sqlite3_exec(db_, sql.c_str(), add, &rows, &error) != SQLITE_OK) Die(sql + ": " + error);
  return rows;
}

std::string BenchedStore::RunRewritten(const std::string& sql) {
  const auto rewritten = RewriteQuery(sql, session_->engine.get());
  if (!rewritten.sql.has_value()) Die(sql + " is not rewritten: " + rewritten.by_sqlite);
  return Run(*rewritten.sql);
}

BenchedStore::Explained BenchedStore::RunExplained(const std::string& sql) {
  Explained explained;
  session_->searches = &explained.searches;
  explained.rows = Run(sql);
  session_->searches = nullptr;
  return explained;
}

}  // namespace tamis
