// What every kind of cluster does: the suite runs once for each of ClusterKinds().

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "tamis/cluster/await_job.h"
#include "tamis/cluster/region_server.h"
#include "tamis/query/plan.h"
#include "tamis/table/key_format.h"
#include "tests/cluster/cluster_under_test.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Op = Predicate::Op;

class ClusterSuite : public ::testing::TestWithParam<ClusterKind> {
 protected:
  enum Column : uint32_t { kName, kSection, kSize };

  void SetUp() override { Open({}); }
  void TearDown() override {
    engine_.reset();
    kind_.reset();
  }

  void Open(const ClusterWishes& wishes) {
    engine_.reset();
    kind_.reset();
    auto opened = GetParam().open(wishes);
    ASSERT_TRUE(opened.ok()) << opened.status();
    kind_ = std::move(*opened);
    engine_ = StartEngine();
    TableSchema schema;
    schema.name = "packages";
    schema.columns = {{.name = "name", .type = Type::kText, .nullable = false},
                      {.name = "section", .type = Type::kText},
                      {.name = "size", .type = Type::kInt64}};
    schema.key = {kName};
    schema.indexes = {{.name = "section", .columns = {kSection}, .expected_values = 100},
                      {.name = "size", .columns = {kSize}, .expected_values = 1000}};
    const auto made = kind_->CreateTable(schema);
    ASSERT_TRUE(made.ok()) << made.status();
    table_ = *made;
  }
  std::unique_ptr<Engine> StartEngine() {
    return std::make_unique<Engine>(&kind_->cluster(), &kind_->executor(),
                                    Engine::Options{.seed = ++engines_});
  }
  bool Can(Capability capability) { return kind_->admin().Can(capability); }

  static std::string NameOf(int i) {
    char name[16];
    std::snprintf(name, sizeof name, "p%06d", i);
    return name;
  }
  static Row RowOf(int i) {
    return {Value::Text(NameOf(i)), Value::Text("s" + std::to_string(i / 100)), Value::Int64(i)};
  }
  std::string KeyOf(int i) const { return *KeyFormat(*table_).Encode(RowOf(i)); }

