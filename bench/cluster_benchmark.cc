// The embedded cluster against what it replaces, in one run: answers are verified, ratios are what
// counts.
//
//   cluster_benchmark [ROWS [PART]]      default 64,000 and all; a part is tables or puts
#include <rocksdb/db.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <thread>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr int kRegions = 64;
constexpr int64_t kBatch = 1000;
constexpr size_t kRounds = 15;

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Times of the whole process, including RocksDB's background work.
struct Times {
  double wall = 0;
  double cpu = 0;
};

Times Measure(const std::function<void()>& work) {
  const std::clock_t cpu = std::clock();
  const double wall = Seconds(work);
  return {wall, static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC};
}

double Median(int runs, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) times.push_back(Seconds(work));
  std::ranges::sort(times);
  return times[times.size() / 2];
}

TableSchema Definition(const std::string& name, int indexes) {
  TableSchema schema;
  schema.name = name;
  schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                    {.name = "owner", .type = Type::kText},
                    {.name = "size", .type = Type::kInt64},
                    {.name = "section", .type = Type::kText},
                    {.name = "description", .type = Type::kText}};
  schema.key = {0};
  for (uint32_t column = 1; column <= static_cast<uint32_t>(indexes); ++column) {
    schema.indexes.push_back(
        {.name = schema.columns[column].name, .columns = {column}, .expected_values = 2000});
  }
  return schema;
}

// Every owner has four rows beside each other: they lie in one region.
Row RowOf(int64_t i) {
  return {Value::Int64(i), Value::Text("owner " + std::to_string(i / 4)),
          Value::Int64(static_cast<int64_t>(Mix(static_cast<uint64_t>(i)) % 1'000'000)),
          Value::Text("section " + std::to_string(i % 40)),
          Value::Text(std::string(200, static_cast<char>('a' + i % 26)))};
}

class Bench {
 public:
  explicit Bench(int64_t rows) : rows_(rows), executor_(4) {
    directory_ = std::filesystem::temp_directory_path() / "tamis_cluster_benchmark";
    std::filesystem::remove_all(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_ / "store";
    std::filesystem::create_directories(directory_);
    options.server.split_bytes = 0;
    auto cluster = RocksCluster::Open(options, &executor_);
    if (!cluster.ok()) Die(cluster.status().ToString());
    cluster_ = std::move(*cluster);
    engine_ = std::make_unique<Engine>(cluster_.get(), &executor_, Engine::Options{});
  }
  ~Bench() {
    executor_.Stop();
    engine_.reset();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  // One part, or all when it is empty.
  void Run(const std::string& part) {
    if (!part.empty() && part != "tables" && part != "puts")
      Die("no part \"" + part + "\": tables or puts");
    if (part != "puts") {
      Import();
      Queries();
    }
    if (part != "tables") SinglePuts();
  }

 private:
  SchemaPtr Create(const std::string& name, int indexes) {
    auto made = Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(Definition(name, indexes), done); });
    if (!made.ok()) Die(made.status().ToString());
    return *engine_->Table(name);
  }

  // Splits the table at even keys, spread over the servers.
  void Split(const SchemaPtr& table) {
    for (int i = 1; i < kRegions; ++i) {
      Row row(table->columns.size());
      row[0] = Value::Int64(rows_ * i / kRegions);
      const std::string key = EncodeKey(*table, row);
      auto regions = Await<Result<std::vector<RegionInfo>>>(
          &executor_, [&](auto done) { cluster_->ListRegions(table->name, {}, done); });
      for (const RegionInfo& region : *regions) {
        if (!region.Contains(key)) continue;
        const Status status = Await<Status>(
            &executor_, [&](auto done) { cluster_->SplitRegion(region.id, key, done); });
        if (!status.ok()) Die(status.ToString());
      }
    }
    (void)Await<Result<uint64_t>>(&executor_, [&](auto done) { cluster_->Balance(done); });
  }

