#include "tests/cluster/random_cluster.h"

#include <rocksdb/env.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "tamis/base/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/table/codec.h"
#include "tests/cluster/layout.h"
#include "tests/cluster/model_table.h"
#include "tests/cluster/node_clock.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/sim_network.h"
#include "tests/cluster/sql_client.h"

namespace tamis {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kServers = 5;
constexpr int kEngines = 2;
constexpr size_t kMaxRegions = 12;
constexpr uint64_t kSettleEvery = 2500;
constexpr uint64_t kOneInSql = 6;  // of the searches

constexpr uint32_t kId = RandomRows::kId, kName = RandomRows::kName;
constexpr int64_t kKeys = RandomRows::kKeys;

class RandomCluster {
 public:
  explicit RandomCluster(const RandomClusterOptions& options)
      : options_(options),
        executor_(options.seed, microseconds(200)),
        random_(options.seed * 7919 + 1),
        env_(rocksdb::NewMemEnv(rocksdb::Env::Default())),
        small_pages_(options.seed % 2 == 0),
        fence_searches_(options.seed % 4 != 3 && !options.faults.search_beyond_proof) {
    OpenCluster();
    CreateTable();
    for (int i = 0; i < kEngines; ++i) StartEngine(i);
    ScheduleWrites();
    ScheduleEvents();
  }

  ~RandomCluster() {
    Shutdown();
    cluster_.reset();
  }

  RandomClusterResult Run() {
    uint64_t next_settle = kSettleEvery;
    while (!failure_.has_value() && operations_ < options_.operations) {
      RunUntilAcknowledged(microseconds(random_.Uniform(3000)));
      const int searches = recent_.empty() ? 1 : 2;
      for (int i = 0; i < searches && !failure_.has_value(); ++i) SearchOnce();
      if (options_.sql && random_.OneIn(12)) WriteBySql();
      if (random_.OneIn(25)) RestartEngine();
      if (random_.OneIn(300)) CrashProcess();
      if (operations_ >= next_settle && !failure_.has_value()) {
        Settle();
        next_settle = operations_ + kSettleEvery;
      }
    }
    if (!failure_.has_value()) Settle();
    RandomClusterResult result;
    result.failure = failure_;
    result.operations = operations_;
    result.counts = counts_;
    result.counts["milliseconds of virtual time"] =
        static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(executor_.Now()).count());
    result.counts["messages"] = network_counts_.messages;
    result.counts["messages lost"] = network_counts_.lost;
    result.counts["polls lost"] = network_counts_.polls_lost;
    result.counts["polls late"] = network_counts_.polls_late;
    return result;
  }

 private:
  // Lets the cluster work for a while, but stops as soon as a write is acknowledged: a row that has
  // just been acknowledged is what a broken rule would miss.
  void RunUntilAcknowledged(Duration most) {
    const Time end = executor_.Now() + most;
    while (recent_.empty() && executor_.Now() < end && executor_.RunOne()) {
    }
  }

  void Fail(const std::string& what) {
    if (failure_.has_value()) return;
    failure_ = what + " (seed " + std::to_string(options_.seed) + ", operation " +
               std::to_string(operations_) + ")";
  }

  void Count(const std::string& what) { ++counts_[what]; }

  // ---- The cluster

  void OpenCluster() {
    RocksCluster::Options options;
    options.store.directory = "/store";
    options.store.env = env_.get();
    options.store.memtable_bytes = 4 << 20;
    options.store.background_compactions = false;
    options.store.writers.handed_entries = 0;  // one thread does it all
    options.servers = kServers;
    options.session_timeout = milliseconds(300);
    options.operation_timeout = seconds(3);
    options.balance = false;
    options.seed = options_.seed;
    options.executor_of = [this](const std::string& server) { return ClockOf(server); };
    options.server.feed.lease = milliseconds(100);
    options.server.feed.lease_margin = milliseconds(2);
    options.server.feed.max_events = 200;
    options.server.feed.silence = milliseconds(400);
    if (options_.seed % 3 != 0) {  // replies are cut, bits come in parts
      options.server.feed.reply_bytes = 400;
      options.server.feed.projection_bytes = 40;
    }
    options.server.proof_term = milliseconds(150);
    options.server.heartbeat_interval = milliseconds(60);
    options.server.fence_searches = fence_searches_;
    options.server.feed.max_parked = 1;
    options.server.feed.next_poll = milliseconds(5);
    options.server.write_timeout = seconds(1);
    options.server.split_bytes = 0;
    options.server.build_rows = 16;
    options.server.rebuild_after_ignored = 200;
    options.server.page_rows = small_pages_ ? 5 : 1000;
    if (small_pages_) options.server.page_candidates = 20;
    options.server.inline_steps = false;
    options.server.faults = options_.faults;
    options.heartbeat_link = [this](const std::string& server, std::function<void()> deliver) {
      if (random_.OneIn(30) || executor_.Now() < heartbeats_cut_[server]) return;
      executor_.PostAfter(microseconds(random_.Uniform(2000)), std::move(deliver));
    };
    auto cluster = RocksCluster::Open(options, &executor_);
    if (!cluster.ok()) return Fail("cannot open the cluster: " + cluster.status().ToString());
    cluster_ = std::move(*cluster);
    network_ = std::make_unique<SimNetwork>(cluster_.get(), &executor_, SimNetwork::Options{},
                                            &network_counts_);
  }

