#include "tests/cluster/random_cluster.h"

#include <algorithm>
#include <cstdio>

#include "tamis/cluster/error.h"
#include "tamis/query/first_rows.h"
#include "tamis/rocks/checker.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/table/codec.h"
#include "tamis/table/stored_row.h"
#include "tests/cluster/layout.h"
#include "tests/cluster/mishaps.h"
#include "tests/cluster/model_table.h"
#include "tests/cluster/random_batch.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/routing_oracle.h"
#include "tests/cluster/sim_cluster.h"
#include "tests/cluster/sql_client.h"
#include "tests/cluster/write_burst.h"

namespace tamis {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxRegions = 12;
constexpr uint64_t kSettleEvery = 2500;
constexpr uint64_t kOneInSql = 6;  // one search in so many
constexpr size_t kEngines = SimCluster::kEngines;

constexpr uint32_t kId = RandomRows::kId, kName = RandomRows::kName;

// In some runs the entries of an upper daughter are always made from its rows, in some whenever
// more than a few of them change meanwhile.
uint64_t CopiedChangeBytes(uint64_t seed) {
  constexpr uint64_t kBytes[] = {64 << 20, 0, 64 << 20, 200};
  return kBytes[seed % 4];
}

SimCluster::Options SimOptions(const RandomClusterOptions& options) {
  return {.seed = options.seed,
          .clock_drift = options.clock_drift,
          .small_pages = options.seed % 2 == 0,
          .build_rows = options.seed % 3 == 1 ? 1u : 16u,
          .split_bytes = options.seed % 5 == 4 ? 4000u : 0u,
          .copied_change_bytes = CopiedChangeBytes(options.seed),
          .fence_searches = options.seed % 4 != 3 && !options.faults.search_beyond_proof,
          .faults = options.faults};
}

// Filters that are good, and filters that say yes to every third or second value.
double FprOf(uint64_t seed) {
  constexpr double kRates[] = {0.3, RandomRows::kFpr, 0.5};
  return kRates[seed % 3];
}

class RandomCluster {
 public:
  explicit RandomCluster(const RandomClusterOptions& options)
      : options_(options),
        random_(options.seed * 7919 + 1),
        small_pages_(SimOptions(options).small_pages),
        sim_(SimOptions(options)),
        mishaps_(&sim_, &random_, &rows_, {.most_regions = kMaxRegions, .fpr = FprOf(options.seed)},
                 &counts_, [this](int64_t key, WriteBurst::Kind kind) { StartBurst(key, kind); }) {
    if (Status status = sim_.Open(); !status.ok()) {
      Fail("cannot open the cluster: " + status.ToString());
      return;
    }
    CreateTable();
    ScheduleWrites();
    ScheduleEvents();
  }

  ~RandomCluster() {
    for (auto& client : sql_) client.reset();
  }

  RandomClusterResult Run() {
    uint64_t next_settle = kSettleEvery;
    while (!failure_.has_value() && operations_ < options_.operations) {
      RunUntilAcknowledged(microseconds(random_.Uniform(3000)));
      const int searches = recent_.empty() ? 1 : 2;
      for (int i = 0; i < searches && !failure_.has_value(); ++i) SearchOnce();
      CheckSomeRegion();
      if (random_.OneIn(4)) WriteByEngine();
      if (options_.sql && random_.OneIn(6)) WriteBySql();
      if (random_.OneIn(12)) RestartEngine();
      if (random_.OneIn(60)) Crash();
      if (random_.OneIn(60)) FailWrites();
      if (random_.OneIn(60)) DropTable();
      if (operations_ >= next_settle && !failure_.has_value()) {
        Reconcile();
        next_settle = operations_ + kSettleEvery;
      }
    }
    if (!failure_.has_value()) Reconcile();
    RandomClusterResult result;
    result.failure = failure_;
    result.operations = operations_;
    result.counts = counts_;
    result.counts["milliseconds of virtual time"] =
        static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(executor().Now()).count());
    result.counts["messages"] = sim_.network_counts().messages;
    result.counts["messages lost"] = sim_.network_counts().lost;
    result.counts["polls lost"] = sim_.network_counts().polls_lost;
    result.counts["polls late"] = sim_.network_counts().polls_late;
    return result;
  }