  void Import() {
    table_ = Create("rows", 3);
    Split(table_);
    // Nothing of what went before is under way any more.
    while (cluster_->pending_work() > 0) Sleep(&executor_, std::chrono::milliseconds(5));
    if (!engine_->WaitUntilRouted(*table_, std::chrono::seconds(120)))
      Die("the filters did not come");
    std::vector<std::vector<Write>> batches;
    for (int64_t i = 0; i < rows_; i += kBatch) {
      std::vector<Write>& batch = batches.emplace_back();
      for (int64_t j = i; j < std::min<int64_t>(rows_, i + kBatch); ++j)
        batch.push_back({.row = RowOf(j)});
    }
    // The same rows and entries, straight to RocksDB, in turns: of one work done twice, a round may
    // take twice as long as another where the machine has something else to do.
    Store::Options options;
    options.directory = directory_ / "straight";
    auto store = Store::Open(options);
    if (!store.ok()) Die(store.status().ToString());
    const size_t rounds = std::min<size_t>(kRounds, batches.size());
    std::vector<double> ours, straight, ratios, cpu_ratios;
    for (size_t round = 0; round < rounds; ++round) {
      const size_t begin = batches.size() * round / rounds;
      const size_t end = batches.size() * (round + 1) / rounds;
      const double per_batch = 1.0 / static_cast<double>(end - begin);
      const Times put = Measure([&] {
        for (size_t i = begin; i < end; ++i) Put(std::move(batches[i]));
      });
      const Times write = Measure([&] {
        for (size_t i = begin; i < end; ++i) WriteStraight(store->get(), static_cast<int64_t>(i));
      });
      ours.push_back(put.wall * per_batch);
      straight.push_back(write.wall * per_batch);
      ratios.push_back(put.wall / write.wall);
      cpu_ratios.push_back(put.cpu / write.cpu);
    }
    for (auto* figures : {&ours, &straight, &ratios, &cpu_ratios}) std::ranges::sort(*figures);
    const size_t middle = rounds / 2;
    std::printf(
        "batch import, 3 indexes: %.0f rows/s; straight to RocksDB %.0f rows/s; time %.2fx, %.2f "
        "to %.2f in %zu rounds (goal <= 1.6x); processor time %.2fx\n",
        kBatch / ours[middle], kBatch / straight[middle], ratios[middle], ratios.front(),
        ratios.back(), rounds, cpu_ratios[middle]);
    Report({.work = "batch import, 3 indexes",
            .beside = "the same written straight to RocksDB",
            .now = Printed("%.0f rows/s; %.0f rows/s", kBatch / ours[middle],
                           kBatch / straight[middle]),
            .ratio = Printed("%.2fx", ratios[middle]),
            .goal = "<= 1.6x"});
  }

  void Put(std::vector<Write> batch) {
    for (const Status& status : engine_->Apply(table_, std::move(batch))) {
      if (!status.ok()) Die(status.ToString());
    }
  }

  void WriteStraight(Store* store, int64_t number) {
    rocksdb::WriteBatch batch;
    for (int64_t i = number * kBatch; i < std::min<int64_t>(rows_, (number + 1) * kBatch); ++i) {
      const Row row = RowOf(i);
      const std::string key = EncodeKey(*table_, row);
      batch.Put(store->rows(), RowStoreKey(table_->id, key), EncodeRow(*table_, row));
      for (const IndexSpec& index : table_->indexes) {
        batch.Put(store->index(), IndexEntry::Of(*table_, index, row)->StoreKey(1, index.id, key),
                  "");
      }
    }
    if (!store->Write(&batch).ok()) Die("cannot write");
  }

  Explain Query(bool filters, bool indexes, int64_t owner) {
    SearchOptions options;
    options.predicate =
        Predicate::Compare(1, Predicate::Op::kEq, Value::Text("owner " + std::to_string(owner)));
    options.use_filters = filters;
    options.use_indexes = indexes;
    RowStream rows = engine_->Search(table_, std::move(options));
    int found = 0;
    while (true) {
      auto row = rows.Next();
      if (!row.ok()) Die(row.status().ToString());
      if (!row->has_value()) break;
      if ((**row)[0].int64() / 4 != owner) Die("a wrong row");
      ++found;
    }
    if (found != 4) Die("an owner has " + std::to_string(found) + " rows, not 4");
    return rows.explain();
  }

