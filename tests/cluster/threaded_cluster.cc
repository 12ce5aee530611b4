#include "tests/cluster/threaded_cluster.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"
#include "tests/cluster/layout.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/row_history.h"
#include "tests/cluster/sql_client.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kServers = 5;
constexpr int kExecutorThreads = 4;
constexpr size_t kMaxRegions = 10;
constexpr int kMostAsleep = 2;        // servers killed or paused at a time
constexpr uint64_t kEventEvery = 12;  // operations
constexpr int kSettlingTries = 1500;

class ThreadedCluster {
 public:
  explicit ThreadedCluster(const ThreadedClusterOptions& options)
      : options_(options), executor_(kExecutorThreads) {
    std::filesystem::remove_all(options_.directory);
    OpenCluster();
    if (failed_) return;
    for (auto& engine : engines_) engine = StartEngine();
    CreateTable();
    for (int i = 0; i < options_.clients && !failed_; ++i) OpenSql(*engines_[i % engines_.size()]);
  }

  ~ThreadedCluster() {
    sql_.clear();
    executor_.Stop();
    for (auto& engine : engines_) engine.reset();
    cluster_.reset();
    std::filesystem::remove_all(options_.directory);
  }

  RandomClusterResult Run() {
    if (!failed_) {
      std::vector<std::thread> clients;
      for (int i = 0; i < options_.clients; ++i) clients.emplace_back([this, i] { Client(i); });
      std::vector<std::thread> others;
      others.emplace_back([this] { RegionEvents(); });
      others.emplace_back([this] { ServerAndIndexEvents(); });
      others.emplace_back([this] { ComingAndGoingCoordinator(); });
      for (auto& client : clients) client.join();
      EndOperations();
      for (auto& other : others) other.join();
    }
    if (!failed_) Settle();
    RandomClusterResult result;
    result.operations = operations_;
    std::lock_guard lock(mutex_);
    result.failure = failure_;
    result.counts = counts_;
    return result;
  }

 private:
  Random RandomOf(uint64_t thread) const { return Random(Mix(options_.seed * 1000 + thread)); }

  void Fail(const std::string& what) {
    std::lock_guard lock(mutex_);
    if (!failure_.has_value()) failure_ = what + " (seed " + std::to_string(options_.seed) + ")";
    failed_ = true;
    progress_.notify_all();
  }

  void Count(const std::string& what) {
    std::lock_guard lock(mutex_);
    ++counts_[what];
  }

  // ---- The cluster

  void OpenCluster() {
    RocksCluster::Options options;
    options.store.directory = options_.directory;
    options.servers = kServers;
    options.session_timeout = milliseconds(500);
    options.operation_timeout = seconds(5);
    options.balance = false;
    options.seed = options_.seed;
    options.server.feed.lease = milliseconds(200);
    options.server.proof_term = milliseconds(400);
    options.server.heartbeat_interval = milliseconds(100);
    options.server.write_timeout = seconds(3);
    options.server.split_bytes = 0;
    options.server.build_rows = 16;
    options.server.rebuild_after_ignored = 200;
    options.server.faults = options_.faults;
    auto cluster = RocksCluster::Open(options, &executor_);
    if (!cluster.ok()) return Fail("cannot open the cluster: " + cluster.status().ToString());
    cluster_ = std::move(*cluster);
  }