  void Fill(int rows) {
    for (int i = 0; i < rows; i += 500) {
      std::vector<Write> writes;
      for (int j = i; j < std::min(rows, i + 500); ++j) writes.push_back({.row = RowOf(j)});
      for (const Status& status : engine_->Apply(table_, std::move(writes)))
        ASSERT_TRUE(status.ok()) << status;
    }
  }
  Status Put(Engine& engine, Row row) {
    return engine.Apply(table_, {{.row = std::move(row)}}).front();
  }
  std::vector<RegionInfo> Regions(std::vector<KeyRange> stale = {}) {
    auto regions = kind_->Regions("packages", std::move(stale));
    EXPECT_TRUE(regions.ok()) << regions.status();
    return regions.ok() ? *regions : std::vector<RegionInfo>();
  }
  void SplitAll(int times) {
    for (int i = 0; i < times; ++i) {
      const Status status = kind_->SplitAll("packages");
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // Spreads the regions over the servers.
  void Spread() {
    const auto servers = kind_->Servers();
    ASSERT_TRUE(servers.ok()) << servers.status();
    size_t i = 0;
    for (const RegionInfo& region : Regions()) {
      const std::string& target = (*servers)[i++ % servers->size()];
      if (region.server == target) continue;
      const Status moved = kind_->Move(region.id, target);
      ASSERT_TRUE(moved.ok()) << moved;
    }
  }

  std::vector<Row> Find(Engine& engine, SearchOptions options, Explain* explain = nullptr) {
    RowStream stream = engine.Search(table_, std::move(options));
    std::vector<Row> rows;
    while (true) {
      auto row = stream.Next();
      EXPECT_TRUE(row.ok()) << row.status();
      if (!row.ok() || !row->has_value()) break;
      rows.push_back(std::move(**row));
    }
    if (explain != nullptr) *explain = stream.explain();
    return rows;
  }
  std::vector<Row> Find(Predicate predicate, Explain* explain = nullptr) {
    return Find(*engine_, {.predicate = std::move(predicate)}, explain);
  }
  static Predicate Section(const std::string& section) {
    return Predicate::Compare(kSection, Op::kEq, Value::Text(section));
  }
  static Predicate Size(int64_t size) {
    return Predicate::Compare(kSize, Op::kEq, Value::Int64(size));
  }
  // The rows of RowOf up to `rows`, and no other, by key, by each index and all at once.
  void ExpectAll(int rows) {
    EXPECT_EQ(Find(Predicate::True()).size(), static_cast<size_t>(rows));
    for (int i = 0; i < rows; i += std::max(1, rows / 20)) {
      EXPECT_EQ(Find(Size(i)), std::vector<Row>{RowOf(i)});
      EXPECT_EQ(Find(Predicate::Compare(kName, Op::kEq, Value::Text(NameOf(i)))),
                std::vector<Row>{RowOf(i)});
      EXPECT_EQ(Find(Section("s" + std::to_string(i / 100))).size(),
                static_cast<size_t>(std::min(100, rows - i / 100 * 100)));
    }
  }
  void ExpectClean(uint64_t rows) {
    const auto report = kind_->Settle("packages");
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->rows, rows);
    EXPECT_EQ(report->entries, rows * table_->indexes.size());
  }

  std::unique_ptr<ClusterUnderTest> kind_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
  uint64_t engines_ = 0;
};

// ---- Searches

TEST_P(ClusterSuite, ARareValueIsAskedOfOneRegionAfterSplitsMovesAndARestart) {
  Fill(2000);
  SplitAll(3);
  Spread();
  for (int again = 0; again < 2; ++again) {
    ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
    Explain explain;
    EXPECT_EQ(Find(Section("s7"), &explain).size(), 100u);
    EXPECT_EQ(explain.regions_total, 8u) << explain.ToText();
    EXPECT_LE(explain.regions_asked, 2u) << explain.ToText();
    EXPECT_EQ(explain.regions_asked + explain.regions_excluded_by_filter +
                  explain.regions_excluded_by_range + explain.regions_excluded_by_key,
              explain.regions_total);
    EXPECT_EQ(Find(Section("none"), &explain).size(), 0u);
    EXPECT_EQ(explain.regions_asked, explain.false_positive_regions) << explain.ToText();
    EXPECT_EQ(
        Find(Predicate::Between(kSize, Value::Int64(1000), Value::Int64(1009)), &explain).size(),
        10u);
    EXPECT_LE(explain.regions_asked, 2u) << explain.ToText();
    EXPECT_EQ(Find(Predicate::True()).size(), 2000u);
    if (!kind_->can_restart()) break;
    engine_.reset();
    const Status restarted = kind_->Restart();
    ASSERT_TRUE(restarted.ok()) << restarted;
    engine_ = StartEngine();
  }
}

// Entries that lie outside of the keys asked for are passed over, a bounded number in a request;
// the next one goes on behind them.
TEST_P(ClusterSuite, ASearchByIndexGetsPastAnyNumberOfEntriesOfOtherKeys) {
  Open({.small_pages = true});
  Fill(1000);
  const auto rows = Find(Predicate::And({Predicate::Compare(kName, Op::kGe, Value::Text("p000900")),
                                         Predicate::Compare(kSize, Op::kGe, Value::Int64(0))}));
  EXPECT_EQ(rows.size(), 100u);
}

// Planning is not exponential: none of the alternatives has an index that helps.
TEST_P(ClusterSuite, ManyAlternativesThatNoIndexHelpsArePlannedAtOnce) {
  Fill(100);
  std::vector<Predicate> all;
  for (int i = 0; i < 16; ++i) {
    all.push_back(Predicate::Or(
        {Predicate::IsNull(kSection),
         Predicate::Compare(kSection, Op::kNe, Value::Text("x" + std::to_string(i)))}));
  }
  EXPECT_EQ(Find(Predicate::And(std::move(all))).size(), 100u);
}

TEST_P(ClusterSuite, RowsComeInKeyOrderAcrossRegionsUpToTheLimit) {
  Open({.small_pages = true});
  Fill(400);
  SplitAll(2);
  Spread();
  for (const uint64_t limit : {0, 1, 37, 150, 1000}) {
    const auto rows =
        Find(*engine_, {.predicate = Predicate::Compare(kSize, Op::kGe, Value::Int64(50)),
                        .limit = limit,
                        .key_order = true});
    ASSERT_EQ(rows.size(), limit == 0 ? 350u : std::min<uint64_t>(350, limit));
    for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], RowOf(50 + static_cast<int>(i)));
  }
}

