// One side of hbase_client_benchmark: tamis::hbase. The other one is ClientSide of the
// coprocessor's tests, in Java, which understands the same lines and does the same:
//
//   get COUNT SEED     single gets, many in flight
//   one COUNT SEED     single gets, one after the other
//   put COUNT SEED     batches of puts, some in flight
//   scan               all rows that are there to be read
//   check COUNT SEED   what `put COUNT SEED` wrote is there
//
// Each is answered by "SECONDS CPU_SECONDS", of the process, once all answers were verified. Here
// also: prepare, drop.
//
//   hbase_client_side HOST:PORT,... ROWS     or the hbase-site.xml of the cluster instead of hosts
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/checked.h"
#include "bench/line_side.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/site_file.h"

namespace tamis::hbase {
namespace {

constexpr char kRead[] = "benchmark_read";
constexpr char kWritten[] = "benchmark_written";
constexpr int kRegions = 6;
constexpr int kGetsInFlight = 64;
constexpr int kBatch = 100;
constexpr int kBatchesInFlight = 4;
constexpr size_t kValueBytes = 100;

// Something done `count` times, so many at once.
class Pump {
 public:
  using Start = std::function<void(int64_t, std::function<void()>)>;

  static void Run(int64_t count, int in_flight, Start start) {
    Pump pump(count, std::move(start));
    for (int i = 0; i < in_flight; ++i) pump.Next();
    std::unique_lock lock(pump.mutex_);
    pump.changed_.wait(lock, [&] { return pump.ended_ == count; });
  }

 private:
  Pump(int64_t count, Start start) : count_(count), start_(std::move(start)) {}

  void Next() {
    const int64_t i = begun_++;
    if (i >= count_) return;
    start_(i, [this] {
      Next();
      std::lock_guard lock(mutex_);
      if (++ended_ == count_) changed_.notify_all();
    });
  }

  const int64_t count_;
  const Start start_;
  std::atomic<int64_t> begun_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t ended_ = 0;
};

class Side {
 public:
  Side(const std::string& place, int64_t rows) : rows_(rows) {
    ClientOptions options{.addresses = place};
    if (place.ends_with(".xml")) {
      const auto site = SiteFile::Read(place);
      Check(site.status());
      const auto completed = site->Complete({});
      Check(completed.status());
      options = *completed;
    }
    auto client = Client::Open(std::move(options));
    Check(client.status());
    client_ = *std::move(client);
  }

  void Do(const std::string& what, int64_t count, int64_t seed) {
    if (what == "prepare") return Prepare();
    if (what == "drop") return Drop();
    if (what == "get") return GetSingly(count, seed, kGetsInFlight);
    if (what == "one") return GetSingly(count, seed, 1);
    if (what == "put") return PutBatches(count, seed);
    if (what == "scan") return ScanAll();
    if (what == "check") return CheckWritten(count, seed);
    Die("there is no \"" + what + "\"");
  }

 private:
  static std::string Digits(int64_t i) { return std::to_string(100'000'000 + i).substr(1); }
  static std::string KeyOf(int64_t i) { return "r" + Digits(i); }
  static std::string ValueOf(int64_t i, int64_t seed) {
    std::string value = "row " + Digits(i) + " by " + std::to_string(seed);
    value.resize(kValueBytes, '.');
    return value;
  }
  // No two of the same seed are the same.
  int64_t RowAt(int64_t i, int64_t seed) const { return (i * 7919 + seed * 104729) % rows_; }

  static void Expect(const Row& row, int64_t i, int64_t seed) {
    if (row.Find("f", "q") != ValueOf(i, seed)) Die("row " + KeyOf(i) + " is wrong");
  }

  void Prepare() {
    Drop();
    std::vector<std::string> splits;
    for (int i = 1; i < kRegions; ++i) splits.push_back(KeyOf(rows_ * i / kRegions));
    for (const char* table : {kRead, kWritten}) {
      Check(client_->CreateTable({.name = table, .families = {{.name = "f"}}}, splits));
    }
    for (int64_t i = 0; i < rows_;) {
      std::vector<Mutation> puts;
      for (; i < rows_ && puts.size() < 1000; ++i) {
        puts.push_back(Mutation::Put(KeyOf(i)).Set("f", "q", ValueOf(i, 0)));
      }
      for (const auto& put : client_->Mutate(kRead, std::move(puts), WriteOptions())) {
        Check(put.status());
      }
    }
  }

  void Drop() {
    for (const char* table : {kRead, kWritten}) {
      if (client_->Table(table).status().code() == StatusCode::kNotFound) continue;
      (void)client_->DisableTable(table);  // it is, where a run was stopped in between
      Check(client_->DeleteTable(table));
    }
  }

  void GetSingly(int64_t count, int64_t seed, int in_flight) {
    Pump::Run(count, in_flight, [&](int64_t i, std::function<void()> done) {
      const int64_t row = RowAt(i, seed);
      client_->Get(kRead, {.row = KeyOf(row)},
                   [row, done = std::move(done)](const Result<Row>& got) {
                     Check(got.status());
                     Expect(*got, row, 0);
                     done();
                   });
    });
  }

  void PutBatches(int64_t count, int64_t seed) {
    Pump::Run(count, kBatchesInFlight, [&](int64_t batch, std::function<void()> done) {
      std::vector<Mutation> puts;
      puts.reserve(kBatch);
      for (int64_t i = batch * kBatch; i < (batch + 1) * kBatch; ++i) {
        const int64_t row = RowAt(i, seed);
        puts.push_back(Mutation::Put(KeyOf(row)).Set("f", "q", ValueOf(row, seed)));
      }
      client_->Mutate(kWritten, std::move(puts), WriteOptions(),
                      [done = std::move(done)](const std::vector<Result<Row>>& results) {
                        for (const auto& result : results) Check(result.status());
                        done();
                      });
    });
  }

  void ScanAll() {
    hbase::Scan scan;
    // Like the Java side: an answer is full when it has 2 MB.
    scan.rows_per_call = std::numeric_limits<int32_t>::max();
    const auto stream = client_->Scan(kRead, std::move(scan));
    int64_t i = 0;
    while (true) {
      const auto rows = stream->Next();
      Check(rows.status());
      if (rows->empty()) break;
      for (const Row& row : *rows) Expect(row, i++, 0);
    }
    if (i != rows_) Die("a scan found " + std::to_string(i) + " rows");
  }

  void CheckWritten(int64_t count, int64_t seed) {
    std::vector<hbase::Get> gets;
    std::vector<int64_t> expected;
    for (int64_t i = 0; i < count * kBatch; i += 17) {
      expected.push_back(RowAt(i, seed));
      gets.push_back({.row = KeyOf(expected.back())});
    }
    const auto rows = client_->Get(kWritten, std::move(gets));
    for (size_t i = 0; i < rows.size(); ++i) {
      Check(rows[i].status());
      Expect(*rows[i], expected[i], seed);
    }
  }

  const int64_t rows_;
  std::unique_ptr<Client> client_;
};

int Main(int argc, char** argv) {
  if (argc != 3) Die("give the addresses or the site of an HBase, and a number of rows");
  Side side(argv[1], std::strtoll(argv[2], nullptr, 10));
  AnswerLines([&](const std::string& what, int64_t count, int64_t seed) -> std::optional<double> {
    side.Do(what, count, seed);
    return {};
  });
  return 0;
}

}  // namespace
}  // namespace tamis::hbase

int main(int argc, char** argv) { return tamis::hbase::Main(argc, argv); }