  void CreateTable() {
    auto made = Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(RandomRows::Schema(), done); });
    if (!made.ok()) return Fail("cannot create the table: " + made.status().ToString());
    table_ = std::make_shared<const TableSchema>(*made);
  }

  std::unique_ptr<Engine> StartEngine() {
    Engine::Options options;
    options.poll_wait = milliseconds(100);
    options.request_timeout = seconds(1);
    options.write_timeout = seconds(15);
    options.seed = Mix(options_.seed) + ++engines_started_;
    options.faults = options_.faults;
    return std::make_unique<Engine>(cluster_.get(), &executor_, options);
  }

  // One a client.
  void OpenSql(Engine& engine) {
    auto client = SqlClient::Open(&engine);
    if (!client.ok()) return Fail("cannot open SQLite: " + client.status().ToString());
    sql_.push_back(std::move(*client));
  }

  // ---- Progress: what paces the events

  bool BeginOperation() {
    if (failed_) return false;
    const bool more = operations_.fetch_add(1) < options_.operations;
    if (!more) operations_.fetch_sub(1);
    if (operations_ % kEventEvery == 0 || !more) {
      std::lock_guard lock(mutex_);
      progress_.notify_all();
    }
    return more;
  }
  void EndOperations() {
    std::lock_guard lock(mutex_);
    over_ = true;
    progress_.notify_all();
  }
  // Waits until so many operations have begun since *seen. False at the end of the run.
  bool AwaitOperations(uint64_t* seen, uint64_t more) {
    std::unique_lock lock(mutex_);
    progress_.wait(lock, [&] { return over_ || failed_ || operations_ >= *seen + more; });
    *seen = operations_;
    return !over_ && !failed_;
  }

  // ---- Clients

  // Client i alone writes the rows whose key modulo the number of clients is i.
  void Client(int i) {
    Random random = RandomOf(static_cast<uint64_t>(i));
    RandomRows rows(&random);
    SqlClient& sql = *sql_[static_cast<size_t>(i)];
    while (BeginOperation()) {
      Engine& engine = *engines_[random.Uniform(engines_.size())];
      if (random.OneIn(8)) {
        WriteBySql(i, sql, rows);
      } else if (random.OneIn(10)) {
        SearchBySql(sql, random, rows);
      } else if (random.OneIn(2)) {
        const std::vector<int64_t> acknowledged = WriteSome(i, engine, random, rows);
        // Whoever asks now must find them, by any coordinator.
        for (const int64_t key : acknowledged) {
          if (random.OneIn(2)) SearchFor(key, *engines_[random.Uniform(engines_.size())], rows);
        }
      } else {
        SearchAny(engine, random, rows);
      }
    }
  }

  std::vector<int64_t> WriteSome(int client, Engine& engine, Random& random, RandomRows& rows) {
    const size_t wanted = random.OneIn(3) ? 1 + random.Uniform(8) : 1;
    std::map<int64_t, RandomWrite> drawn;
    for (size_t i = 0; i < wanted; ++i) {
      const int64_t key = OwnKey(client, rows);
      if (history_.IsUnknown(key) || drawn.contains(key)) continue;
      drawn.emplace(key, rows.RandomWriteOf(key, history_.Sure(key)));
    }
    auto schema = engine.Table("t");
    if (!schema.ok()) {
      Fail("no schema: " + schema.status().ToString());
      return {};
    }
    std::vector<Write> writes;
    for (const auto& [key, write] : drawn) {
      history_.Begin(key, write.after);
      writes.push_back(write.write);
      Count(write.kind);
    }
    const std::vector<Status> statuses = engine.Apply(*schema, std::move(writes));
    std::vector<int64_t> acknowledged;
    size_t i = 0;
    for (const auto& [key, write] : drawn) {
      if (TakeAnswer(key, write, statuses[i++])) acknowledged.push_back(key);
    }
    return acknowledged;
  }

  void WriteBySql(int client, SqlClient& sql, RandomRows& rows) {
    const int64_t key = OwnKey(client, rows);
    if (history_.IsUnknown(key)) return;
    const RandomWrite drawn = rows.RandomWriteOf(key, history_.Sure(key));
    history_.Begin(key, drawn.after);
    Count("writes through SQL");
    TakeAnswer(key, drawn, sql.Apply(*table_, drawn.write));
  }

  int64_t OwnKey(int client, RandomRows& rows) const {
    return rows.RandomKey() / options_.clients * options_.clients + client;
  }

  // True when the write was done.
  bool TakeAnswer(int64_t key, const RandomWrite& write, const Status& status) {
    const StatusCode code = status.code();
    if (code == StatusCode::kDeadlineExceeded) {
      history_.Unknown(key);
      Count("writes unknown");
    } else if (code == StatusCode::kUnavailable || code == StatusCode::kBusy) {
      history_.Refuse(key);
      Count("writes refused");
    } else if (code != write.answer) {
      Fail("a write of row " + std::to_string(key) + " (" + write.kind + ") was answered with " +
           status.ToString() + "; the row stands as " + RowStateText(history_.Sure(key)));
    } else if (code == StatusCode::kOk) {
      history_.Acknowledge(key);
      Count("writes acknowledged");
      return true;
    } else {
      history_.Refuse(key);
      Count("writes not done by condition");
    }
    return false;
  }

  void SearchFor(int64_t key, Engine& engine, RandomRows& rows) {
    const RowState sure = history_.Sure(key);
    SearchOptions options;
    if (sure.has_value()) {
      options.predicate = rows.ProbeOf(*sure);
    } else {
      options.predicate =
          Predicate::Compare(RandomRows::kId, Predicate::Op::kEq, Value::Int64(key));
    }
    Count("searches for a row just acknowledged");
    Check(engine, std::move(options));
  }

  void SearchAny(Engine& engine, Random& random, RandomRows& rows) {
    SearchOptions options;
    options.predicate = rows.RandomPredicate(history_.Sure(rows.RandomKey()));
    options.key_order = random.OneIn(10);
    options.use_indexes = !random.OneIn(30);
    if (random.OneIn(25)) options.limit = 1 + random.Uniform(5);
    Check(engine, std::move(options));
  }

  void SearchBySql(SqlClient& sql, Random& random, RandomRows& rows) {
    SearchOptions options;
    options.predicate = rows.RandomPredicate(history_.Sure(rows.RandomKey()));
    options.key_order = random.OneIn(10);
    const RowHistory::Mark mark = history_.Now();
    auto found = sql.Search(*table_, options);
    if (!found.ok()) return Fail("a search through SQL failed: " + found.status().ToString());
    Count("searches through SQL");
    const Answer answer{.predicate = options.predicate,
                        .key_order = options.key_order,
                        .one_instant = sql.searches().size() == 1,
                        .rows = std::move(*found)};
    const auto fault = answer.FindFault(*table_, history_.Since(mark));
    if (fault.has_value()) Fail(fault->what + "\nby SQL: " + SqlOf(*table_, options));
  }

  void Check(Engine& engine, SearchOptions options) {
    auto schema = engine.Table("t");
    if (!schema.ok()) return Fail("no schema: " + schema.status().ToString());
    Answer answer{
        .predicate = options.predicate, .limit = options.limit, .key_order = options.key_order};
    const RowHistory::Mark mark = history_.Now();
    RowStream stream = engine.Search(*schema, std::move(options));
    while (true) {
      auto row = stream.Next();
      if (!row.ok()) {
        Count("searches out of time");
        if (row.status().code() == StatusCode::kDeadlineExceeded) return;
        return Fail("a search failed: " + row.status().ToString());
      }
      if (!row->has_value()) break;
      answer.rows.push_back(std::move(**row));
    }
    const Explain& explain = stream.explain();
    Count("searches");
    if (explain.regions_asked < explain.regions_total) Count("searches that left regions out");
    const auto fault = answer.FindFault(*table_, history_.Since(mark));
    if (!fault.has_value()) return;
    const RowState row = fault->missed.has_value() ? history_.Sure(*fault->missed) : RowState();
    Fail(fault->what + Layout(*cluster_, *table_, row) + "\n" + explain.ToText());
  }

  // ---- Events

  void RegionEvents() {
    Random random = RandomOf(100);
    RandomRows rows(&random);
    uint64_t seen = 0;
    while (AwaitOperations(&seen, 1 + random.Uniform(2 * kEventEvery))) {
      const auto regions = cluster_->catalog().Regions(table_->id);
      const RegionId region(regions[random.Uniform(regions.size())].id());
      switch (random.Uniform(4)) {
        case 0:
          if (regions.size() < kMaxRegions) {
            const Row row = RandomRows::KeyRow(rows.RandomKey());
            cluster_->SplitRegion(region, random.OneIn(3) ? "" : EncodeKey(*table_, row),
                                  Order("splits"));
          }
          break;
        case 1:
          if (regions.size() > 2) cluster_->MergeRegion(region, Order("merges"));
          break;
        default:
          cluster_->MoveRegion(region, RandomServer(random), Order("moves"));
      }
    }
  }

  void ServerAndIndexEvents() {
    Random random = RandomOf(101);
    std::set<std::string> asleep;
    uint64_t seen = 0;
    while (AwaitOperations(&seen, 1 + random.Uniform(3 * kEventEvery))) {
      const std::string server = RandomServer(random);
      const bool may_sleep = asleep.size() < kMostAsleep && !asleep.contains(server);
      switch (random.Uniform(10)) {
        case 0:
          if (!may_sleep || !cluster_->Kill(server).ok()) break;
          asleep.insert(server);
          Count("server kills");
          break;
        case 1:
          if (!may_sleep || !cluster_->Pause(server).ok()) break;
          asleep.insert(server);
          Count("server pauses");
          break;
        case 2:
        case 3:
        case 4:
          if (asleep.empty()) break;
          (void)cluster_->Resume(*asleep.begin());
          asleep.erase(asleep.begin());
          Count("server resumptions");
          break;
        case 5:
          // Not an order: nobody answers when a server dies meanwhile.
          cluster_->RebuildIndex("t", "", [this](const Status& status) {
            if (status.ok()) Count("index rebuilds");
          });
          break;
        case 6:
          if (cluster_->Compact().ok()) Count("compactions");
          break;
        case 7:
          engines_[random.Uniform(engines_.size())]->ForgetTable("t");
          break;
        default:
          ToggleIndex(random);
      }
    }
    for (const std::string& server : asleep) (void)cluster_->Resume(server);
  }

  void ToggleIndex(Random& random) {
    const IndexSpec index = random.OneIn(3) ? RandomRows::IndexOnName() : RandomRows::IndexOnBoth();
    const auto schema = cluster_->catalog().Table(table_->id);
    const bool there = schema->FindIndex(index.name) != nullptr;
    DoneCallback done = Order(there ? "index drops" : "index creations");
    const auto changed = [done](Result<TableSchema> result) {
      done(result.ok() ? Status::Ok() : result.status());
    };
    if (there) {
      cluster_->DropIndex("t", index.name, changed);
    } else {
      cluster_->CreateIndex("t", index, changed);
    }
  }

  // Knows nothing at first, learns, and is gone.
  void ComingAndGoingCoordinator() {
    Random random = RandomOf(102);
    RandomRows rows(&random);
    uint64_t seen = 0;
    while (AwaitOperations(&seen, kEventEvery * 4)) {
      auto engine = StartEngine();
      for (uint64_t i = random.Uniform(20); i > 0 && BeginOperation(); --i) {
        SearchAny(*engine, random, rows);
      }
      Count("coordinator restarts");
    }
  }

  static std::string RandomServer(Random& random) {
    return "rs" + std::to_string(1 + random.Uniform(kServers));
  }

  // The callback of an order to the cluster that nobody waits for before the end.
  DoneCallback Order(const char* what) {
    std::lock_guard lock(mutex_);
    ++orders_;
    return [this, what](Status status) {
      std::lock_guard done_lock(mutex_);
      --orders_;
      if (status.ok()) ++counts_[what];
      progress_.notify_all();
    };
  }

  // ---- The end

  void Settle() {
    {
      std::unique_lock lock(mutex_);
      progress_.wait(lock, [this] { return orders_ == 0; });
    }
    // Dead servers' regions are given to others, indexes are built: both in the background.
    std::string last;
    for (int i = 0; i < kSettlingTries; ++i) {
      auto report =
          Await<Result<CheckReport>>(&executor_, [&](auto done) { cluster_->Check("t", done); });
      if (report.ok() && !report->ok())
        return Fail("the check is not clean: " + report->ToString());
      if (report.ok() && report->incomplete == 0 && cluster_->pending_work() == 0) {
        Count("checks");
        return CompareAll();
      }
      last = (report.ok() ? report->ToString() : report.status().ToString()) + ", " +
             std::to_string(cluster_->pending_work()) + " jobs are pending";
      Await<bool>(&executor_, [&](auto done) {
        executor_.PostAfter(milliseconds(20), [done] { done(true); });
      });
    }
    Fail("the cluster does not come to rest: " + last + Layout(*cluster_, *table_));
  }

  // Nothing is under way: by every index, from every coordinator.
  void CompareAll() {
    Random random = RandomOf(103);
    RandomRows rows(&random);
    for (auto& engine : engines_) {
      engine->ForgetTable("t");
      Check(*engine, {});
      for (int64_t key = 0; key < RandomRows::kKeys && !failed_; ++key) {
        if (history_.Sure(key).has_value()) SearchFor(key, *engine, rows);
      }
    }
  }

  const ThreadedClusterOptions options_;
  ThreadExecutor executor_;
  std::unique_ptr<RocksCluster> cluster_;
  std::array<std::unique_ptr<Engine>, 2> engines_;
  std::atomic<uint64_t> engines_started_ = 0;
  std::vector<std::unique_ptr<SqlClient>> sql_;
  SchemaPtr table_;  // as created: columns do not change
  RowHistory history_;
  std::atomic<uint64_t> operations_ = 0;
  std::atomic<bool> failed_ = false;

  std::mutex mutex_;
  std::condition_variable progress_;
  bool over_ = false;
  int orders_ = 0;  // not answered yet
  std::map<std::string, uint64_t> counts_;
  std::optional<std::string> failure_;
};

}  // namespace

RandomClusterResult RunThreadedCluster(const ThreadedClusterOptions& options) {
  return ThreadedCluster(options).Run();
}

}  // namespace tamis