TEST_P(ClusterSuite, ARowThatMatchesTwoAlternativesComesOnce) {
  Fill(300);
  SplitAll(1);
  EXPECT_EQ(Find(Predicate::Or({Section("s1"),
                                Predicate::Between(kSize, Value::Int64(150), Value::Int64(209))}))
                .size(),
            110u);
  EXPECT_EQ(Find(Predicate::In(kSize, {Value::Int64(7), Value::Int64(7), Value::Int64(8)})).size(),
            2u);
}

TEST_P(ClusterSuite, AnEqualityAndARangeOfAnotherIndexAreAskedTogether) {
  Fill(300);
  const auto rows = Find(Predicate::And(
      {Section("s1"), Predicate::Between(kSize, Value::Int64(90), Value::Int64(104))}));
  EXPECT_EQ(rows.size(), 5u);
}

TEST_P(ClusterSuite, ColumnsThatAreNotWantedAreNull) {
  Fill(10);
  const auto rows = Find(*engine_, {.predicate = Size(3), .columns = std::vector<uint32_t>{kSize}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0][kSize], Value::Int64(3));
  EXPECT_TRUE(rows[0][kSection].is_null());
}

// ---- Writes

TEST_P(ClusterSuite, AConditionIsJudgedOnTheRowAsItStands) {
  const auto apply = [&](Write write) {
    return engine_->Apply(table_, {std::move(write)}).front().code();
  };
  const Predicate small = Predicate::Compare(kSize, Op::kLt, Value::Int64(10));
  EXPECT_EQ(apply({.row = RowOf(1), .condition = small}), StatusCode::kFailedPrecondition);
  EXPECT_EQ(apply({.kind = Write::Kind::kUpdate, .row = RowOf(1), .columns = {kSize}}),
            StatusCode::kNotFound);
  EXPECT_EQ(apply({.kind = Write::Kind::kInsert, .row = RowOf(1)}), StatusCode::kOk);
  EXPECT_EQ(apply({.kind = Write::Kind::kInsert, .row = RowOf(1)}), StatusCode::kAlreadyExists);
  Row row = RowOf(1);
  row[kSize] = Value::Int64(77);
  EXPECT_EQ(apply({.row = row, .condition = small}), StatusCode::kOk);
  EXPECT_EQ(apply({.row = RowOf(1), .condition = small}), StatusCode::kFailedPrecondition);
  row[kSection] = Value::Text("not set");
  row[kSize] = Value::Int64(78);
  EXPECT_EQ(apply({.kind = Write::Kind::kUpdate, .row = row, .columns = {kSize}}), StatusCode::kOk);
  row[kSection] = RowOf(1)[kSection];
  EXPECT_EQ(Find(Size(78)), std::vector<Row>{row});
  EXPECT_TRUE(Find(Size(77)).empty());
  EXPECT_TRUE(Find(Size(1)).empty());
  EXPECT_EQ(apply({.kind = Write::Kind::kDelete, .row = row}), StatusCode::kOk);
  EXPECT_EQ(apply({.kind = Write::Kind::kDelete, .row = row}), StatusCode::kOk);
  EXPECT_TRUE(Find(Predicate::True()).empty());
  ExpectClean(0);
}