  void CreateTable() {
    auto made = Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(RandomRows::Schema(), done); });
    if (!made.ok()) return Fail("cannot create the table: " + made.status().ToString());
    table_ = std::make_shared<const TableSchema>(*made);
  }

  Executor* ClockOf(const std::string& node) {
    std::unique_ptr<NodeClock>& clock = clocks_[node];
    if (!clock) {
      const int drift =
          static_cast<int>(random_.Uniform(static_cast<uint64_t>(2 * options_.clock_drift + 1)));
      clock = std::make_unique<NodeClock>(&executor_, milliseconds(random_.Uniform(100'000)),
                                          drift - options_.clock_drift);
    }
    return clock.get();
  }

  void StartEngine(int i) {
    Engine::Options options;
    options.poll_wait = milliseconds(40);
    options.poll_margin = milliseconds(100);
    options.lease_margin = milliseconds(5);
    options.request_timeout = milliseconds(250);
    options.write_timeout = seconds(5);
    options.seed = ++engine_seed_;
    options.faults = options_.faults;
    engines_[i] =
        std::make_unique<Engine>(network_.get(), ClockOf("engine" + std::to_string(i)), options);
  }

  void RestartEngine() {
    const int i = static_cast<int>(random_.Uniform(kEngines));
    sql_[i].reset();
    engines_[i].reset();
    StartEngine(i);
    Count("coordinator restarts");
  }

  void Shutdown() {
    for (auto& client : sql_) client.reset();
    for (auto& engine : engines_) engine.reset();
    executor_.Clear();
  }

  // Everything in memory is gone; writes under way may or may not have happened.
  void CrashProcess() {
    Shutdown();
    paused_.clear();
    killed_.clear();
    heartbeats_cut_.clear();
    for (const auto& [key, entry] : model_.entries()) {
      if (entry.busy) model_.Unknown(key);
    }
    writes_under_way_ = 0;
    ++incarnation_;
    network_.reset();
    cluster_.reset();
    if (random_.OneIn(2)) {
      Count("saved filters used");
    } else {
      ForgetSavedFilters();
    }
    OpenCluster();
    if (failure_.has_value()) return;
    for (int i = 0; i < kEngines; ++i) StartEngine(i);
    // What the crash interrupted is over: the rows are what the store says.
    for (const auto& [key, entry] : model_.entries()) {
      if (entry.tainted) SettleRow(key);
    }
    ScheduleWrites();
    ScheduleEvents();
    Count("process crashes");
  }

  // The cluster saved them, where no write was broken off; after a crash they would not be there.
  void ForgetSavedFilters() {
    auto store = Store::Open({.directory = "/store", .env = env_.get()});
    if (!store.ok()) return Fail("cannot open the store: " + store.status().ToString());
    rocksdb::WriteBatch batch;
    batch.Put((*store)->meta(), "X", "");
    if (!(*store)->Write(&batch).ok()) Fail("cannot write to the store");
  }

  // ---- Writes

  void ScheduleWrites() {
    executor_.PostAfter(microseconds(random_.Uniform(burst_ > 0 ? burst_pace_ : 2500)), [this] {
      if (!quiet_ && writes_under_way_ < 40) StartWrite();
      ScheduleWrites();
    });
  }

  // A value that is new to its region, written to several rows at nearly the same time: what waits
  // for the flips of others is for.
  void StartBurst(int64_t key, bool toggling) {
    // Some are slow, and their rows change to and fro between two names.
    toggling_ = toggling;
    burst_ = toggling_ ? 60 : 8;
    burst_pace_ = toggling_ ? 12'000 : 200;
    burst_key_ = key;
    burst_names_ += 2;
    Count("bursts");
  }

  void StartWrite() {
    if (burst_ == 0 && random_.OneIn(40)) StartBurst(rows_.RandomKey(), random_.OneIn(6));
    const bool in_burst = burst_ > 0;
    if (in_burst) --burst_;
    const int64_t key =
        in_burst
            ? std::min<int64_t>(
                  kKeys - 1, burst_key_ + static_cast<int64_t>(random_.Uniform(toggling_ ? 2 : 6)))
            : rows_.RandomKey();
    const ModelTable::Entry& entry = model_.Of(key);
    if (entry.busy || entry.tainted) return;
    RandomWrite drawn = in_burst ? BurstWrite(key) : rows_.RandomWriteOf(key, entry.sure);
    Count(drawn.kind);
    Send(key, MutationOf(drawn.write), std::move(drawn.after), drawn.answer);
  }

  RandomWrite BurstWrite(int64_t key) {
    Row row = rows_.RandomRow(key);
    row[kName] =
        Value::Text("f" + std::to_string(burst_names_ + (toggling_ ? random_.Uniform(2) : 0)));
    return {.write = {.row = row}, .after = row, .kind = "puts"};
  }

  pb::Mutation MutationOf(const Write& write) const {
    static constexpr pb::Mutation::Kind kKinds[] = {pb::Mutation::PUT,
                                                    pb::Mutation::INSERT_IF_ABSENT,
                                                    pb::Mutation::UPDATE, pb::Mutation::DELETE};
    pb::Mutation mutation;
    mutation.set_kind(kKinds[static_cast<size_t>(write.kind)]);
    mutation.set_key(EncodeKey(*table_, write.row));
    mutation.set_row(EncodeRow(*table_, write.row));
    for (const uint32_t column : write.columns) mutation.add_columns(table_->columns[column].id);
    if (write.condition.has_value()) mutation.set_condition(SerializePredicate(*write.condition));
    return mutation;
  }

  void Send(int64_t key, pb::Mutation mutation, ModelTable::State after, StatusCode expected) {
    std::optional<pb::RegionRecord> owner;
    for (const auto& region : cluster_->catalog().Regions(table_->id)) {
      if (mutation.key() >= region.start() &&
          (region.end().empty() || mutation.key() < region.end())) {
        owner = region;
      }
    }
    if (!owner.has_value()) return Fail("no region holds a key");
    pb::MutateRequest request;
    request.set_table_id(table_->id);
    request.set_schema_version(cluster_->catalog().Table(table_->id)->version);
    auto* mutations = request.add_regions();
    mutations->set_region_id(owner->id());
    mutations->set_epoch(owner->epoch());
    *mutations->add_mutations() = std::move(mutation);
    model_.Begin(key, std::move(after));
    ++writes_under_way_;
    ++operations_;
    auto open = std::make_shared<bool>(true);
    const uint64_t incarnation = incarnation_;
    const auto settle = [this, key, expected, open, incarnation](StatusCode code) {
      if (!*open || incarnation != incarnation_) return;
      *open = false;
      --writes_under_way_;
      TakeAnswer(key, expected, code == StatusCode::kOk ? Status::Ok() : Status(code, "no"));
    };
    network_->Server(owner->server())->Mutate(request, [settle](Result<pb::MutateReply> reply) {
      if (!reply.ok()) return settle(reply.status().code());
      const auto& result = reply->regions(0);
      if (result.has_error()) return settle(static_cast<StatusCode>(result.error().code()));
      settle(static_cast<StatusCode>(result.results(0).code()));
    });
    executor_.PostAfter(seconds(2), [settle] { settle(StatusCode::kDeadlineExceeded); });
  }

  void TakeAnswer(int64_t key, StatusCode expected, const Status& answer) {
    const StatusCode code = answer.code();
    if (code == StatusCode::kUnavailable || code == StatusCode::kBusy) {
      model_.Refuse(key);
      Count("writes refused");
    } else if (code == StatusCode::kDeadlineExceeded) {
      model_.Unknown(key);
      Count("writes unknown");
    } else if (code != expected) {
      Fail("a write of row " + std::to_string(key) + " was answered with " + answer.ToString());
    } else if (code == StatusCode::kOk) {
      model_.Acknowledge(key);
      recent_.push_back(key);
      Count("writes acknowledged");
    } else {
      model_.Refuse(key);
      Count("writes not done by condition");
    }
  }

  // SQLite calls back into the engine, which drives the executor while it waits: one thread still.
  SqlClient* Sql(size_t engine) {
    if (!sql_[engine]) {
      auto client = SqlClient::Open(engines_[engine].get());
      if (!client.ok()) {
        Fail("cannot open SQLite: " + client.status().ToString());
        return nullptr;
      }
      sql_[engine] = std::move(*client);
    }
    return sql_[engine].get();
  }

  void WriteBySql() {
    SqlClient* client = Sql(random_.Uniform(kEngines));
    const int64_t key = rows_.RandomKey();
    const ModelTable::Entry& entry = model_.Of(key);
    if (client == nullptr || entry.busy || entry.tainted) return;
    const RandomWrite drawn = rows_.RandomWriteOf(key, entry.sure);
    model_.Begin(key, drawn.after);
    ++operations_;
    Count("writes through SQL");
    TakeAnswer(key, drawn.answer, client->Apply(*table_, drawn.write));
  }

  // ---- Searches

  void SearchOnce() {
    Predicate predicate;
    if (!recent_.empty()) {
      const int64_t key = recent_.back();
      recent_.pop_back();
      if (recent_.size() > 20) recent_.clear();
      const ModelTable::Entry& entry = model_.Of(key);
      predicate = entry.sure.has_value() ? rows_.ProbeOf(*entry.sure) : rows_.RandomPredicate({});
      Count("searches for a row just acknowledged");
    } else {
      std::optional<Row> near;
      const ModelTable::Entry& entry = model_.Of(rows_.RandomKey());
      if (entry.sure.has_value()) near = entry.sure;
      predicate = rows_.RandomPredicate(near);
    }
    SearchOptions options;
    options.predicate = predicate;
    options.timeout = seconds(20);
    if (random_.OneIn(10)) options.key_order = true;
    if (random_.OneIn(30)) options.use_indexes = false;
    if (random_.OneIn(25)) options.limit = 1 + random_.Uniform(5);
    Check(std::move(options));
  }

  void Check(SearchOptions options) {
    const size_t i = random_.Uniform(kEngines);
    if (options_.sql && random_.OneIn(kOneInSql)) return CheckBySql(i, options);
    Engine& engine = *engines_[i];
    auto schema = engine.Table("t");
    if (!schema.ok()) return Fail("no schema: " + schema.status().ToString());
    Answer answer{.predicate = options.predicate,
                  .limit = options.limit,
                  .key_order = options.key_order,
                  .one_instant = !small_pages_};
    ++operations_;
    ModelTable::Watch watch;
    model_.StartWatch(&watch);
    RowStream stream = engine.Search(*schema, std::move(options));
    Status status;
    while (true) {
      auto row = stream.Next();
      if (!row.ok()) status = row.status();
      if (!row.ok() || !row->has_value()) break;
      answer.rows.push_back(std::move(**row));
    }
    model_.EndWatch(&watch);
    const Explain& explain = stream.explain();
    if (!status.ok()) {
      if (status.code() != StatusCode::kDeadlineExceeded)
        Fail("a search failed: " + status.ToString());
      Count("searches out of time");
      return;
    }
    Count("searches");
    if (explain.regions_asked < explain.regions_total) Count("searches that left regions out");
    if (explain.regions_scanned > 0) Count("searches with a scanned region");
    Judge(answer, watch, explain.ToText());
  }

  void CheckBySql(size_t engine, const SearchOptions& options) {
    SqlClient* client = Sql(engine);
    if (client == nullptr) return;
    ++operations_;
    ModelTable::Watch watch;
    model_.StartWatch(&watch);
    auto rows = client->Search(*table_, options);
    model_.EndWatch(&watch);
    if (!rows.ok()) return Fail("a search through SQL failed: " + rows.status().ToString());
    Count("searches through SQL");
    Explain explain;
    for (const Explain& search : client->searches()) explain.Add(search);
    Judge({.predicate = options.predicate,
           .limit = options.limit,
           .key_order = options.key_order,
           .one_instant = !small_pages_ && client->searches().size() == 1,
           .rows = std::move(*rows)},
          watch, "by SQL: " + SqlOf(*table_, options) + "\n" + explain.ToText());
  }

  void Judge(const Answer& answer, const ModelTable::Watch& watch, const std::string& explain) {
    const auto fault = answer.FindFault(*table_, watch);
    if (!fault.has_value()) return;
    if (!fault->missed.has_value()) return Fail(fault->what + "\n" + explain);
    const ModelTable::Entry& entry = model_.Of(*fault->missed);
    std::string text = "\n  sure now: " + RowStateText(entry.sure) + (entry.busy ? ", busy" : "");
    for (const auto& state : entry.maybe) text += "\n  maybe: " + RowStateText(state);
    const RowState row = entry.sure.has_value() ? entry.sure : RandomRows::KeyRow(*fault->missed);
    Fail(fault->what + text + Layout(*cluster_, *table_, row) + "\n" + explain);
  }

  // ---- Events

  void ScheduleEvents() {
    executor_.PostAfter(microseconds(random_.Uniform(70'000)), [this] {
      if (!quiet_) Event();
      ScheduleEvents();
    });
  }

  std::string RandomServer() { return "rs" + std::to_string(1 + random_.Uniform(kServers)); }

  void Event() {
    const auto regions = cluster_->catalog().Regions(table_->id);
    const auto& region = regions[random_.Uniform(regions.size())];
    const auto counted = [this](const char* what) {
      return [this, what](Status status) {
        if (status.ok()) Count(what);
      };
    };
    const std::string server = RandomServer();
    const bool may_sleep = paused_.size() + killed_.size() < 2 && !paused_.contains(server) &&
                           !killed_.contains(server);
    const uint64_t dice = random_.Uniform(100);
    if (dice < 14) {
      if (regions.size() >= kMaxRegions) return;
      const Row row = RandomRows::KeyRow(rows_.RandomKey());
      const int64_t key = row[kId].int64();
      cluster_->SplitRegion(region.id(), random_.OneIn(3) ? "" : EncodeKey(*table_, row),
                            [this, key](Status status) {
                              if (!status.ok()) return;
                              Count("splits");
                              StartBurst(key, false);
                            });
    } else if (dice < 24) {
      if (regions.size() > 2) cluster_->MergeRegion(region.id(), counted("merges"));
    } else if (dice < 48) {
      cluster_->MoveRegion(region.id(), server, counted("moves"));
    } else if (dice < 53) {
      if (!may_sleep) return;
      (void)cluster_->Kill(server);
      killed_.insert(server);
      Count("server kills");
      WakeLater(server, &killed_);
    } else if (dice < 60) {
      if (!may_sleep) return;
      (void)cluster_->Pause(server);
      paused_.insert(server);
      Count("server pauses");
      WakeLater(server, &paused_);
    } else if (dice < 64) {
      // A zombie: the others think it dead, it answers, and the others cannot be heard.
      const Time until = executor_.Now() + milliseconds(300 + random_.Uniform(600));
      heartbeats_cut_[server] = until;
      for (int i = 1; i <= kServers && random_.OneIn(2); ++i) {
        const std::string other = "rs" + std::to_string(i);
        if (other != server) network_->CutPolls(other, until);
      }
      Count("heartbeat links cut");
    } else if (dice < 76) {
      network_->CutPolls(server, executor_.Now() + milliseconds(random_.Uniform(400)));
      Count("poll links cut");
    } else if (dice < 81) {
      executor_.Jump(milliseconds(random_.Uniform(150)));
      Count("clock jumps");
    } else if (dice < 85) {
      // The entries that a compaction drops are missed by a search that is behind the times and
      // that no fence ends.
      if (!fence_searches_) return;
      (void)cluster_->Compact();
      Count("compactions");
    } else if (dice < 92) {
      ToggleIndex();
    } else if (dice < 96) {
      cluster_->RebuildIndex("t", "", counted("index rebuilds"));
    } else {
      // Expelled although it lives; it may hear of that late.
      if (random_.OneIn(2)) {
        heartbeats_cut_[server] = executor_.Now() + milliseconds(random_.Uniform(600));
      }
      (void)cluster_->Expel(server);
      Count("expulsions");
    }
  }

  void WakeLater(const std::string& server, std::set<std::string>* asleep) {
    // Sometimes within the session, sometimes after it.
    executor_.PostAfter(milliseconds(20 + random_.Uniform(600)), [this, server, asleep] {
      (void)cluster_->Resume(server);
      asleep->erase(server);
    });
  }

  // The index on (grp, number) comes and goes, and now and then that on name.
  void ToggleIndex() {
    const auto schema = cluster_->catalog().Table(table_->id);
    const IndexSpec index =
        random_.OneIn(3) ? RandomRows::IndexOnName() : RandomRows::IndexOnBoth();
    const bool there = schema->FindIndex(index.name) != nullptr;
    const auto done = [this, there](Result<TableSchema> changed) {
      if (changed.ok()) Count(there ? "index drops" : "index creations");
    };
    if (there) {
      cluster_->DropIndex("t", index.name, done);
    } else {
      cluster_->CreateIndex("t", index, done);
    }
    for (auto& engine : engines_) {
      if (engine && random_.OneIn(2)) engine->ForgetTable("t");
    }
  }

  // ---- Settling

  // Calms everything down and compares all with all.
  void Settle() {
    quiet_ = true;
    for (const auto& server : std::set(paused_)) (void)cluster_->Resume(server);
    for (const auto& server : std::set(killed_)) (void)cluster_->Resume(server);
    paused_.clear();
    killed_.clear();
    heartbeats_cut_.clear();
    executor_.RunFor(seconds(4));
    if (writes_under_way_ != 0)
      return Fail("a write is still under way after all has come to rest");
    for (const auto& [key, entry] : model_.entries()) {
      if (entry.tainted) SettleRow(key);
    }
    if (cluster_->pending_work() > 0) executor_.RunFor(seconds(4));
    auto report =
        Await<Result<CheckReport>>(&executor_, [&](auto done) { cluster_->Check("t", done); });
    if (!report.ok())
      return Fail("cannot check: " + report.status().ToString() + Layout(*cluster_, *table_));
    if (!report->ok()) return Fail("the check is not clean: " + report->ToString());
    if (report->incomplete > 0) return Fail("an index is not complete after all has come to rest");
    Count("checks");
    SearchOptions all;
    Check(std::move(all));
    // By every index, from both coordinators: a copy that went wrong stays wrong.
    for (const auto& [key, entry] : model_.entries()) {
      if (!entry.sure.has_value() || failure_.has_value()) continue;
      SearchOptions one;
      one.predicate = rows_.ProbeOf(*entry.sure);
      Check(std::move(one));
    }
    for (auto& engine : engines_) engine->ForgetTable("t");
    quiet_ = false;
  }

  // The row is what the store says: nothing is under way that could change it.
  void SettleRow(int64_t key) {
    Row row = RandomRows::KeyRow(key);
    const std::string store_key = RowStoreKey(table_->id, EncodeKey(*table_, row));
    Store& store = cluster_->store();
    std::string bytes;
    const auto status = store.db()->Get(rocksdb::ReadOptions(), store.rows(), store_key, &bytes);
    if (status.IsNotFound()) return model_.Settle(key, std::nullopt);
    if (!status.ok() || !DecodeRow(*table_, bytes, &row).ok()) return Fail("cannot read a row");
    const ModelTable::Entry& entry = model_.Of(key);
    const bool possible =
        entry.sure == row || std::ranges::any_of(entry.maybe, [&](const ModelTable::State& state) {
          return state == row;
        });
    if (!possible) Fail("row " + std::to_string(key) + " stands in a state that nobody wrote");
    model_.Settle(key, std::move(row));
  }

  const RandomClusterOptions options_;
  SimExecutor executor_;
  Random random_;
  RandomRows rows_{&random_};
  const std::unique_ptr<rocksdb::Env> env_;
  const bool small_pages_;
  const bool fence_searches_;
  std::map<std::string, std::unique_ptr<NodeClock>> clocks_;
  NetworkCounts network_counts_;
  std::unique_ptr<RocksCluster> cluster_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<Engine> engines_[kEngines];
  std::unique_ptr<SqlClient> sql_[kEngines];  // made when it is first used
  SchemaPtr table_;                           // as created: columns do not change
  ModelTable model_;
  std::vector<int64_t> recent_;  // keys whose write has just been acknowledged
  std::set<std::string> paused_, killed_;
  std::map<std::string, Time> heartbeats_cut_;
  // Writes that follow each other closely, with one new name, to rows beside each other.
  int burst_ = 0;
  bool toggling_ = false;
  uint64_t burst_pace_ = 0;
  int64_t burst_key_ = 0;
  uint64_t burst_names_ = 0;
  bool quiet_ = false;
  uint64_t engine_seed_ = 100;
  uint64_t incarnation_ = 0;
  int writes_under_way_ = 0;
  uint64_t operations_ = 0;
  std::map<std::string, uint64_t> counts_;
  std::optional<std::string> failure_;
};

}  // namespace

RandomClusterResult RunRandomCluster(const RandomClusterOptions& options) {
  return RandomCluster(options).Run();
}

}  // namespace tamis