 private:
  SimExecutor& executor() { return sim_.executor(); }
  RocksCluster& cluster() { return sim_.cluster(); }
  Engine& RandomEngine() { return sim_.engine(random_.Uniform(kEngines)); }

  // Lets the cluster work for a while, but stops as soon as a write is acknowledged: a row that has
  // just been acknowledged is what a broken rule would miss.
  void RunUntilAcknowledged(Duration most) {
    const Time end = executor().Now() + most;
    while (recent_.empty() && executor().Now() < end && executor().RunOne()) {
    }
  }

  void Fail(const std::string& what) {
    if (failure_.has_value()) return;
    failure_ = what + " (seed " + std::to_string(options_.seed) + ", operation " +
               std::to_string(operations_) + ")";
  }

  void Count(const std::string& what) { ++counts_[what]; }

  void CreateTable() {
    TableSchema schema = RandomRows::Schema(FprOf(options_.seed));
    for (IndexSpec& index : schema.indexes) index = RandomRows::WithCells(std::move(index));
    auto made = Await<Result<TableSchema>>(&executor(),
                                           [&](auto done) { cluster().CreateTable(schema, done); });
    if (!made.ok()) return Fail("cannot create the table: " + made.status().ToString());
    table_ = std::make_shared<const TableSchema>(*made);
    mishaps_.set_table(table_);
  }

  // The table as the catalog has it: columns and indexes come.
  TableSchema CurrentTable() { return *cluster().catalog().Table(table_->id); }

  void RestartEngine() {
    const size_t i = random_.Uniform(kEngines);
    sql_[i].reset();
    sim_.StopEngine(i);
    sim_.StartEngine(i);
    Count("coordinator restarts");
  }

  // Drops the callers of all writes under way, whose answers are then ignored.
  void ForgetWrites() {
    for (auto& client : sql_) client.reset();
    writes_under_way_ = 0;
    last_request_.clear();
    recent_.clear();
    ++incarnation_;
  }

  // Everything in memory is gone; writes under way may or may not have happened.
  void Crash() {
    ForgetWrites();
    mishaps_.Forget();
    model_.Crash();
    const uint64_t dice = random_.Uniform(4);
    const auto saved = dice < 2   ? SimCluster::Saved::kAll
                       : dice < 3 ? SimCluster::Saved::kNone
                                  : SimCluster::Saved::kOlder;
    if (saved == SimCluster::Saved::kAll) Count("saved filters used");
    if (Status status = sim_.Crash(saved); !status.ok()) {
      return Fail("cannot open the cluster after a crash: " + status.ToString());
    }
    // The writes that the crash interrupted are over: the rows are as the store has them.
    ReconcileTainted();
    ScheduleWrites();
    ScheduleEvents();
    Count("process crashes");
  }