TEST_P(ClusterSuite, WhatIsAcknowledgedIsFoundByAnotherCoordinatorAtOnceWhileRegionsChange) {
  Fill(200);
  SplitAll(2);
  Spread();
  const auto other = StartEngine();
  ASSERT_TRUE(other->WaitUntilRouted(*table_, seconds(60)));
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok()) << servers.status();
  for (int i = 0; i < 60; ++i) {
    if (i % 6 == 5) {  // not waited for
      const auto regions = Regions();
      const RegionInfo& region = regions[static_cast<size_t>(i) % regions.size()];
      kind_->admin().MoveRegion(region.id, (*servers)[static_cast<size_t>(i) % servers->size()],
                                [](const Status&) {});
    }
    const Row row{Value::Text(NameOf(i * 3)), Value::Text("new" + std::to_string(i)),
                  Value::Int64(10'000 + i)};
    const Status put = Put(*engine_, row);
    ASSERT_TRUE(put.ok()) << put;
    const auto by_section = Find(*other, {.predicate = Section("new" + std::to_string(i))});
    ASSERT_EQ(by_section, std::vector<Row>{row}) << i << kind_->Describe(*table_, row);
    ASSERT_EQ(Find(*other, {.predicate = Size(10'000 + i)}), std::vector<Row>{row}) << i;
    ASSERT_TRUE(Find(*other, {.predicate = Size(i * 3)}).empty()) << i;
  }
  ExpectClean(200);
}

// ---- Regions

TEST_P(ClusterSuite, SplitsAndMergesKeepEveryRowFindable) {
  Fill(600);
  ASSERT_EQ(Regions().size(), 1u);
  const Status split = kind_->Split(Regions()[0].id, KeyOf(100));
  ASSERT_TRUE(split.ok()) << split;
  ASSERT_EQ(Regions().size(), 2u);
  EXPECT_EQ(Regions()[1].start, KeyOf(100));
  EXPECT_EQ(Regions()[0].end, KeyOf(100));
  SplitAll(1);
  ExpectAll(600);
  ExpectClean(600);
  Spread();
  while (Regions().size() > 1) {
    const Status merged = kind_->Merge(Regions()[0].id);
    ASSERT_TRUE(merged.ok()) << merged;
  }
  ExpectAll(600);
  ExpectClean(600);
}

TEST_P(ClusterSuite, OnlyTheRegionsOfStaleKeysAreListed) {
  Fill(40);
  SplitAll(2);
  const std::vector<RegionInfo> all = Regions();
  ASSERT_EQ(all.size(), 4u);
  const std::vector<RegionInfo> middle = Regions({{all[1].start, all[1].end}});
  ASSERT_EQ(middle.size(), 1u);
  EXPECT_EQ(middle[0].id, all[1].id);
  EXPECT_EQ(middle[0].name, all[1].name);
  // A key: the least range that holds it. No bound: to the end of the table.
  EXPECT_EQ(Regions({{all[2].start, all[2].start + '\0'}}).size(), 1u);
  EXPECT_EQ(Regions({{all[2].start, ""}}).size(), 2u);
  EXPECT_EQ(Regions({{"", all[1].start}, {all[3].start, ""}}).size(), 2u);
}

TEST_P(ClusterSuite, ARegionIsServedWhereItWasMovedTo) {
  Fill(100);
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok()) << servers.status();
  for (const std::string& server : *servers) {
    const Status moved = kind_->Move(Regions()[0].id, server);
    ASSERT_TRUE(moved.ok()) << moved;
    EXPECT_EQ(Regions()[0].server, server);
    EXPECT_EQ(Find(Section("s0")).size(), 100u);
  }
  EXPECT_FALSE(kind_->Move(Regions()[0].id, "no such server").ok());
}

// ---- Servers

TEST_P(ClusterSuite, AfterAKilledServerEveryRowIsFoundAndWritable) {
  if (!Can(Capability::kKillServer)) GTEST_SKIP() << "it cannot kill a server";
  Fill(400);
  SplitAll(2);
  Spread();
  const Status killed = kind_->Kill(Regions()[1].server);
  ASSERT_TRUE(killed.ok()) << killed;
  ExpectAll(400);
  Fill(400);
  ExpectAll(400);
  ExpectClean(400);
}

TEST_P(ClusterSuite, WhoPausesLosesNothing) {
  if (!Can(Capability::kPauseServer) || !Can(Capability::kResumeServer)) {
    GTEST_SKIP() << "it cannot pause a server and let it go on";
  }
  Fill(200);
  SplitAll(1);
  Spread();
  const auto other = StartEngine();
  ASSERT_TRUE(other->WaitUntilRouted(*table_, seconds(60)));
  const RegionInfo region = Regions()[1];
  const Status paused = kind_->Pause(region.server);
  ASSERT_TRUE(paused.ok()) << paused;
  // Whoever sends it to the sleeper does not learn what came of it, and sends it again. Nobody goes
  // on believing what the sleeper last said.
  const Row row{Value::Text(NameOf(199)), Value::Text("new"), Value::Int64(-1)};
  Status put = DeadlineExceeded("not sent yet");
  const Time end = kind_->Soon().deadline;
  while (put.code() == StatusCode::kDeadlineExceeded && kind_->executor().Now() < end) {
    put = Put(*engine_, row);
  }
  ASSERT_TRUE(put.ok()) << put;
  EXPECT_EQ(Find(*other, {.predicate = Section("new")}), std::vector<Row>{row});
  const Status resumed = kind_->Resume(region.server);
  ASSERT_TRUE(resumed.ok()) << resumed;
  EXPECT_EQ(Find(*other, {.predicate = Section("new")}), std::vector<Row>{row});
  EXPECT_EQ(Find(*other, {.predicate = Predicate::True()}).size(), 200u);
  ExpectClean(200);
}

TEST_P(ClusterSuite, StatusTellsOfServers) {
  if (!Can(Capability::kPauseServer) || !Can(Capability::kKillServer)) {
    GTEST_SKIP() << "it cannot pause and kill servers";
  }
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok()) << servers.status();
  ASSERT_GE(servers->size(), 3u);
  ASSERT_TRUE(kind_->Pause((*servers)[1]).ok());
  ASSERT_TRUE(kind_->Kill((*servers)[2]).ok());
  const auto status = kind_->Ask<ClusterStatus>([&](auto done) { kind_->admin().GetStatus(done); });
  ASSERT_TRUE(status.ok()) << status.status();
  ASSERT_EQ(status->servers.size(), servers->size());
  EXPECT_EQ(status->servers[0].info.state, ServerInfo::State::kLive);
  EXPECT_EQ(status->servers[1].info.state, ServerInfo::State::kPaused);
  EXPECT_EQ(status->servers[2].info.state, ServerInfo::State::kDead);
  EXPECT_EQ(kind_->Kill("no such server").code(), StatusCode::kNotFound);
}

TEST(ClusterCapabilities, WhatAClusterCannotDoIsAnAnswer) {
  const Status status = CannotDo(Capability::kPauseServer);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "this cluster cannot pause a server");
}

// ---- Schemas

TEST_P(ClusterSuite, AnIndexComesAndGoesWhileTheTableIsInUse) {
  Fill(300);
  SplitAll(1);
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
  const IndexSpec both{.name = "both", .columns = {kSection, kSize}, .expected_values = 500};
  for (int again = 0; again < 2; ++again) {
    const auto made = kind_->Ask<TableSchema>(
        [&](auto done) { kind_->admin().CreateIndex("packages", both, done); });
    ASSERT_TRUE(made.ok()) << made.status();
    // By the engine's old schema, by a search that may scan, and when it is complete.
    const Row row{Value::Text("late" + std::to_string(again)), Value::Text("s1"),
                  Value::Int64(5000 + again)};
    EXPECT_TRUE(Put(*engine_, row).ok());
    engine_->ForgetTable("packages");
    table_ = *engine_->Table("packages");
    const auto find = [&] { return Find(Predicate::And({Section("s1"), Size(5000 + again)})); };
    EXPECT_EQ(find(), std::vector<Row>{row});
    ExpectClean(301 + static_cast<uint64_t>(again));
    const auto progress = kind_->Ask<IndexProgress>(
        [&](auto done) { kind_->admin().GetIndexProgress("packages", "both", done); });
    ASSERT_TRUE(progress.ok()) << progress.status();
    EXPECT_EQ(progress->regions, 2u);
    EXPECT_EQ(progress->complete, 2u);
    EXPECT_EQ(find(), std::vector<Row>{row});
    const auto dropped = kind_->Ask<TableSchema>(
        [&](auto done) { kind_->admin().DropIndex("packages", "both", done); });
    ASSERT_TRUE(dropped.ok()) << dropped.status();
    EXPECT_EQ(find(), std::vector<Row>{row});
    table_ = std::make_shared<const TableSchema>(*dropped);
    engine_->ForgetTable("packages");
    EXPECT_EQ(find(), std::vector<Row>{row});
  }
}

TEST_P(ClusterSuite, AColumnIsAddedUnderACoordinatorThatKnowsAnOlderSchema) {
  Fill(50);
  const auto other = StartEngine();
  const SchemaPtr old = *other->Table("packages");
  const auto added = kind_->Ask<TableSchema>([&](auto done) {
    kind_->admin().AddColumn("packages", {.name = "extra", .type = Type::kInt64}, done);
  });
  ASSERT_TRUE(added.ok()) << added.status();
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  ASSERT_EQ(table_->columns.size(), 4u);
  Row row = RowOf(7);
  row.push_back(Value::Int64(99));
  ASSERT_TRUE(Put(*engine_, row).ok());
  EXPECT_EQ(Find(Predicate::Compare(3, Op::kEq, Value::Int64(99))), std::vector<Row>{row});
  EXPECT_EQ(Find(Predicate::IsNull(3)).size(), 49u);
  // Who updates a column by the old schema leaves the new one as it is.
  Row update = RowOf(7);
  update[kSize] = Value::Int64(-7);
  const Status updated =
      other->Apply(old, {{.kind = Write::Kind::kUpdate, .row = update, .columns = {kSize}}})
          .front();
  ASSERT_TRUE(updated.ok()) << updated;
  row[kSize] = Value::Int64(-7);
  EXPECT_EQ(Find(Size(-7)), std::vector<Row>{row});
}

TEST_P(ClusterSuite, ATableThatIsMadeAnewUnderItsNameIsEmpty) {
  Fill(100);
  const TableSchema schema = *table_;
  const Status dropped = AwaitStatus(&kind_->executor(), kind_->Soon(), [&](auto done) {
    kind_->admin().DropTable("packages", done);
  });
  ASSERT_TRUE(dropped.ok()) << dropped;
  EXPECT_EQ(kind_->Regions("packages").status(), NotFound("no table \"packages\""));
  TableSchema again;
  again.name = schema.name;
  again.columns = schema.columns;
  again.key = schema.key;
  for (const IndexSpec& index : schema.indexes) {
    again.indexes.push_back({.name = index.name, .columns = index.columns});
  }
  const auto made = kind_->CreateTable(again);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_NE((*made)->id, schema.id);
  engine_->ForgetTable("packages");
  table_ = *engine_->Table("packages");
  EXPECT_TRUE(Find(Predicate::True()).empty());
  Fill(50);
  ExpectAll(50);
  EXPECT_EQ(kind_->CreateTable(again).status().code(), StatusCode::kAlreadyExists);
}

// ---- Jobs, names

TEST_P(ClusterSuite, ACheckIsAJobThatBringsItsReport) {
  Fill(20);
  const auto job = kind_->Run({.kind = JobSpec::Kind::kCheck, .table = "packages"});
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->check.ok());
  EXPECT_EQ(job->check.rows, 20u);
  EXPECT_EQ(job->check.entries, 40u);
  EXPECT_EQ(job->done, job->total);
}

TEST_P(ClusterSuite, EveryJobEndsAndLeavesTheTableAsItWas) {
  Fill(300);
  SplitAll(2);
  const std::pair<JobSpec::Kind, std::optional<Capability>> kinds[] = {
      {JobSpec::Kind::kRebuildIndex, {}},
      {JobSpec::Kind::kBalance, Capability::kBalance},
      {JobSpec::Kind::kCompact, Capability::kCompact}};
  for (const auto& [kind, capability] : kinds) {
    if (capability.has_value() && !Can(*capability)) continue;
    const JobSpec spec{.kind = kind, .table = "packages"};
    const auto job = kind_->Run(spec);
    ASSERT_TRUE(job.ok()) << spec.ToString() << ": " << job.status();
    ExpectAll(300);
    ExpectClean(300);
  }
  const auto servers = kind_->Servers();
  if (!Can(Capability::kBalance) || servers->size() < Regions().size()) return;
  std::map<std::string, int> regions;
  for (const RegionInfo& region : Regions()) ++regions[region.server];
  for (const auto& [server, number] : regions) EXPECT_LE(number, 1) << server;
}

TEST_P(ClusterSuite, StartingAJobAnswersBeforeItsWorkIsDone) {
  if (!kind_->has_virtual_clock()) GTEST_SKIP() << "its work may be done at once";
  Fill(20);
  std::optional<Result<uint64_t>> started;
  kind_->admin().StartJob(
      {.kind = JobSpec::Kind::kRebuildIndex, .table = "packages", .index = "size"},
      [&](Result<uint64_t> job) { started.emplace(std::move(job)); });
  ASSERT_TRUE(started.has_value() && started->ok());
  const uint64_t job = **started;
  const auto info = [&] {
    return kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(job, done); });
  };
  ASSERT_TRUE(info().ok());
  EXPECT_FALSE(info()->ended);
  Sleep(&kind_->executor(), seconds(5));
  ASSERT_TRUE(info().ok());
  EXPECT_TRUE(info()->ended);
  EXPECT_TRUE(info()->status.ok()) << info()->status;
  EXPECT_GE(info()->total, 1u);
}

