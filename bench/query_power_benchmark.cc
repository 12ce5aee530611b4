// Queries that need few rows or none, beside the same queries as the servers answer them without
// the feature, in one run; answers are verified, ratios are what counts.
//
//   query_power_benchmark [ROWS]      default 1,000,000
//
// Aggregates: the servers send groups of equal rows with counts, or the totals of groups, against
// each row.
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>

#include "bench/checked.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/region_server.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/sql/extension.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr int64_t kRegions = 8;
constexpr int64_t kBatch = 1000;
constexpr int64_t kSections = 20;
constexpr int64_t kSizes = 997;
constexpr int kRounds = 5;

// Counts the bytes of the answers to searches.
class CountedServer : public RegionServer {
 public:
  CountedServer(std::shared_ptr<RegionServer> server, std::atomic<uint64_t>* bytes)
      : server_(std::move(server)), bytes_(bytes) {}
  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override {
    server_->Mutate(request, std::move(done));
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    server_->Search(request, [bytes = bytes_, done](Result<pb::SearchReply> reply) {
      if (reply.ok()) *bytes += reply->ByteSizeLong();
      done(std::move(reply));
    });
  }
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override {
    server_->Poll(request, std::move(done));
  }

 private:
  const std::shared_ptr<RegionServer> server_;
  std::atomic<uint64_t>* const bytes_;
};

class CountedCluster : public Cluster {
 public:
  explicit CountedCluster(Cluster* cluster) : cluster_(cluster) {}
  std::shared_ptr<RegionServer> Server(const std::string& name) override {
    return std::make_shared<CountedServer>(cluster_->Server(name), &bytes);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override {
    cluster_->ListServers(std::move(done));
  }
  void ListRegions(const std::string& table, std::vector<KeyRange> stale,
                   Callback<std::vector<RegionInfo>> done) override {
    cluster_->ListRegions(table, std::move(stale), std::move(done));
  }
  void ListTables(Callback<std::vector<TableSchema>> done) override {
    cluster_->ListTables(std::move(done));
  }
  void GetTable(const std::string& name, Callback<TableSchema> done) override {
    cluster_->GetTable(name, std::move(done));
  }

  std::atomic<uint64_t> bytes = 0;

 private:
  Cluster* const cluster_;
};

// SQLite hands its own functions only to an extension's entry point.
std::shared_ptr<Session> opening;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;
  return Extend(db, api, std::exchange(opening, nullptr)).ok() ? SQLITE_OK : SQLITE_ERROR;
}

std::string SectionOf(int64_t i) { return "section " + std::to_string(i * 7 % kSections); }
int64_t SizeOf(int64_t i) { return i * 31 % kSizes; }