  // The log takes no more bytes for a while: no write stands, and nothing that stands is missed.
  void FailWrites() {
    sim_.FailWrites(true);
    executor().RunFor(milliseconds(1) + microseconds(random_.Uniform(30'000)));
    Count("times of failing writes");
    for (const auto& [key, entry] : model_.entries()) {
      const RowState acknowledged = entry.sure;
      if (entry.tainted) SettleRow(key);
      if (entry.is_sure() && entry.sure == acknowledged) AskRouting(entry.sure);
    }
    CheckAllRegions();
    if (!failure_.has_value()) Crash();
  }

  void DropTable() {
    ForgetWrites();
    mishaps_.Forget();
    const Status dropped =
        Await<Status>(&executor(), [&](auto done) { cluster().DropTable("t", {}, done); });
    if (!dropped.ok()) return Fail("cannot drop the table: " + dropped.ToString());
    model_ = ModelTable();
    for (size_t i = 0; i < kEngines; ++i) sim_.engine(i).ForgetTable("t");
    CreateTable();
    Count("table drops");
  }

  // ---- Writes

  void ScheduleWrites() {
    const uint64_t pace = burst_.has_value() ? burst_->pace() : 2500;
    executor().PostAfter(microseconds(random_.Uniform(pace)), [this] {
      if (!quiet_ && writes_under_way_ < 40) StartWrite();
      if (!quiet_) AskRoutingOfAny();
      ScheduleWrites();
    });
  }

  void StartBurst(int64_t key, WriteBurst::Kind kind) {
    burst_.emplace(kind, key, "f" + std::to_string(++burst_names_));
    Count("bursts");
  }

  void StartWrite() {
    if (!burst_.has_value() && random_.OneIn(40)) {
      const auto kind = random_.OneIn(2)
                            ? WriteBurst::Kind::kNewName
                            : static_cast<WriteBurst::Kind>(random_.Uniform(WriteBurst::kKinds));
      StartBurst(rows_.RandomKey(), kind);
    }
    rows_.set_columns(static_cast<uint32_t>(CurrentTable().columns.size()));
    RandomWrite drawn;
    int64_t key = 0;
    if (burst_.has_value()) {
      const WriteBurst::Next next = burst_->Draw(random_);
      if (burst_->over()) burst_.reset();
      key = next.key;
      drawn = PlainWrite(key, next.is_delete);
      if (!next.is_delete) {
        drawn.write.row[kName] = (*drawn.after)[kName] = Value::Text(next.name);
        RandomRows::Compute(&*drawn.after);
      }
    } else {
      key = rows_.RandomKey();
      drawn = rows_.RandomWriteOf(key, model_.Of(key).sure);
    }
    const ModelTable::Entry& entry = model_.Of(key);
    if (entry.tainted) return;
    if (entry.busy()) return StartSecondWrite(key);
    Count(drawn.kind);
    Request request{.row = {.key = key}};
    request.Add(drawn, MutationOf(drawn.write));
    // The same row several times in one request: in order.
    while (random_.OneIn(15)) {
      const RowState& before = request.row.after();
      const RandomWrite next =
          random_.OneIn(2) ? rows_.RandomInsertOf(key, before) : rows_.RandomWriteOf(key, before);
      request.Add(next, MutationOf(next.write));
      Count("rows twice in a request");
    }
    Send(request);
    // The answer may be lost on its way, and who asked asks again.
    if (!request.plain || !random_.OneIn(10)) return;
    executor().PostAfter(microseconds(random_.Uniform(4000)),
                         [this, key, incarnation = incarnation_] {
                           if (incarnation == incarnation_) SendAgain(key);
                         });
  }

  RandomWrite PlainWrite(int64_t key, bool is_delete) {
    Row row = rows_.RandomRow(key);
    if (is_delete) {
      return {.write = {.kind = Write::Kind::kDelete, .row = row}, .kind = "deletes"};
    }
    return {.write = {.row = row}, .after = row, .kind = "puts"};
  }

  // A row has a second writer while the first one is under way.
  void StartSecondWrite(int64_t key) {
    const auto found = last_request_.find(key);
    if (found == last_request_.end() || !found->second.plain || model_.Of(key).unknown) return;
    if (random_.OneIn(2)) return SendAgain(key);
    if (!random_.OneIn(4)) return;
    const RandomWrite rival = PlainWrite(key, random_.OneIn(4));
    Count("rival writes");
    Request request{.row = {.key = key}};
    request.Add(rival, MutationOf(rival.write));
    Send(request);
  }

  void SendAgain(int64_t key) {
    const auto found = last_request_.find(key);
    const ModelTable::Entry& entry = model_.Of(key);
    // By now it may be another request than that whose answer was lost.
    if (found == last_request_.end() || !found->second.plain || !entry.busy() || entry.unknown)
      return;
    Count("writes sent twice");
    Send(Request(found->second));
  }

  pb::Mutation MutationOf(const Write& write) {
    static constexpr pb::Mutation::Kind kKinds[] = {pb::Mutation::PUT,
                                                    pb::Mutation::INSERT_IF_ABSENT,
                                                    pb::Mutation::UPDATE, pb::Mutation::DELETE};
    const TableSchema table = CurrentTable();
    pb::Mutation mutation;
    mutation.set_kind(kKinds[static_cast<size_t>(write.kind)]);
    mutation.set_key(EncodeKey(table, write.row));
    mutation.set_row(EncodeRow(table, write.row));
    for (const uint32_t column : write.columns) mutation.add_columns(table.columns[column].id);
    if (write.condition.has_value()) mutation.set_condition(SerializePredicate(*write.condition));
    return mutation;
  }

  struct Request {
    RandomBatch::OfRow row;
    std::vector<pb::Mutation> mutations;
    bool plain = true;  // its outcome does not depend on the row before it

    void Add(const RandomWrite& write, pb::Mutation mutation) {
      plain = plain && (write.write.kind == Write::Kind::kDelete ||
                        (write.write.kind == Write::Kind::kPut && !write.write.condition));
      row.Add(write, mutations.size());
      mutations.push_back(std::move(mutation));
    }
  };

  void Send(const Request& sent) {
    const auto owner = sim_.RegionOf(table_->id, sent.mutations[0].key());
    if (!owner.has_value()) return Fail("no region holds a key");
    pb::MutateRequest request;
    request.set_table_id(table_->id);
    request.set_schema_version(CurrentTable().version);
    // Too short for who waits for a coordinator that cannot be heard.
    if (random_.OneIn(10)) {
      request.set_timeout_ns(1'000'000 * (1 + random_.Uniform(80)));
      Count("writes with little time");
    }
    auto* mutations = request.add_regions();
    mutations->set_region_id(owner->id());
    mutations->set_epoch(owner->epoch());
    for (const auto& mutation : sent.mutations) *mutations->add_mutations() = mutation;
    const int64_t key = sent.row.key;
    model_.Begin(key, sent.row.after());
    last_request_[key] = sent;
    ++writes_under_way_;
    ++operations_;
    auto open = std::make_shared<bool>(true);
    const auto settle = [this, row = sent.row, open,
                         incarnation = incarnation_](const std::vector<Status>& answers) {
      if (!*open || incarnation != incarnation_) return;
      *open = false;
      --writes_under_way_;
      TakeAnswers(row, answers);
    };
    const auto settle_all = [settle, n = sent.mutations.size()](const Status& answer) {
      settle(std::vector<Status>(n, answer));
    };
    sim_.network()
        .Server(owner->server())
        ->Mutate(request, [settle, settle_all](const Result<pb::MutateReply>& reply) {
          if (!reply.ok()) return settle_all(reply.status());
          const auto& region = reply->regions(0);
          if (region.has_error()) return settle_all(ToStatus(region.error()));
          std::vector<Status> answers;
          for (const pb::Error& result : region.results()) answers.push_back(ToStatus(result));
          settle(answers);
        });
    executor().PostAfter(seconds(2), [settle_all] { settle_all(DeadlineExceeded("no answer")); });
  }

  void TakeAnswers(const RandomBatch::OfRow& row, const std::vector<Status>& answers) {
    const auto outcome = RandomBatch::OutcomeOf(row, answers);
    if (!outcome.fault.empty()) return Fail(outcome.fault);
    TakeAnswer(row.key, row.after(), outcome.expected, outcome.status);
  }

  void TakeAnswer(int64_t key, const RowState& after, StatusCode expected, const Status& answer) {
    using Outcome = ModelTable::Outcome;
    const StatusCode code = answer.code();
    Outcome outcome = Outcome::kNotDone;
    if (code == StatusCode::kUnavailable || code == StatusCode::kBusy) {
      Count("writes refused");
    } else if (code == StatusCode::kDeadlineExceeded) {
      outcome = Outcome::kUnknown;
      Count("writes unknown");
    } else if (code != expected) {
      Fail("a write of row " + std::to_string(key) + " was answered with " + answer.ToString());
    } else if (code == StatusCode::kOk) {
      outcome = Outcome::kDone;
      Count("writes acknowledged");
    } else {
      Count("writes not done by condition");
    }
    if (!model_.End(key, after, outcome)) SettleRow(key);
    const ModelTable::Entry& entry = model_.Of(key);
    if (outcome != Outcome::kDone || !entry.is_sure()) return;
    recent_.push_back(key);
    AskRouting(entry.sure);
  }

  // Checks the answers of Engine::Apply for several rows at once. It drives the executor while it
  // waits.
  void WriteByEngine() {
    Engine& engine = RandomEngine();
    const auto schema = engine.Table("t");
    if (!schema.ok()) return;  // the next search tells
    rows_.set_columns(static_cast<uint32_t>((*schema)->columns.size()));
    const RandomBatch batch(
        &random_, &rows_, 1 + random_.Uniform(8), [this] { return rows_.RandomKey(); },
        [this](int64_t key) -> std::optional<RowState> {
          const ModelTable::Entry& entry = model_.Of(key);
          if (entry.busy() || entry.tainted) return std::nullopt;
          return entry.sure;
        });
    for (const RandomBatch::OfRow& row : batch.rows()) {
      model_.Begin(row.key, row.after());
      last_request_.erase(row.key);
      ++operations_;
      Count("writes through an engine");
    }
    counts_["rows twice in a batch"] += batch.repeated();
    const std::vector<Status> answers = engine.Apply(*schema, batch.Writes());
    for (const RandomBatch::OfRow& row : batch.rows()) TakeAnswers(row, answers);
  }

  // SQLite calls back into the engine, which drives the executor while it waits: one thread still.
  SqlClient* Sql(size_t engine) {
    if (!sql_[engine]) {
      auto client = SqlClient::Open(&sim_.engine(engine));
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
    if (client == nullptr || entry.busy() || entry.tainted) return;
    rows_.set_columns(RandomRows::kColumns);  // the columns that the statements name
    RandomWrite drawn = rows_.RandomWriteOf(key, entry.sure);
    if (drawn.write.condition.has_value()) {
      // By SQL it is an update of the columns named.
      for (uint32_t i = RandomRows::kColumns; drawn.after.has_value() && i < drawn.after->size();
           ++i)
        (*drawn.after)[i] = (*entry.sure)[i];
    }
    model_.Begin(key, drawn.after);
    last_request_.erase(key);
    ++operations_;
    Count("writes through SQL");
    TakeAnswer(key, drawn.after, drawn.answer, client->Apply(*table_, drawn.write));
  }

  // ---- What must hold at any time

  // No coordinator may leave the row out, by any of its values: by the schema as it is, nor by that
  // which the coordinator knows.
  void AskRouting(const RowState& row) {
    if (!row.has_value() || failure_.has_value()) return;
    const TableSchema current = CurrentTable();
    std::vector<Engine*> engines;
    for (size_t i = 0; i < kEngines; ++i) engines.push_back(&sim_.engine(i));
    auto left_out = LeftOut(engines, current, *row);
    for (Engine* engine : engines) {
      const auto known = engine->Table("t");
      if (left_out.has_value() || !known.ok() || (*known)->id != current.id ||
          (*known)->version == current.version) {
        continue;
      }
      left_out = LeftOut({engine}, **known, *row);
      Count("rows asked of the routing by an old schema");
    }
    if (left_out.has_value()) {
      Fail("the acknowledged row " + RowStateText(row) + "would be left out by " + *left_out +
           Layout(cluster(), current, row));
    }
    Count("rows asked of the routing");
  }

  void AskRoutingOfAny() {
    const ModelTable::Entry& entry = model_.Of(rows_.RandomKey());
    if (entry.is_sure()) AskRouting(entry.sure);
  }

  // Entries and filters of a region in which nothing is under way, as its owner has them.
  void CheckRegionOf(const pb::RegionRecord& record) {
    const auto region = sim_.OpenRegion(record);
    if (!region || !region->IsQuiet() || failure_.has_value()) return;
    // Compactions drop the entries of a dropped index, maybe before the region hears of the drop.
    const auto indexes = region->indexes();
    for (const auto& [index_id, state] : *indexes) {
      if (!cluster().catalog().HasIndex(table_->id, index_id)) return;
    }
    const auto report = CheckRegion(cluster().store(), *region);
    if (!report.ok()) return Fail("cannot check a region: " + report.status().ToString());
    if (!report->ok()) Fail("the check of a region is not clean: " + report->ToString());
    Count("checks of a region");
  }

  void CheckSomeRegion() {
    const auto regions = cluster().catalog().Regions(table_->id);
    CheckRegionOf(regions[random_.Uniform(regions.size())]);
    // A filter that has just been published is right, or will miss something.
    for (const auto& record : regions) {
      const auto region = sim_.OpenRegion(record);
      if (!region) continue;
      size_t published = 0;
      const auto indexes = region->indexes();
      for (const auto& [id, state] : *indexes) published += state.filter->published() ? 1 : 0;
      size_t& known = published_[{record.id(), record.epoch()}];
      if (std::exchange(known, published) < published) CheckRegionOf(record);
    }
  }

  void CheckAllRegions() {
    for (const auto& record : cluster().catalog().Regions(table_->id)) CheckRegionOf(record);
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
    if (random_.OneIn(6)) options.key_order = true;
    if (random_.OneIn(30)) options.use_indexes = false;
    if (options.key_order && operations_ % 2 == 0) {
      options.key_order = false;
      options.order = {{.column = RandomRows::kId, .descending = true}};
    } else if (!options.key_order && random_.OneIn(2)) {
      if (random_.OneIn(2)) options.predicate = {};
      const uint32_t columns[] = {RandomRows::kGroup, RandomRows::kNumber, RandomRows::kName};
      options.order = {{.column = columns[random_.Uniform(3)], .descending = random_.OneIn(2)}};
    }
    const bool ordered = options.key_order || !options.order.empty();
    if (random_.OneIn(ordered ? 2 : 20)) options.limit = 1 + random_.Uniform(8);
    Check(std::move(options));
  }

  void Check(SearchOptions options) {
    const size_t i = random_.Uniform(kEngines);
    if (options_.sql && random_.OneIn(kOneInSql)) return CheckBySql(i, options);
    Engine& engine = sim_.engine(i);
    auto schema = engine.Table("t");
    if (!schema.ok()) return Fail("no schema: " + schema.status().ToString());
    Answer answer{.predicate = options.predicate,
                  .limit = options.limit,
                  .key_order = options.key_order,
                  .order = options.order,
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
    if (IsOfDroppedIndex(status)) return Count("searches whose index was dropped");
    if (!status.ok()) {
      if (status.code() != StatusCode::kDeadlineExceeded)
        Fail("a search failed: " + status.ToString());
      Count("searches out of time");
      return;
    }
    Count("searches");
    if (explain.regions_asked < explain.regions_total) Count("searches that left regions out");
    if (explain.regions_scanned > 0) Count("searches with a scanned region");
    if (explain.rows_from_entries > 0) Count("searches with rows of entries alone");
    if (!answer.order.empty()) Count("searches in an order");
    if (explain.reason.ends_with(FirstRows::kReason)) Count("searches for first rows");
    Judge(answer, watch, explain.ToText());
  }

  // It had given a page in the order of the index.
  static bool IsOfDroppedIndex(const Status& status) {
    return status.message().find("an index was dropped while it was searched") != std::string::npos;
  }

  void CheckBySql(size_t engine, const SearchOptions& options) {
    SqlClient* client = Sql(engine);
    if (client == nullptr) return;
    ++operations_;
    ModelTable::Watch watch;
    model_.StartWatch(&watch);
    auto rows = client->Search(*table_, options);
    model_.EndWatch(&watch);
    if (IsOfDroppedIndex(rows.ok() ? Status::Ok() : rows.status())) {
      return Count("searches whose index was dropped");
    }
    if (!rows.ok()) return Fail("a search through SQL failed: " + rows.status().ToString());
    Count("searches through SQL");
    Explain explain;
    for (const Explain& search : client->searches()) explain.Add(search);
    Judge({.predicate = options.predicate,
           .limit = options.limit,
           .key_order = options.key_order,
           .order = options.order,
           .one_instant = !small_pages_ && client->searches().size() == 1,
           .rows = std::move(*rows)},
          watch, "by SQL: " + SqlOf(*table_, options) + "\n" + explain.ToText());
  }

  void Judge(const Answer& answer, const ModelTable::Watch& watch, const std::string& explain) {
    const auto fault = answer.FindFault(*table_, watch);
    if (!fault.has_value()) return;
    if (!fault->missed.has_value()) return Fail(fault->what + "\n" + explain);
    const ModelTable::Entry& entry = model_.Of(*fault->missed);
    std::string text = "\n  sure now: " + RowStateText(entry.sure) + (entry.busy() ? ", busy" : "");
    for (const auto& state : entry.maybe) text += "\n  maybe: " + RowStateText(state);
    const RowState row = entry.sure.has_value() ? entry.sure : RandomRows::KeyRow(*fault->missed);
    Fail(fault->what + text + Layout(cluster(), *table_, row) + "\n" + explain);
  }

  void ScheduleEvents() {
    executor().PostAfter(microseconds(random_.Uniform(70'000)), [this] {
      if (!quiet_) mishaps_.Happen();
      ScheduleEvents();
    });
  }

  // ---- Settling

  // Calms everything down and compares all with all.
  void Reconcile() {
    quiet_ = true;
    burst_.reset();
    mishaps_.Forget();
    sim_.WakeAll();
    executor().RunFor(seconds(4));
    if (writes_under_way_ != 0)
      return Fail("a write is still under way after all has come to rest");
    ReconcileTainted();
    if (cluster().pending_work() > 0) executor().RunFor(seconds(4));
    auto report =
        Await<Result<CheckReport>>(&executor(), [&](auto done) { cluster().Check("t", done); });
    if (!report.ok())
      return Fail("cannot check: " + report.status().ToString() + Layout(cluster(), *table_));
    if (!report->ok()) return Fail("the check is not clean: " + report->ToString());
    if (report->incomplete > 0) return Fail("an index is not complete after all has come to rest");
    Count("checks");
    const auto status =
        Await<Result<ClusterStatus>>(&executor(), [&](auto done) { cluster().GetStatus(done); });
    if (!status.ok()) return Fail("no status: " + status.status().ToString());
    for (const ServerStatus& server : status->servers) {
      counts_["filters of bits alone"] += server.filters_of_bits;
    }
    SearchOptions all;
    Check(std::move(all));
    // By every index, from both coordinators: a copy that went wrong stays wrong.
    for (const auto& [key, entry] : model_.entries()) {
      if (!entry.sure.has_value() || failure_.has_value()) continue;
      AskRouting(entry.sure);
      SearchOptions one;
      one.predicate = rows_.ProbeOf(*entry.sure);
      Check(std::move(one));
    }
    for (size_t i = 0; i < kEngines; ++i) sim_.engine(i).ForgetTable("t");
    quiet_ = false;
  }

  void ReconcileTainted() {
    for (const auto& [key, entry] : model_.entries()) {
      if (entry.tainted) SettleRow(key);
    }
  }

  // The row is what the store says: nothing is under way that could change it.
  void SettleRow(int64_t key) {
    RowState stands;
    Row row = RandomRows::KeyRow(key);
    const TableSchema table = CurrentTable();
    const std::string store_key = RowStoreKey(table.id, EncodeKey(table, row));
    Store& store = cluster().store();
    std::string bytes;
    const auto status = store.db()->Get(rocksdb::ReadOptions(), store.rows(), store_key, &bytes);
    if (status.ok()) {
      if (!DecodeRow(table, bytes, &row).ok()) return Fail("cannot read a row");
      SetComputedColumns(table, &row);
      row.resize(RandomRows::kMostColumns);
      stands = std::move(row);
    } else if (!status.IsNotFound()) {
      return Fail("cannot read a row: " + status.ToString());
    }
    const ModelTable::Entry& entry = model_.Of(key);
    if (entry.sure != stands && std::ranges::find(entry.maybe, stands) == entry.maybe.end()) {
      std::string text = "\n  sure: " + RowStateText(entry.sure);
      for (const RowState& state : entry.maybe) text += "\n  maybe: " + RowStateText(state);
      Fail("row " + std::to_string(key) +
           " stands in a state that no write gave it: " + RowStateText(stands) + text);
    }
    model_.Reconcile(key, std::move(stands));
  }

  const RandomClusterOptions options_;
  Random random_;
  RandomRows rows_{&random_};
  const bool small_pages_;
  std::map<std::string, uint64_t> counts_;
  SimCluster sim_;
  Mishaps mishaps_;
  std::unique_ptr<SqlClient> sql_[kEngines];  // made when it is first used
  SchemaPtr table_;  // the schema at its creation; columns and indexes come
  ModelTable model_;
  std::vector<int64_t> recent_;              // keys whose write has just been acknowledged
  std::map<int64_t, Request> last_request_;  // by key
  std::map<std::pair<uint64_t, uint64_t>, size_t> published_;  // by region and epoch
  std::optional<WriteBurst> burst_;
  uint64_t burst_names_ = 0;
  bool quiet_ = false;
  uint64_t incarnation_ = 0;
  int writes_under_way_ = 0;
  uint64_t operations_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace

RandomClusterResult RunRandomCluster(const RandomClusterOptions& options) {
  return RandomCluster(options).Run();
}

}  // namespace tamis