TEST_P(ClusterSuite, AJobThatIsNotWaitedForGoesOn) {
  if (!kind_->has_virtual_clock()) GTEST_SKIP() << "it may have ended at once";
  Fill(20);
  const Wait none{.deadline = kind_->executor().Now()};
  const auto job = AwaitJob(&kind_->admin(), &kind_->executor(), none,
                            {.kind = JobSpec::Kind::kCheck, .table = "packages"});
  ASSERT_EQ(job.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(job.status().message().find("which goes on"), std::string::npos) << job.status();
  Sleep(&kind_->executor(), seconds(5));
  const auto info = kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(1, done); });
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_TRUE(info->ended);
}

TEST_P(ClusterSuite, WhatCannotBeBegunIsNoJob) {
  for (const JobSpec& spec :
       {JobSpec{.kind = JobSpec::Kind::kCheck, .table = "no"},
        {.kind = JobSpec::Kind::kRebuildIndex, .table = "packages", .index = "no"}}) {
    const auto job = kind_->Run(spec);
    EXPECT_EQ(job.status().code(), StatusCode::kNotFound) << job.status();
    EXPECT_NE(job.status().message().find(spec.ToString()), std::string::npos) << job.status();
  }
  const auto job = kind_->Ask<JobInfo>([&](auto done) { kind_->admin().GetJob(77, done); });
  EXPECT_EQ(job.status().code(), StatusCode::kNotFound);
}

