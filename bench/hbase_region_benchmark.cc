// One large region on a real HBase: how often values are asked for that it has not, how soon a new
// coordinator knows its bits, and how it splits while others write. Requests are counted by the
// servers, answers verified. It makes the table benchmark_region, and deletes it.
//
//   hbase_region_benchmark HOST:PORT,... [ROWS [NOTE_BYTES]]    default 1,000,000 rows, each with a
//                                                               value of its own, and 200 bytes
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cluster/await_job.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_cluster_admin.h"
#include "tamis/query/engine.h"

namespace tamis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kOwner = 1;
constexpr char kTable[] = "benchmark_region";
constexpr int kWriters = 4;
constexpr int kRowsOfAWrite = 500;
constexpr int kQueries = 20'000;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Bench {
 public:
  Bench(const std::string& addresses, int64_t rows, size_t note_bytes)
      : rows_(rows), note_(note_bytes, 'n'), executor_(4) {
    client_ = Get(hbase::Client::Open({.addresses = addresses}));
    cluster_ = Get(HBaseCluster::Open({.client = {.addresses = addresses}}, &executor_));
    HBaseClusterAdmin::Options options;
    options.client.addresses = addresses;
    admin_ = Get(HBaseClusterAdmin::Open(options, cluster_.get(), &executor_));
    engine_ = NewEngine();
  }
  ~Bench() {
    engine_.reset();
    executor_.Stop();
    admin_.reset();
    cluster_.reset();
  }

  void Run() {
    Drop();
    Create();
    Fill();
    Start();
    AskForAbsent();
    Split();
    Verify();
    Drop();
  }

 private:
  template <class T>
  T Ask(const std::function<void(Callback<T>)>& call) {
    return Get(Await<Result<T>>(&executor_, [&](auto done) { call(std::move(done)); }));
  }
  std::unique_ptr<Engine> NewEngine() {
    return std::make_unique<Engine>(cluster_.get(), &executor_, Engine::Options{});
  }

  void Drop() {
    if (client_->Table(kTable).status().code() == StatusCode::kNotFound) return;
    (void)client_->DisableTable(kTable);
    Check(client_->DeleteTable(kTable));
  }

  void Create() {
    TableSchema schema;
    schema.name = kTable;
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "owner", .type = Type::kText},
                      {.name = "note", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {
        {.name = "owner", .columns = {kOwner}, .expected_values = static_cast<uint64_t>(rows_)}};
    fpr_ = schema.indexes[0].fpr;
    table_ = std::make_shared<const TableSchema>(
        Ask<TableSchema>([&](auto done) { admin_->CreateTable(schema, std::move(done)); }));
  }

  Row RowOf(int64_t i) const {
    return {Value::Int64(i), Value::Text("owner " + std::to_string(i)), Value::Text(note_)};
  }

  // The rows of these numbers, one number in two, until `end`, or `stop`.
  void Write(bool odd, std::atomic<int64_t>* next, int64_t end, const std::atomic<bool>& stop) {
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([&] {
        while (!stop) {
          const int64_t first = next->fetch_add(kRowsOfAWrite);
          if (first >= end) break;
          std::vector<tamis::Write> writes;
          for (int64_t i = first; i < std::min(end, first + kRowsOfAWrite); ++i) {
            // Spread over the whole region.
            const int64_t spread = odd ? i * 7919 % rows_ : i;
            writes.push_back({.row = RowOf(2 * spread + (odd ? 1 : 0))});
          }
          for (const Status& status : engine_->Apply(table_, std::move(writes))) {
            // While a region splits there are moments at which no server has it.
            const bool away = status.code() == StatusCode::kDeadlineExceeded ||
                              status.code() == StatusCode::kUnavailable;
            if (odd && away) continue;
            Check(status);
            ++written_;
          }
        }
      });
    }
    for (auto& writer : writers) writer.join();
  }

  void Fill() {
    const auto start = Clock::now();
    std::atomic<int64_t> next = 0;
    Write(/*odd=*/false, &next, rows_, std::atomic<bool>(false));
    for (const auto& region : Get(client_->Regions(kTable))) Check(client_->FlushRegion(*region));
    std::printf("%lld rows, each with a value of its own, in one region: %.0f rows/s\n",
                static_cast<long long>(rows_), static_cast<double>(rows_) / Since(start));
  }

  void Start() {
    engine_.reset();
    const auto start = Clock::now();
    engine_ = NewEngine();
    if (!engine_->WaitUntilRouted(*Get(engine_->Table(kTable)), std::chrono::minutes(5))) {
      Die("the filters did not come");
    }
    std::printf("a coordinator has its bits, %.0f KB, %.2f s after its start\n",
                static_cast<double>(engine_->knowledge().filter_bytes) / 1e3, Since(start));
  }

  uint64_t Requests() {
    uint64_t requests = 0;
    const auto status = Ask<ClusterStatus>([&](auto done) { admin_->GetStatus(std::move(done)); });
    for (const ServerStatus& server : status.servers) requests += server.searches;
    return requests;
  }

  uint64_t Find(const std::string& owner) {
    RowStream rows = engine_->Search(
        table_, {.predicate = Predicate::Compare(kOwner, Predicate::Op::kEq, Value::Text(owner))});
    uint64_t count = 0;
    while (Get(rows.Next())) ++count;
    if (rows.explain().regions_asked > 0) ++searches_sent_;
    return count;
  }
  void FindAbsent() {
    // Between others: what is before or after all of them needs no filter.
    ++asked_;
    const std::string owner =
        "owner " + std::to_string(asked_ % rows_) + " and " + std::to_string(asked_);
    if (Find(owner) != 0) Die("a search found what is not there");
  }

  void AskForAbsent() {
    const uint64_t before = Requests();
    for (int i = 0; i < kQueries; ++i) FindAbsent();
    const auto asked = static_cast<double>(Requests() - before);
    std::printf(
        "%d values that it has not: %.0f requests, %.3f %%; the filter was made for %.3f %%\n",
        kQueries, asked, 100 * asked / kQueries, 100 * fpr_);
    Report({.work = Printed("searches for absent values that ask a region of %lld values",
                            static_cast<long long>(rows_)),
            .beside = Printed("the configured rate of %.3f %%", 100 * fpr_),
            .ratio = Printed("%.3f %%", 100 * asked / kQueries)});
    for (int i = 0; i < 200; ++i) {
      const auto row = static_cast<int64_t>(random_.Uniform(static_cast<uint64_t>(rows_)));
      if (Find("owner " + std::to_string(2 * row)) != 1) Die("a row is missed");
    }
  }

  std::vector<RegionInfo> Regions() {
    return Ask<std::vector<RegionInfo>>(
        [&](auto done) { cluster_->ListRegions(kTable, {}, std::move(done)); });
  }

  // While others write new rows with new values into either half.
  void Split() {
    const auto regions = Regions();
    if (regions.size() != 1) Die("the region has split by itself");
    std::atomic<bool> stop = false;
    std::atomic<int64_t> next = 0;
    std::thread writer([&] { Write(/*odd=*/true, &next, rows_, stop); });
    const auto start = Clock::now();
    std::atomic<bool> split = false;
    std::atomic<double> split_after = 0;
    admin_->SplitRegion(regions[0].id, "", [&](const Status& status) {
      Check(status);
      split_after = Since(start);
      split = true;
    });
    // For values that no row has: how long some of them were asked for at regions again.
    double last_asked = 0;
    uint64_t sent = 0;
    uint64_t queries = 0;
    double complete_after = 0;
    const uint64_t requests_before = Requests();
    while (complete_after == 0) {
      const uint64_t before = searches_sent_;
      constexpr int kLook = 200;
      for (int i = 0; i < kLook; ++i) FindAbsent();
      const uint64_t asked = searches_sent_ - before;
      queries += kLook;
      sent += asked;
      // Some are false positives.
      if (static_cast<double>(asked) > 3 + 3 * fpr_ * kLook) last_asked = Since(start);
      if (Since(start) > 900) Die("the index of the upper half is never complete");
      if (!split) continue;
      const auto progress = Ask<IndexProgress>(
          [&](auto done) { admin_->GetIndexProgress(kTable, "owner", std::move(done)); });
      if (progress.regions == 2 && progress.complete == 2) complete_after = Since(start);
    }
    const uint64_t requests = Requests() - requests_before;
    stop = true;
    writer.join();
    const int64_t meanwhile = written_ - rows_;
    uint64_t bytes = 0;
    for (const RegionInfo& region : Regions()) bytes += region.size_bytes;
    std::printf(
        "split of a region of %.0f MB, %lld new rows written meanwhile: two regions after %.1f s, "
        "all entries of the upper one after %.1f s\n"
        "%llu values that nobody has, meanwhile: %llu searches sent, %.3f %%, more than false "
        "positives until %.1f s; %llu requests, since the upper half is scanned page by page\n",
        static_cast<double>(bytes) / 1e6, static_cast<long long>(meanwhile), split_after.load(),
        complete_after, static_cast<unsigned long long>(queries),
        static_cast<unsigned long long>(sent),
        100 * static_cast<double>(sent) / static_cast<double>(queries), last_asked,
        static_cast<unsigned long long>(requests));
    Report({.work = Printed("split of a region of %.0f MB while it is written: until the upper "
                            "daughter has all entries",
                            static_cast<double>(bytes) / 1e6),
            .now = Printed("two regions after %.1f s", split_after.load()),
            .ratio = Printed("%.1f s", complete_after),
            .goal = "<= 30 s"});
    Report({.work = "searches for absent values that ask a region meanwhile",
            .now = Printed("%llu searches, %llu requests", static_cast<unsigned long long>(sent),
                           static_cast<unsigned long long>(requests)),
            .ratio = Printed("%.3f %%",
                             100 * static_cast<double>(sent) / static_cast<double>(queries))});
  }

  void Verify() {
    const JobInfo info = Get(AwaitJob(admin_.get(), &executor_, Wait{},
                                      {.kind = JobSpec::Kind::kCheck, .table = kTable}));
    if (!info.check.ok()) Die("the check found faults: " + info.check.ToString());
    std::printf("checked: %llu rows, %llu entries and filter lookups, no fault\n",
                static_cast<unsigned long long>(info.check.rows),
                static_cast<unsigned long long>(info.check.entries));
  }

  const int64_t rows_;
  const std::string note_;
  double fpr_ = 0;
  ThreadExecutor executor_;
  std::unique_ptr<hbase::Client> client_;
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<HBaseClusterAdmin> admin_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
  Random random_{7};
  int64_t asked_ = 0;
  uint64_t searches_sent_ = 0;
  std::atomic<int64_t> written_ = 0;  // rows
};

int Main(int argc, char** argv) {
  if (argc < 2) Die("give the addresses of an HBase: HOST:PORT,...");
  const auto number = [&](int i, int64_t otherwise) {
    return argc > i ? std::strtoll(argv[i], nullptr, 10) : otherwise;
  };
  Bench(argv[1], number(2, 1'000'000), static_cast<size_t>(number(3, 200))).Run();
  return 0;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) { return tamis::Main(argc, argv); }