  void Queries() {
    if (!engine_->WaitUntilRouted(*table_, std::chrono::seconds(120)))
      Die("the filters did not come");
    Random random(1);
    const int64_t owners = rows_ / 4;
    Explain routed, all, scan;
    const auto next = [&] {
      return static_cast<int64_t>(random.Uniform(static_cast<uint64_t>(owners)));
    };
    constexpr int kQueries = 500;
    const double routed_time = Median(5,
                                      [&] {
                                        for (int i = 0; i < kQueries; ++i)
                                          routed.Add(Query(true, true, next()));
                                      }) /
                               kQueries;
    const double all_time = Median(5,
                                   [&] {
                                     for (int i = 0; i < kQueries; ++i)
                                       all.Add(Query(false, true, next()));
                                   }) /
                            kQueries;
    const double scan_time = Median(3, [&] { scan.Add(Query(false, false, next())); });
    std::printf(
        "equality, value in 1 of %d regions: %.0f us routed, %.0f us asking all regions: %.1fx "
        "(goal >= 3x)\n",
        kRegions, routed_time * 1e6, all_time * 1e6, all_time / routed_time);
    Report({.work = Printed("equality, value in 1 of %d regions", kRegions),
            .beside = "asking all regions",
            .now = Printed("%.0f us; %.0f us", routed_time * 1e6, all_time * 1e6),
            .ratio = Printed("%.1fx", all_time / routed_time),
            .goal = ">= 3x"});
    Report({.work = "the same, seeks in indexes",
            .beside = "asking all regions",
            .now = Printed("%.2f; %.2f", static_cast<double>(routed.index_seeks) / (5 * kQueries),
                           static_cast<double>(all.index_seeks) / (5 * kQueries)),
            .ratio = Printed("%.1fx", static_cast<double>(all.index_seeks) /
                                          static_cast<double>(routed.index_seeks)),
            .goal = ">= 8x"});
    Report({.work = "the same",
            .beside = "a scan of the table",
            .now = Printed("%.0f us; %.0f us", routed_time * 1e6, scan_time * 1e6),
            .ratio = Printed("%.0fx", scan_time / routed_time),
            .goal = ">= 100x"});
    std::printf(
        "  servers asked %.3f a query, regions %.3f, false positives %.4f; index seeks %.2f "
        "against %.2f: %.1fx fewer (goal >= 8x)\n",
        static_cast<double>(routed.servers_asked) / (5 * kQueries),
        static_cast<double>(routed.regions_asked) / (5 * kQueries),
        static_cast<double>(routed.false_positive_regions) / (5 * kQueries),
        static_cast<double>(routed.index_seeks) / (5 * kQueries),
        static_cast<double>(all.index_seeks) / (5 * kQueries),
        static_cast<double>(all.index_seeks) / static_cast<double>(routed.index_seeks));
    std::printf("  full scan with filter: %.0f us: %.0fx (goal >= 100x)\n", scan_time * 1e6,
                scan_time / routed_time);
  }

  void SinglePuts() {
    constexpr int kThreads = 8;
    constexpr int64_t kPuts = 2000;  // a thread and round
    const SchemaPtr table = Create("single", 1);
    const auto in_threads = [&](size_t round, const std::function<void(int64_t)>& put) {
      return Measure([&] {
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) {
          threads.emplace_back([&, t] {
            for (int64_t i = 0; i < kPuts; ++i)
              put((static_cast<int64_t>(round) * kPuts + i) * kThreads + t);
          });
        }
        for (auto& thread : threads) thread.join();
      });
    };
    const auto put = [&](int64_t i) {
      for (const Status& status : engine_->Apply(table, {{.row = RowOf(i)}})) {
        if (!status.ok()) Die(status.ToString());
      }
    };
    Store::Options options;
    options.directory = directory_ / "single";
    auto store = Store::Open(options);
    if (!store.ok()) Die(store.status().ToString());
    const auto write = [&](int64_t i) {
      const Row row = RowOf(i);
      const std::string key = EncodeKey(*table, row);
      rocksdb::WriteBatch batch;
      batch.Put((*store)->rows(), RowStoreKey(table->id, key), EncodeRow(*table, row));
      batch.Put((*store)->index(),
                IndexEntry::Of(*table, table->indexes[0], row)->StoreKey(1, 1, key), "");
      if (!(*store)->Write(&batch).ok()) Die("cannot write");
    };
    // In turns, so that both meet the same machine.
    std::vector<double> ours, straight, ratios, cpu_ratios;
    for (size_t round = 0; round < kRounds; ++round) {
      const Times puts = in_threads(round, put);
      const Times writes = in_threads(round, write);
      ours.push_back(puts.wall);
      straight.push_back(writes.wall);
      ratios.push_back(writes.wall / puts.wall);
      cpu_ratios.push_back(writes.cpu / puts.cpu);
    }
    for (auto* figures : {&ours, &straight, &ratios, &cpu_ratios}) std::ranges::sort(*figures);
    std::printf(
        "single puts, 1 index, acknowledged, %d threads: %.0f/s; rocksdb::DB::Write of the same "
        "%.0f/s: %.2fx, %.2f to %.2f in %zu rounds (goal >= 0.6x); by processor time %.2fx\n",
        kThreads, kThreads * kPuts / ours[kRounds / 2], kThreads * kPuts / straight[kRounds / 2],
        ratios[kRounds / 2], ratios.front(), ratios.back(), kRounds, cpu_ratios[kRounds / 2]);
    Report({.work = Printed("single puts, 1 index, acknowledged, %d threads", kThreads),
            .beside = "rocksdb::DB::Write of the same",
            .now = Printed("%.0f/s; %.0f/s", kThreads * kPuts / ours[kRounds / 2],
                           kThreads * kPuts / straight[kRounds / 2]),
            .ratio = Printed("%.2fx", ratios[kRounds / 2]),
            .goal = ">= 0.6x"});
  }

  const int64_t rows_;
  std::filesystem::path directory_;
  ThreadExecutor executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
};

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  tamis::Bench(argc > 1 ? std::stoll(argv[1]) : 64'000).Run(argc > 2 ? argv[2] : "");
  return 0;
}