TEST_P(ClusterSuite, ErrorsNameTablesAndRegionsOneWay) {
  EXPECT_EQ(kind_->Regions("no").status(), NotFound("no table \"no\""));
  const auto progress = kind_->Ask<IndexProgress>(
      [&](auto done) { kind_->admin().GetIndexProgress("packages", "no", done); });
  EXPECT_EQ(progress.status(), NotFound("table \"packages\" has no index \"no\""));
  const auto servers = kind_->Servers();
  ASSERT_TRUE(servers.ok()) << servers.status();
  for (const auto& [doing, status] : {std::pair("split", kind_->Split(RegionId(99))),
                                      {"merge", kind_->Merge(RegionId(99))},
                                      {"move", kind_->Move(RegionId(99), servers->front())}}) {
    EXPECT_EQ(status, NotFound(std::string("cannot ") + doing + " region 99: there is none"));
  }
}

// ---- Messages

class ClusterMessages : public ClusterSuite {
 protected:
  static constexpr int kRows = 40;
  // So far that it is none which counts up from a small number.
  static constexpr uint64_t kOtherEpoch = 1'000'000'007;

  void SetUp() override {
    ClusterSuite::SetUp();
    Fill(kRows);
    region_ = Regions()[0];
    server_ = kind_->cluster().Server(region_.server);
  }
  pb::SearchRange Range() const {
    pb::SearchRange range;
    range.set_region_id(region_.id.number());
    range.set_epoch(region_.epoch);
    range.set_start(region_.start);
    range.set_end(region_.end);
    return range;
  }
  pb::SearchRequest Request(const Predicate& predicate) const {
    pb::SearchRequest request;
    request.set_table_id(table_->id);
    request.set_schema_version(table_->version);
    *request.add_branches() = MakePlan(*table_, predicate, {}).branches[0];
    *request.add_ranges() = Range();
    return request;
  }
  Result<pb::SearchReply> Search(const pb::SearchRequest& request) {
    return kind_->Ask<pb::SearchReply>([&](auto done) { server_->Search(request, done); });
  }
  Result<pb::PollReply> Poll(const pb::PollRequest& request) {
    return kind_->Ask<pb::PollReply>([&](auto done) { server_->Poll(request, done); });
  }

