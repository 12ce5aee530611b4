#include "tests/cluster/threaded_cluster.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "tamis/table/codec.h"
#include "tests/cluster/plain_client.h"
#include "tests/cluster/random_batch.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/sql_client.h"
#include "tests/cluster/sql_process.h"
#include "tests/cluster/write_log.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kServers = 5;
constexpr size_t kMaxRegions = 10;
// A server that could not tell the master of a closed region tells it again after 200 seconds.
constexpr seconds kPatienceAfterOutages{400};
constexpr seconds kSearchAtRest{180};
constexpr int kMostOrders = 8;        // to the cluster, not answered yet
constexpr uint64_t kEventEvery = 12;  // operations
constexpr int64_t kShared = 4;        // rows that all clients write: those with the least keys

class ThreadedCluster {
 public:
  ThreadedCluster(const ClusterKind& kind, const ThreadedClusterOptions& options)
      : options_(options) {
    Open(kind);
  }

  ~ThreadedCluster() {
    plain_.reset();
    process_.reset();
    far_engine_.reset();
    far_.reset();
    sql_.clear();
    for (auto& engine : engines_) engine.reset();
    cluster_.reset();
  }

  RandomClusterResult Run() {
    if (!failed_) {
      std::vector<std::thread> clients;
      for (int i = 0; i < options_.clients; ++i) clients.emplace_back([this, i] { Client(i); });
      std::vector<std::thread> others;
      others.emplace_back([this] { RegionEvents(); });
      others.emplace_back([this] { ServerAndIndexEvents(); });
      others.emplace_back([this] { ComingAndGoingCoordinator(); });
      others.emplace_back([this] { Outages(); });
      others.emplace_back([this] { CoordinatorOfItsOwnProcess(); });
      others.emplace_back([this] { CoordinatorThatIsCutOff(); });
      others.emplace_back([this] { ClientThatKnowsNoIndex(); });
      for (auto& client : clients) client.join();
      EndOperations();
      for (auto& other : others) other.join();
    }
    if (!failed_) Reconcile();
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

  void Open(const ClusterKind& kind) {
    auto opened = kind.open(
        {.servers = kServers, .seed = options_.seed, .restless = true, .faults = options_.faults});
    if (!opened.ok()) return Fail("cannot open the cluster: " + opened.status().ToString());
    cluster_ = std::move(*opened);
    auto servers = cluster_->Servers();
    if (!servers.ok()) return Fail("cannot list the servers: " + servers.status().ToString());
    servers_ = std::move(*servers);
    for (auto& engine : engines_) engine = StartEngine();
    TableSchema schema = RandomRows::Schema();
    for (IndexSpec& index : schema.indexes) index = RandomRows::WithCells(std::move(index));
    auto made = cluster_->CreateTable(std::move(schema));
    if (!made.ok()) return Fail("cannot create the table: " + made.status().ToString());
    table_ = std::move(*made);
    // In an outage few orders succeed: there is something to leave out from the beginning.
    if (!options_.outages.empty()) SplitInHalf();
    for (int i = 0; i < options_.clients && !failed_; ++i) OpenSql(*engines_[i % engines_.size()]);
    if (!options_.coordinator.empty() && !failed_) StartProcess();
    if (!options_.plain_client.empty() && !failed_) StartPlainClient();
    if (!options_.cut_off) return;
    auto far = cluster_->OpenFar();
    if (!far.ok()) return Fail("cannot open the cluster from afar: " + far.status().ToString());
    far_ = std::move(*far);
    if (far_) far_engine_ = StartEngine(far_->cluster(), far_->executor());
  }

  void StartProcess() {
    std::vector<std::string> command = options_.coordinator;
    command.push_back(cluster_->StoreName());
    auto started = SqlProcess::Start(command);
    if (!started.ok()) return Fail("cannot start a coordinator: " + started.status().ToString());
    std::lock_guard lock(mutex_);
    process_ = std::move(*started);
  }

  void StartPlainClient() {
    std::vector<std::string> command = options_.plain_client;
    std::string store = cluster_->StoreName();
    store.resize(std::min(store.size(), store.find('?')));
    command.push_back(store.substr(store.rfind('/') + 1) + ":t");
    auto started = PlainClient::Start(command);
    if (!started.ok()) return Fail("cannot start a plain client: " + started.status().ToString());
    plain_ = std::move(*started);
  }

  void SplitInHalf() {
    const auto regions = cluster_->Regions("t");
    if (!regions.ok()) return Fail("cannot list the regions: " + regions.status().ToString());
    const Row middle = RandomRows::KeyRow(kShared + RandomRows::kKeys / 2);
    const Status split = cluster_->Split(regions->front().id, EncodeKey(*table_, middle));
    if (!split.ok()) Fail("cannot split the table: " + split.ToString());
  }

  std::unique_ptr<Engine> StartEngine() {
    return StartEngine(cluster_->cluster(), cluster_->executor());
  }
  std::unique_ptr<Engine> StartEngine(Cluster& cluster, Executor& executor) {
    Engine::Options options;
    options.poll_wait = milliseconds(100);
    options.request_timeout = seconds(1);
    options.write_timeout = seconds(15);
    options.seed = Mix(options_.seed) + ++engines_started_;
    options.faults = std::make_shared<const Faults>(options_.faults);
    return std::make_unique<Engine>(&cluster, &executor, options);
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

  // Client i alone writes the rows whose key modulo the number of writers is i, but for the first
  // few, which all write. Behind these clients comes the plain one, if there is one.
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
      } else if (!options_.coordinator.empty() && random.OneIn(8)) {
        SearchByProcess({.predicate = rows.RandomPredicate(Near(rows.RandomKey()))});
      } else if (random.OneIn(4)) {
        WriteShared(engine, random, rows);
      } else if (random.OneIn(2)) {
        const std::vector<int64_t> acknowledged = WriteSome(i, engine, random, rows);
        // Every search from here on must find them, by any coordinator.
        for (const int64_t key : acknowledged) {
          if (random.OneIn(2)) SearchFor(key, *engines_[random.Uniform(engines_.size())], rows);
          if (!options_.coordinator.empty() && random.OneIn(2)) {
            SearchByProcess({.predicate = ProbeFor(key, rows)});
          }
        }
      } else {
        SearchAny(engine, random, rows);
      }
    }
  }

  std::vector<int64_t> WriteSome(int client, Engine& engine, Random& random, RandomRows& rows) {
    const size_t wanted = random.OneIn(3) ? 1 + random.Uniform(8) : 1;
    const RandomBatch batch(
        &random, &rows, wanted, [&] { return OwnKey(client, rows); },
        [this](int64_t key) { return Sure(key); });
    const SchemaPtr schema = SchemaOf(engine);
    if (!schema) return {};
    std::vector<uint64_t> begun;
    for (const RandomBatch::OfRow& row : batch.rows()) {
      begun.push_back(log_.Begin(row.key, row.after()));
      for (const RandomWrite& write : row.writes) Count(write.kind);
      if (row.writes.size() > 1) Count("rows twice in a batch");
    }
    const std::vector<Status> statuses = engine.Apply(schema, batch.Writes());
    std::vector<int64_t> acknowledged;
    for (size_t i = 0; i < begun.size(); ++i) {
      const RandomBatch::OfRow& row = batch.rows()[i];
      const auto outcome = RandomBatch::OutcomeOf(row, statuses);
      if (!outcome.fault.empty()) {
        Fail(outcome.fault);
        return {};
      }
      if (outcome.status.code() == StatusCode::kDeadlineExceeded) {
        // HBase may have carried out the first of them only.
        for (const RandomWrite& write : row.writes) log_.Begin(row.key, write.after);
      }
      const RandomWrite all{.write = {},
                            .after = row.after(),
                            .answer = outcome.expected,
                            .kind = row.writes.back().kind};
      if (TakeAnswer(row.key, begun[i], all, outcome.status)) acknowledged.push_back(row.key);
    }
    return acknowledged;
  }

  // A row that others write at the same time: a put, sometimes of what another one is putting, or a
  // delete; what comes of it does not depend on what was there.
  void WriteShared(Engine& engine, Random& random, RandomRows& rows) {
    const int64_t key = static_cast<int64_t>(random.Uniform(kShared));
    Row row = rows.RandomRow(key);
    if (random.OneIn(2)) {
      const std::vector<RowState> states = log_.Now(key);
      const RowState& state = states[random.Uniform(states.size())];
      if (state.has_value()) row = *state;
    }
    const bool is_delete = random.OneIn(4);
    RandomWrite drawn{.write = {.row = row}, .after = row, .kind = "writes of shared rows"};
    if (is_delete) {
      drawn.write.kind = Write::Kind::kDelete;
      drawn.after.reset();
    }
    const SchemaPtr schema = SchemaOf(engine);
    if (!schema) return;
    Count(drawn.kind);
    const uint64_t begun = log_.Begin(key, drawn.after);
    const Status status = engine.Apply(schema, {drawn.write}).front();
    if (!TakeAnswer(key, begun, drawn, status) || is_delete) return;
    Check(*engines_[random.Uniform(engines_.size())], {.predicate = rows.ProbeOf(row)});
  }

  void WriteBySql(int client, SqlClient& sql, RandomRows& rows) {
    const int64_t key = OwnKey(client, rows);
    const auto sure = Sure(key);
    if (!sure.has_value()) return;
    const RandomWrite drawn = rows.RandomWriteOf(key, *sure);
    const uint64_t begun = log_.Begin(key, drawn.after);
    Count("writes through SQL");
    TakeAnswer(key, begun, drawn, sql.Apply(*table_, drawn.write));
  }

  // One request has a second, which a busy machine does not always have.
  SchemaPtr SchemaOf(Engine& engine) {
    const Time end = cluster_->Soon().deadline;
    while (true) {
      auto schema = engine.Table("t");
      if (schema.ok()) return *schema;
      if (TakeAbsence("schemas", schema.status())) return nullptr;
      if (!IsAbsence(schema.status()) || cluster_->executor().Now() >= end) {
        Fail("no schema: " + schema.status().ToString());
        return nullptr;
      }
      Count("schemas asked for again");
    }
  }

  // No server could give an answer, or not in time.
  static bool IsAbsence(const Status& status) {
    return status.code() == StatusCode::kUnavailable ||
           status.code() == StatusCode::kDeadlineExceeded;
  }

  // True when the status says that no server answered, as it may be in an outage.
  bool TakeAbsence(const std::string& of, const Status& status) {
    if (options_.outages.empty() || at_rest_ || !IsAbsence(status)) return false;
    Count(of + " out of time");
    return true;
  }

  int Writers() const { return options_.clients + (options_.plain_client.empty() ? 0 : 1); }
  int64_t OwnKey(int writer, RandomRows& rows) const {
    return kShared + rows.RandomKey() / Writers() * Writers() + writer;
  }
  bool IsOfPlainClient(int64_t key) const {
    return key >= kShared && (key - kShared) % Writers() == options_.clients;
  }
  int64_t EndOfKeys() const { return kShared + RandomRows::kKeys + Writers(); }

  // The state of the row, as its only writer sees it; nullopt when several states are possible.
  std::optional<RowState> Sure(int64_t key) const {
    const std::vector<RowState> states = log_.Now(key);
    if (states.size() != 1) return std::nullopt;
    return states.front();
  }
  // Some state of the row, for what is drawn near it.
  RowState Near(int64_t key) const { return log_.Now(key).back(); }

  // True when the write was done.
  bool TakeAnswer(int64_t key, uint64_t begun, const RandomWrite& write, const Status& status) {
    const StatusCode code = status.code();
    if (code == StatusCode::kDeadlineExceeded) {
      Count("writes unknown");
    } else if (code == StatusCode::kUnavailable || code == StatusCode::kBusy) {
      log_.Refuse(key, begun);
      Count("writes refused");
    } else if (code != write.answer) {
      Fail("a write of row " + std::to_string(key) + " (" + write.kind + ") was answered with " +
           status.ToString());
    } else if (code == StatusCode::kOk) {
      log_.Acknowledge(key, begun);
      Count("writes acknowledged");
      return true;
    } else {
      log_.Refuse(key, begun);
      Count("writes not done by condition");
    }
    return false;
  }

  Predicate ProbeFor(int64_t key, RandomRows& rows) const {
    const RowState near = Near(key);
    if (near.has_value()) return rows.ProbeOf(*near);
    return IdIs(key);
  }
  static Predicate IdIs(int64_t key) {
    return Predicate::Compare(RandomRows::kId, Predicate::Op::kEq, Value::Int64(key));
  }

  void SearchFor(int64_t key, Engine& engine, RandomRows& rows) {
    Count("searches for a row just acknowledged");
    Check(engine, {.predicate = ProbeFor(key, rows)});
  }

  void SearchAny(Engine& engine, Random& random, RandomRows& rows) {
    SearchOptions options;
    options.predicate = rows.RandomPredicate(Near(rows.RandomKey()));
    options.key_order = random.OneIn(10);
    options.use_indexes = !random.OneIn(30);
    if (random.OneIn(25)) options.limit = 1 + random.Uniform(5);
    Check(engine, std::move(options));
  }

  void SearchBySql(SqlClient& sql, Random& random, RandomRows& rows) {
    SearchOptions options;
    options.predicate = rows.RandomPredicate(Near(rows.RandomKey()));
    options.key_order = random.OneIn(10);
    const WriteLog::Mark mark(&log_);
    auto found = sql.Search(*table_, options);
    if (!found.ok()) {
      if (TakeAbsence("searches through SQL", found.status())) return;
      return Fail("a search through SQL failed: " + found.status().ToString());
    }
    Count("searches through SQL");
    const Answer answer{.predicate = options.predicate,
                        .key_order = options.key_order,
                        .one_instant = sql.searches().size() == 1,
                        .rows = std::move(*found)};
    JudgeSql(answer, mark, "by SQL", options);
  }

  void JudgeSql(const Answer& answer, const WriteLog::Mark& mark, const char* how,
                const SearchOptions& options) {
    const auto fault = answer.FindFault(*table_, log_.Since(mark));
    if (fault.has_value()) Fail(fault->what + "\n" + how + ": " + SqlOf(*table_, options));
  }

  void SearchByProcess(const SearchOptions& options) {
    std::shared_ptr<SqlProcess> process;
    {
      std::lock_guard lock(mutex_);
      process = process_;
    }
    const WriteLog::Mark mark(&log_);
    auto found = process->Search(*table_, options);
    if (!found.ok()) {
      const StatusCode code = found.status().code();
      if (code == StatusCode::kBusy && !at_rest_) return;
      if (code == StatusCode::kUnavailable && !at_rest_) {
        return Count("searches by the process not answered");
      }
      return Fail("a search by another process failed: " + found.status().ToString());
    }
    Count("searches by the process");
    // It does not tell of how many searches it made its answer.
    const Answer answer{
        .predicate = options.predicate, .one_instant = false, .rows = std::move(*found)};
    JudgeSql(answer, mark, "by another process", options);
  }

  void Check(Engine& engine, SearchOptions options) {
    const SchemaPtr schema = SchemaOf(engine);
    if (!schema) return;
    Answer answer{
        .predicate = options.predicate, .limit = options.limit, .key_order = options.key_order};
    const WriteLog::Mark mark(&log_);
    RowStream stream = engine.Search(schema, std::move(options));
    while (true) {
      auto row = stream.Next();
      if (!row.ok()) {
        if (row.status().code() == StatusCode::kDeadlineExceeded && !at_rest_) {
          std::printf("%s\n", row.status().ToString().c_str());
          return Count("searches out of time");
        }
        // The index was dropped while the search ran: the search must fail with this code.
        if (row.status().code() == StatusCode::kFailedPrecondition) {
          return Count("searches by a dropped index");
        }
        return Fail("a search failed: " + row.status().ToString());
      }
      if (!row->has_value()) break;
      answer.rows.push_back(std::move(**row));
    }
    const Explain& explain = stream.explain();
    Count("searches");
    if (explain.regions_asked < explain.regions_total) Count("searches that left regions out");
    const auto fault = answer.FindFault(*table_, log_.Since(mark));
    if (!fault.has_value()) {
      for (const Row& row : answer.rows) log_.NoteShown(mark, row[RandomRows::kId].int64(), row);
      return;
    }
    const RowState row = fault->missed.has_value() ? Near(*fault->missed) : RowState();
    Fail(fault->what + cluster_->Describe(*table_, row) + "\n" + explain.ToText());
  }

  // ---- Events

  void RegionEvents() {
    Random random = RandomOf(100);
    RandomRows rows(&random);
    uint64_t seen = 0;
    while (AwaitOperations(&seen, 1 + random.Uniform(2 * kEventEvery))) {
      if (HasManyOrders()) continue;
      const auto listed = cluster_->Regions("t");
      if (TakeAbsence("lists of regions", listed.status())) continue;
      if (!listed.ok()) return Fail("cannot list the regions: " + listed.status().ToString());
      const std::vector<RegionInfo>& regions = *listed;
      const RegionId region = regions[random.Uniform(regions.size())].id;
      switch (random.Uniform(4)) {
        case 0:
          if (regions.size() < kMaxRegions) {
            const Row row = RandomRows::KeyRow(rows.RandomKey());
            cluster_->admin().SplitRegion(region, random.OneIn(3) ? "" : EncodeKey(*table_, row),
                                          Order("splits"));
          }
          break;
        case 1:
          if (regions.size() > 2) cluster_->admin().MergeRegion(region, Order("merges"));
          break;
        default:
          cluster_->admin().MoveRegion(region, RandomServer(random), Order("moves"));
      }
    }
  }

  void ServerAndIndexEvents() {
    Random random = RandomOf(101);
    std::set<std::string> asleep;
    uint64_t seen = 0;
    while (AwaitOperations(&seen, 1 + random.Uniform(3 * kEventEvery))) {
      const std::string server = RandomServer(random);
      const bool may_sleep = options_.outages.empty() && asleep.size() < servers_.size() / 2 &&
                             !asleep.contains(server);
      switch (random.Uniform(11)) {
        case 0:
          if (!may_sleep || !Can(Capability::kKillServer) || !cluster_->Kill(server).ok()) break;
          asleep.insert(server);
          Count("server kills");
          break;
        case 1:
          if (!may_sleep || !Can(Capability::kPauseServer) || !cluster_->Pause(server).ok()) break;
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
          StartJob(JobSpec::Kind::kRebuildIndex, "index rebuilds begun");
          break;
        case 6:
          if (Can(Capability::kCompact)) {
            StartJob(JobSpec::Kind::kCompact, "compactions begun");
          }
          break;
        case 7:
          if (Can(Capability::kBalance)) StartJob(JobSpec::Kind::kBalance, "balances begun");
          break;
        case 8:
          engines_[random.Uniform(engines_.size())]->ForgetTable("t");
          break;
        default:
          ToggleIndex(random);
      }
    }
    for (const std::string& server : asleep) (void)cluster_->Resume(server);
  }

  bool Can(Capability capability) { return cluster_->admin().Can(capability); }

  void Outages() {
    Random random = RandomOf(104);
    std::vector<const Outage*> left;
    uint64_t seen = 0;
    while (!options_.outages.empty() && AwaitOperations(&seen, 1 + random.Uniform(kEventEvery))) {
      if (left.empty()) {
        for (const Outage& outage : options_.outages) left.push_back(&outage);
        std::ranges::shuffle(left, random);
      }
      const Outage& outage = *left.back();
      left.pop_back();
      if (!outage.begin()) {
        outage.end();  // a server that it needs may have ended since the end of an earlier outage
        continue;
      }
      Count("outages");
      Count("outages: " + outage.name);
      {
        std::unique_lock lock(mutex_);
        progress_.wait_for(lock, outage.lasts, [this] { return over_ || failed_; });
      }
      outage.end();
    }
  }

  // The job is not waited for: a server may die meanwhile.
  void StartJob(JobSpec::Kind kind, const char* what) {
    const auto started = cluster_->Ask<uint64_t>(
        [&](auto done) { cluster_->admin().StartJob({.kind = kind, .table = "t"}, done); });
    if (started.ok()) Count(what);
  }

  void ToggleIndex(Random& random) {
    const IndexSpec index = RandomRows::WithCells(random.OneIn(3) ? RandomRows::IndexOnName()
                                                                  : RandomRows::IndexOnBoth());
    const auto schema =
        cluster_->Ask<TableSchema>([&](auto done) { cluster_->cluster().GetTable("t", done); });
    if (!schema.ok()) return;
    const bool there = schema->FindIndex(index.name) != nullptr;
    DoneCallback done = Order(there ? "index drops" : "index creations");
    const auto changed = [done](Result<TableSchema> result) {
      done(result.ok() ? Status::Ok() : result.status());
    };
    if (there) {
      cluster_->admin().DropIndex("t", index.name, changed);
    } else {
      cluster_->admin().CreateIndex("t", index, changed);
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

  // It sleeps for less, and for more, than a lease; it is killed, sometimes asleep.
  void CoordinatorOfItsOwnProcess() {
    Random random = RandomOf(105);
    uint64_t seen = 0;
    while (process_ != nullptr && AwaitOperations(&seen, 1 + random.Uniform(2 * kEventEvery))) {
      if (!random.OneIn(4)) {
        process_->Pause();
        Count("coordinator pauses");
        std::unique_lock lock(mutex_);
        progress_.wait_for(lock, milliseconds(random.OneIn(2) ? 300 : 4000),
                           [this] { return over_ || failed_; });
      }
      process_->Resume();
      if (!random.OneIn(4)) continue;
      process_->Kill();
      Count("coordinator kills");
      StartProcess();
    }
    if (process_ != nullptr) process_->Resume();
  }

  // A coordinator whose network is cut for less, and for more, than a lease, while it and the
  // servers go on. It must find every row, or report that no server answers.
  void CoordinatorThatIsCutOff() {
    if (far_engine_ == nullptr) return;
    Random random = RandomOf(106);
    RandomRows rows(&random);
    SchemaPtr schema = table_;
    uint64_t seen = 0;
    while (AwaitOperations(&seen, 1 + random.Uniform(kEventEvery))) {
      if (auto now = far_engine_->Table("t"); now.ok()) schema = *now;
      for (uint64_t i = 1 + random.Uniform(5); i > 0; --i) {
        SearchFromAfar(schema, rows, seconds(20));
      }
      far_->Cut();
      Count("cuts of a coordinator's network");
      const Time healed = cluster_->executor().Now() + milliseconds(random.OneIn(2) ? 300 : 4000);
      while (!failed_ && cluster_->executor().Now() < healed) {
        SearchFromAfar(schema, rows, milliseconds(700));
      }
      far_->Heal();
    }
  }

  void SearchFromAfar(const SchemaPtr& schema, RandomRows& rows, Duration timeout) {
    Answer answer{.predicate = ProbeFor(rows.RandomKey(), rows)};
    const WriteLog::Mark mark(&log_);
    RowStream stream =
        far_engine_->Search(schema, {.predicate = answer.predicate, .timeout = timeout});
    while (true) {
      auto row = stream.Next();
      if (!row.ok()) {
        if (IsAbsence(row.status())) {
          if (at_rest_)
            return Fail("healed, but nothing comes from afar: " + row.status().ToString());
          return Count("searches from afar not answered");
        }
        if (row.status().code() == StatusCode::kFailedPrecondition)
          return;  // its index was dropped
        return Fail("a search from afar failed: " + row.status().ToString());
      }
      if (!row->has_value()) break;
      answer.rows.push_back(std::move(**row));
    }
    Count("searches from afar");
    const auto fault = answer.FindFault(*table_, log_.Since(mark));
    if (fault.has_value()) Fail(fault->what + "\nfrom afar\n" + stream.explain().ToText());
  }

  // ---- A client of HBase that has no part in any of this

  // The other clients pace it: while no server answers, each of its calls fails at once.
  void ClientThatKnowsNoIndex() {
    if (plain_ == nullptr) return;
    Random random = RandomOf(107);
    RandomRows rows(&random);
    uint64_t seen = 0;
    do {
      for (uint64_t i = 1 + random.Uniform(kEventEvery); i > 0 && !failed_; --i) {
        const int64_t key = OwnKey(options_.clients, rows);
        if (random.OneIn(4)) {
          ReadByPlainClient(key);
        } else if (WriteByPlainClient(key, random, rows)) {
          SearchFor(key, *engines_[random.Uniform(engines_.size())], rows);
          if (!options_.coordinator.empty() && random.OneIn(8)) {
            SearchByProcess({.predicate = ProbeFor(key, rows)});
          }
        }
      }
    } while (AwaitOperations(&seen, 1));
  }

  // A put of some columns of the row, which stands as `sure` says.
  static RandomWrite PlainPutOf(int64_t key, const RowState& sure, Random& random,
                                RandomRows& rows) {
    Row row = rows.RandomRow(key);
    if (row[RandomRows::kNumber].is_null()) row[RandomRows::kNumber] = Value::Int64(0);
    Row after = sure.value_or(RandomRows::KeyRow(key));
    for (const uint32_t column : {RandomRows::kNumber, RandomRows::kGroup, RandomRows::kName}) {
      if (column != RandomRows::kNumber && random.OneIn(3)) row[column] = Value();
      if (!row[column].is_null()) after[column] = row[column];
    }
    RandomRows::Compute(&after);
    return {.write = {.row = std::move(row)}, .after = std::move(after), .kind = "plain puts"};
  }

  // True when it was done.
  bool WriteByPlainClient(int64_t key, Random& random, RandomRows& rows) {
    const auto sure = Sure(key);
    if (!sure.has_value()) return false;
    RandomWrite drawn = PlainPutOf(key, *sure, random, rows);
    if (random.OneIn(4)) {
      drawn = {.write = {.kind = Write::Kind::kDelete, .row = RandomRows::KeyRow(key)},
               .kind = "plain deletes"};
    }
    const bool deletes = drawn.write.kind == Write::Kind::kDelete;
    plain_history_[key].push_back(drawn.after);
    const uint64_t begun = log_.Begin(key, drawn.after);
    const Status status =
        deletes ? plain_->Delete(*table_, drawn.write.row) : plain_->Put(*table_, drawn.write.row);
    Count(std::string(deletes ? "deletes" : "puts") + " by a plain client" +
          (status.ok()         ? ""
           : IsRefused(status) ? " refused"
                               : " unknown"));
    return TakeAnswer(key, begun, drawn, status);
  }
  static bool IsRefused(const Status& status) { return status.code() == StatusCode::kUnavailable; }

  // HBase's own reads may be old: who has lost the region and does not know goes on answering them.
  void ReadByPlainClient(int64_t key) {
    const WriteLog::Mark mark(&log_);
    auto read = plain_->Get(*table_, RandomRows::KeyRow(key));
    if (!read.ok()) {
      if (!at_rest_ && IsAbsence(read.status())) {
        return Count("reads by a plain client not answered");
      }
      return Fail("a plain client cannot read: " + read.status().ToString());
    }
    Count("reads by a plain client");
    Answer answer{.predicate = IdIs(key)};
    if (read->has_value()) answer.rows.push_back(**read);
    const auto fault = answer.FindFault(*table_, log_.Since(mark));
    if (!fault.has_value()) return;
    if (!at_rest_ && HasStoodAs(key, *read)) return Count("old reads by a plain client");
    Fail(fault->what + "\nby a plain client");
  }

  bool HasStoodAs(int64_t key, const RowState& read) const {
    if (!read.has_value()) return true;  // at first
    const auto past = plain_history_.find(key);
    return past != plain_history_.end() &&
           std::ranges::any_of(past->second, [&](const RowState& state) {
             return state.has_value() && std::equal(read->begin(), read->end(), state->begin());
           });
  }

  // At rest: its rows by key and by every index, from every coordinator.
  void FindRowsOfPlainClient() {
    if (plain_ == nullptr) return;
    // Its connections and its cached locations may still be those of servers that are gone.
    if (const Status set = plain_->SetReadTimeout(kSearchAtRest); !set.ok()) {
      return Fail("a plain client cannot wait longer: " + set.ToString());
    }
    for (int64_t key = 0; key < EndOfKeys() && !failed_; ++key) {
      if (!IsOfPlainClient(key)) continue;
      ReadByPlainClient(key);
      std::vector<Predicate> probes = {IdIs(key)};
      if (const RowState row = Near(key); row.has_value()) {
        for (const uint32_t column :
             {RandomRows::kGroup, RandomRows::kNumber, RandomRows::kName, RandomRows::kStart}) {
          probes.push_back(RandomRows::EqualTo(*row, column));
        }
      }
      for (const Predicate& probe : probes) {
        for (auto& engine : engines_) Check(*engine, {.predicate = probe});
        if (far_engine_ != nullptr) Check(*far_engine_, {.predicate = probe});
        if (process_ != nullptr) SearchByProcess({.predicate = probe});
        Count("searches for what a plain client left");
      }
    }
  }

  const std::string& RandomServer(Random& random) const {
    return servers_[random.Uniform(servers_.size())];
  }

  // The callback of an order to the cluster. The test waits for orders only at its end.
  DoneCallback Order(const char* what) {
    std::lock_guard lock(mutex_);
    ++orders_;
    return [this, what](Status status) {
      std::lock_guard done_lock(mutex_);
      --orders_;
      ++counts_[status.ok() ? what : std::string(what) + " not done"];
      progress_.notify_all();
    };
  }

  // In an outage each may take minutes.
  bool HasManyOrders() {
    std::lock_guard lock(mutex_);
    return orders_ >= kMostOrders;
  }

  // ---- The end

  void Reconcile() {
    {
      std::unique_lock lock(mutex_);
      progress_.wait(lock, [this] { return orders_ == 0; });
    }
    // Dead servers' regions are given to others, indexes are built: both in the background.
    const auto report = cluster_->Reconcile(
        "t", options_.outages.empty() ? ClusterUnderTest::kPatience : kPatienceAfterOutages);
    if (!report.ok()) {
      return Fail(report.status().ToString() + cluster_->Describe(*table_, RowState()));
    }
    Count("checks");
    CompareAll();
  }

  // Nothing is under way: by every index, from every coordinator.
  void CompareAll() {
    at_rest_ = true;
    Random random = RandomOf(103);
    RandomRows rows(&random);
    if (process_ != nullptr) SearchByProcess({});
    if (far_engine_ != nullptr) {
      // It may still wait for what was lost with the cut connections.
      SearchFromAfar(table_, rows, kSearchAtRest);
      far_engine_->ForgetTable("t");
      Check(*far_engine_, {});
    }
    for (auto& engine : engines_) {
      engine->ForgetTable("t");
      Check(*engine, {});
      for (int64_t key = 0; key < EndOfKeys() && !failed_; ++key) {
        if (Near(key).has_value()) SearchFor(key, *engine, rows);
      }
    }
    FindRowsOfPlainClient();
  }

  const ThreadedClusterOptions options_;
  std::unique_ptr<ClusterUnderTest> cluster_;
  std::vector<std::string> servers_;
  std::array<std::unique_ptr<Engine>, 2> engines_;
  std::atomic<uint64_t> engines_started_ = 0;
  std::vector<std::unique_ptr<SqlClient>> sql_;
  std::shared_ptr<SqlProcess> process_;  // replaced by one thread, with mutex_; nullptr: none
  std::unique_ptr<PlainClient> plain_;   // nullptr: none
  std::map<int64_t, std::vector<RowState>> plain_history_;  // how its rows may ever have stood
  // A coordinator whose network is cut; nullptr: the kind has none.
  std::unique_ptr<FarCluster> far_;
  std::unique_ptr<Engine> far_engine_;
  SchemaPtr table_;  // the schema at its creation: columns do not change
  WriteLog log_;
  std::atomic<uint64_t> operations_ = 0;
  std::atomic<bool> failed_ = false;
  bool at_rest_ = false;  // set when no other thread is left

  std::mutex mutex_;
  std::condition_variable progress_;
  bool over_ = false;
  int orders_ = 0;  // not answered yet
  std::map<std::string, uint64_t> counts_;
  std::optional<std::string> failure_;
};

}  // namespace

RandomClusterResult RunThreadedCluster(const ClusterKind& kind,
                                       const ThreadedClusterOptions& options) {
  return ThreadedCluster(kind, options).Run();
}

}  // namespace tamis
