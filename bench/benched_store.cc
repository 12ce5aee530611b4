#include "bench/benched_store.h"

#include <algorithm>
#include <utility>

#include "bench/checked.h"
#include "tamis/sql/extension.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

// SQLite hands its own functions only to an extension's entry point.
std::shared_ptr<Session> opening;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  return Extend(db, api, std::exchange(opening, nullptr)).ok() ? SQLITE_OK : SQLITE_ERROR;
}

}  // namespace

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

// The tables that there are by now are those of the database.
void BenchedStore::OpenDatabase() {
  opening = session_;
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
  if (sqlite3_open(":memory:", &db_) != SQLITE_OK) Die(sqlite3_errmsg(db_));
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
  if (db_ == nullptr) OpenDatabase();
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

BenchedStore::Explained BenchedStore::RunExplained(const std::string& sql) {
  Explained explained;
  session_->searches = &explained.searches;
  explained.rows = Run(sql);
  session_->searches = nullptr;
  return explained;
}

}  // namespace tamis