  RegionInfo region_;
  std::shared_ptr<RegionServer> server_;
};

TEST_P(ClusterMessages, TimeThatIsHardlyAnyComesSomeWayAllTheSame) {
  pb::SearchRequest request = Request(Predicate::Compare(kSize, Op::kGe, Value::Int64(0)));
  request.set_timeout_ns(1);
  std::set<std::string> keys;
  for (int i = 0; i <= kRows; ++i) {
    const auto reply = Search(request);
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_EQ(reply->results_size(), 1);
    const pb::RangeResult& result = reply->results(0);
    ASSERT_FALSE(result.has_error()) << result.error().message();
    for (const pb::FoundRow& row : result.rows()) {
      EXPECT_TRUE(keys.insert(row.key()).second) << "twice";
    }
    if (result.resume().empty()) break;
    EXPECT_NE(result.resume(), request.ranges(0).resume()) << "no progress";
    request.mutable_ranges(0)->set_resume(result.resume());
  }
  EXPECT_EQ(keys.size(), static_cast<size_t>(kRows));
}

TEST_P(ClusterMessages, AWrongNumberIsAnAnswerOfItsRangeAlone) {
  pb::SearchRequest request = Request(Section("s0"));
  for (const uint64_t id : {uint64_t{1} << 63, uint64_t{0}, uint64_t{987'654}}) {
    *request.add_ranges() = Range();
    request.mutable_ranges(request.ranges_size() - 1)->set_region_id(id);
  }
  *request.add_ranges() = Range();
  request.mutable_ranges(4)->set_epoch(region_.epoch + kOtherEpoch);
  const auto reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 5);
  EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
  EXPECT_EQ(reply->results(0).rows_size(), kRows);
  EXPECT_EQ(reply->results(1).error().code(), pb::Error::INVALID_ARGUMENT);
  EXPECT_EQ(reply->results(2).error().code(), pb::Error::INVALID_ARGUMENT);
  EXPECT_EQ(reply->results(3).error().code(), pb::Error::UNAVAILABLE);
  EXPECT_EQ(reply->results(4).error().code(), pb::Error::UNAVAILABLE);
}

TEST_P(ClusterMessages, AnIndexThatARegionDoesNotKnowIsAScanAColumnIsNoAnswer) {
  pb::SearchRequest request = Request(Section("s0"));
  request.set_schema_version(table_->version + 1);  // which no region follows yet
  request.mutable_branches(0)->mutable_streams(0)->set_index_id(99);
  auto reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->results_size(), 1);
  EXPECT_FALSE(reply->results(0).has_error()) << reply->results(0).error().message();
  EXPECT_EQ(reply->results(0).rows_size(), kRows);
  EXPECT_EQ(reply->results(0).counters().scanned_regions(), 1u);
  request.add_columns(99);
  reply = Search(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->results(0).error().code(), pb::Error::UNAVAILABLE);
  EXPECT_EQ(reply->results(0).error().schema_version(), table_->version);
}

