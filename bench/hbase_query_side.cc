// One side of hbase_protection_benchmark: routed queries, one after the other, by a coordinator of
// its own. Lines on the standard input:
//
//   prepare             makes the table and its rows
//   open                waits until the coordinator has the filters of all regions
//   search COUNT SEED   queries by the index, each of one row
//   drop                deletes the table
//
// Each is answered by "SECONDS CPU_SECONDS", once all answers were verified; of a search, SECONDS
// is COUNT times the median of one query.
//
//   hbase_query_side SITE ROWS      the hbase-site.xml of the cluster
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/checked.h"
#include "bench/line_side.h"
#include "tamis/base/thread_executor.h"
#include "tamis/hbase/site_file.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/query/engine.h"
#include "tamis/table/key_format.h"
#include "tamis/table/schema_change.h"

namespace tamis {
namespace {

constexpr char kTable[] = "benchmark_queried";
constexpr uint32_t kOwner = 1;
constexpr int kRegions = 24;

class Side {
 public:
  Side(const std::string& site, int64_t rows) : rows_(rows), executor_(4) {
    const auto options = Get(Get(hbase::SiteFile::Read(site)).Complete({}));
    client_ = Get(hbase::Client::Open(options));
    cluster_ = Get(HBaseCluster::Open({.client = options}, &executor_));
  }
  ~Side() {
    engine_.reset();
    executor_.Stop();
    cluster_.reset();
  }

  std::optional<double> Do(const std::string& what, int64_t count, int64_t seed) {
    if (what == "search") return Search(count, seed);
    if (what == "prepare") {
      Prepare();
    } else if (what == "open") {
      Open();
    } else if (what == "drop") {
      engine_.reset();
      Drop();
    } else {
      Die("there is no \"" + what + "\"");
    }
    return {};
  }

 private:
  static std::string OwnerOf(int64_t i) { return "owner " + std::to_string(i * 7919); }
  static Row RowOf(int64_t i) {
    return {Value::Int64(i), Value::Text(OwnerOf(i)), Value::Text(std::string(100, 'd'))};
  }

  void Drop() {
    if (client_->Table(kTable).status().code() == StatusCode::kNotFound) return;
    (void)client_->DisableTable(kTable);  // it is, where a run was stopped in between
    Check(client_->DeleteTable(kTable));
  }

  void Prepare() {
    Drop();
    TableSchema schema;
    schema.name = kTable;
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "owner", .type = Type::kText},
                      {.name = "description", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.name = "owner",
                       .columns = {kOwner},
                       .expected_values = static_cast<uint64_t>(rows_ / kRegions),
                       .seed = 7}};
    schema = Get(NewTable(InCells(std::move(schema)), 1));
    std::vector<std::string> splits;
    for (int i = 1; i < kRegions; ++i) {
      splits.push_back(Get(KeyFormat(schema).Encode(RowOf(rows_ * i / kRegions))));
    }
    Check(client_->CreateTable(DescribeIndexed({.name = kTable}, schema), splits));
    Open();
    for (int64_t i = 0; i < rows_;) {
      std::vector<Write> writes;
      for (; i < rows_ && writes.size() < 1000; ++i) writes.push_back({.row = RowOf(i)});
      for (const Status& status : engine_->Apply(table_, std::move(writes))) Check(status);
    }
  }

  void Open() {
    engine_ = std::make_unique<Engine>(cluster_.get(), &executor_, Engine::Options{});
    table_ = Get(engine_->Table(kTable));
    if (!engine_->WaitUntilRouted(*table_, std::chrono::minutes(5)))
      Die("the filters did not come");
  }

  double Search(int64_t count, int64_t seed) {
    std::vector<double> seconds;
    for (int64_t i = 0; i < count; ++i) {
      const std::string owner = OwnerOf((i * 7919 + seed * 104729) % rows_);
      const auto begin = std::chrono::steady_clock::now();
      RowStream rows = engine_->Search(
          table_,
          {.predicate = Predicate::Compare(kOwner, Predicate::Op::kEq, Value::Text(owner))});
      int found = 0;
      while (const auto row = Get(rows.Next())) found += (*row)[kOwner].str() == owner;
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      if (found != 1) Die("a query found " + std::to_string(found) + " rows");
      seconds.push_back(time.count());
    }
    std::ranges::nth_element(seconds, seconds.begin() + count / 2);
    return seconds[static_cast<size_t>(count / 2)] * static_cast<double>(count);
  }

  const int64_t rows_;
  ThreadExecutor executor_;
  std::unique_ptr<hbase::Client> client_;
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
};

int Main(int argc, char** argv) {
  if (argc != 3) Die("give the hbase-site.xml of an HBase, and a number of rows");
  Side side(argv[1], std::strtoll(argv[2], nullptr, 10));
  AnswerLines([&](const std::string& what, int64_t count, int64_t seed) {
    return side.Do(what, count, seed);
  });
  return 0;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) { return tamis::Main(argc, argv); }