class Bench {
 public:
  explicit Bench(int64_t rows) : rows_(rows), executor_(4) {
    directory_ = std::filesystem::temp_directory_path() / "tamis_query_power_benchmark";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_ / "store";
    options.server.split_bytes = 0;
    cluster_ = Get(RocksCluster::Open(options, &executor_));
    counted_ = std::make_unique<CountedCluster>(cluster_.get());
    session_ = std::make_shared<Session>();
    session_->engine = std::make_shared<Engine>(counted_.get(), &executor_, Engine::Options{});
    Fill();
    opening = session_;
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
    if (sqlite3_open(":memory:", &db_) != SQLITE_OK) Die(sqlite3_errmsg(db_));
  }
  ~Bench() {
    sqlite3_close(db_);
    executor_.Stop();
    session_.reset();
    counted_.reset();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Aggregates() {
    std::printf("%lld rows in %lld regions; time and bytes of answers, groups over rows\n",
                static_cast<long long>(rows_), static_cast<long long>(kRegions));
    std::string sections;
    std::vector<std::string> in_order;
    for (int64_t i = 0; i < kSections; ++i) in_order.push_back(SectionOf(i));
    std::ranges::sort(in_order);
    for (const std::string& section : in_order) {
      sections += section + "|" + std::to_string(rows_ / kSections) + "\n";
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < rows_; ++i) sum += SizeOf(i);
    Compare("SELECT count(*) FROM t", std::to_string(rows_) + "\n");
    Compare("SELECT count(*) FROM t WHERE size >= 0", std::to_string(rows_) + "\n");
    Compare("SELECT section, count(*) FROM t GROUP BY section ORDER BY section", sections);
    Compare("SELECT count(*) FROM t WHERE section = 'section 3'",
            std::to_string(rows_ / kSections) + "\n");
    Compare("SELECT sum(size) FROM t", std::to_string(sum) + "\n");
    Compare("SELECT g1, count FROM tamis_aggregate('t', 'section')", sections,
            "SELECT section, count(*) FROM t GROUP BY section ORDER BY section");
    Compare("SELECT sum FROM tamis_aggregate('t', '', 'size')", std::to_string(sum) + "\n",
            "SELECT sum(size) FROM t");
  }

 private:
  void Fill() {
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "section", .type = Type::kText},
                      {.name = "size", .type = Type::kInt64},
                      {.name = "description", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.name = "section", .columns = {1}, .expected_values = 2000},
                      {.name = "size", .columns = {2}, .expected_values = 2000}};
    const SchemaPtr table = std::make_shared<const TableSchema>(Get(Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(schema, done); })));
    for (int64_t i = 1; i < kRegions; ++i) {
      Row row(table->columns.size());
      row[0] = Value::Int64(rows_ * i / kRegions);
      const std::string key = EncodeKey(*table, row);
      for (const RegionInfo& region : Get(Await<Result<std::vector<RegionInfo>>>(
               &executor_, [&](auto done) { cluster_->ListRegions("t", {}, done); }))) {
        if (!region.Contains(key)) continue;
        Check(Await<Status>(&executor_,
                            [&](auto done) { cluster_->SplitRegion(region.id, key, done); }));
      }
    }
    (void)Await<Result<uint64_t>>(&executor_, [&](auto done) { cluster_->Balance(done); });
    while (cluster_->pending_work() > 0) Sleep(&executor_, std::chrono::milliseconds(5));
    for (int64_t i = 0; i < rows_; i += kBatch) {
      std::vector<Write> batch;
      for (int64_t j = i; j < std::min(rows_, i + kBatch); ++j) {
        batch.push_back({.row = {Value::Int64(j), Value::Text(SectionOf(j)),
                                 Value::Int64(SizeOf(j)), Value::Text(std::string(100, 'd'))}});
      }
      for (const Status& status : session_->engine->Apply(table, std::move(batch))) Check(status);
    }
    if (!session_->engine->WaitUntilRouted(*table, std::chrono::seconds(120))) {
      Die("the filters did not come");
    }
  }

  std::string Run(const std::string& sql) {
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

  struct Cost {
    double seconds = 0;
    double cpu = 0;  // of the whole process
    uint64_t bytes = 0;
  };
  Cost Measure(const std::string& sql, const std::string& answer, bool groups) {
    session_->groups = groups;
    counted_->bytes = 0;
    const std::clock_t cpu = std::clock();
    const auto start = std::chrono::steady_clock::now();
    if (const std::string got = Run(sql); got != answer)
      Die(sql + ": not " + answer + "but " + got);
    return {std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(),
            static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC, counted_->bytes};
  }

  // A statement with groups beside the same one, or `by_rows`, without. In turns, so that both meet
  // the same machine.
  void Compare(const std::string& sql, const std::string& answer, const std::string& by_rows = "") {
    std::vector<double> groups, rows, ratios, cpu_ratios;
    uint64_t group_bytes = 0, row_bytes = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Cost of_groups = Measure(sql, answer, true);
      const Cost of_rows = Measure(by_rows.empty() ? sql : by_rows, answer, false);
      groups.push_back(of_groups.seconds);
      rows.push_back(of_rows.seconds);
      ratios.push_back(of_rows.seconds / of_groups.seconds);
      cpu_ratios.push_back(of_rows.cpu / of_groups.cpu);
      group_bytes = of_groups.bytes;
      row_bytes = of_rows.bytes;
    }
    for (auto* figures : {&groups, &rows, &ratios, &cpu_ratios}) std::ranges::sort(*figures);
    constexpr int kMiddle = kRounds / 2;
    std::printf(
        "  %s\n    %.1f ms against %.1f: 1/%.1f, 1/%.1f to 1/%.1f (goal 1/5), processor time "
        "1/%.1f; %llu bytes against %llu: 1/%.0f (goal 1/50)\n",
        sql.c_str(), groups[kMiddle] * 1e3, rows[kMiddle] * 1e3, ratios[kMiddle], ratios.front(),
        ratios.back(), cpu_ratios[kMiddle], static_cast<unsigned long long>(group_bytes),
        static_cast<unsigned long long>(row_bytes),
        static_cast<double>(row_bytes) / static_cast<double>(std::max<uint64_t>(group_bytes, 1)));
  }

  const int64_t rows_;
  std::filesystem::path directory_;
  ThreadExecutor executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<CountedCluster> counted_;
  std::shared_ptr<Session> session_;
  sqlite3* db_ = nullptr;
};

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  tamis::Bench(argc > 1 ? std::stoll(argv[1]) : 1'000'000).Aggregates();
  return 0;
}