TEST_P(ClusterMessages, WritesToAWrongRegionAreRefusedAndNotDone) {
  pb::MutateRequest request;
  request.set_table_id(table_->id);
  request.set_schema_version(table_->version);
  for (const auto& [id, epoch] :
       {std::pair(region_.id.number(), region_.epoch + kOtherEpoch), {uint64_t{987'654}, region_.epoch}}) {
    auto* region = request.add_regions();
    region->set_region_id(id);
    region->set_epoch(epoch);
    auto* mutation = region->add_mutations();
    mutation->set_kind(pb::Mutation::DELETE);
    mutation->set_key(KeyOf(3));
  }
  const auto reply =
      kind_->Ask<pb::MutateReply>([&](auto done) { server_->Mutate(request, done); });
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->regions_size(), 2);
  for (const auto& region : reply->regions()) {
    EXPECT_EQ(region.error().code(), pb::Error::UNAVAILABLE) << region.error().message();
  }
  EXPECT_EQ(Find(Size(3)).size(), 1u);
}

TEST_P(ClusterMessages, APollOfANewcomerOrOfAnotherLifeBringsTheWholeState) {
  pb::PollRequest request;
  request.set_coordinator(12345);
  const auto first = Poll(request);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->full());
  EXPECT_NE(first->start_code(), 0u);
  request.set_start_code(first->start_code() + 1);
  request.set_applied(first->to());
  const auto other = Poll(request);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_TRUE(other->full());
  EXPECT_EQ(other->start_code(), first->start_code());
  request.set_start_code(first->start_code());
  const auto next = Poll(request);
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_FALSE(next->full());
  EXPECT_EQ(next->from(), first->to());
}

const auto kNameOfKind = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(Every, ClusterSuite, ::testing::ValuesIn(ClusterKinds()), kNameOfKind);
INSTANTIATE_TEST_SUITE_P(Every, ClusterMessages, ::testing::ValuesIn(ClusterKinds()), kNameOfKind);

}  // namespace
}  // namespace tamis
