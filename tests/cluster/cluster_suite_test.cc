// Runs the suite once for each of ClusterKinds().
#include "tests/cluster/cluster_suite.h"

namespace tamis {
namespace {

using std::chrono::seconds;
using Op = Predicate::Op;

// ---- Searches

TEST_P(ClusterSuite, ARareValueIsAskedOfOneRegionAfterSplitsMovesAndARestart) {
  Fill(2000);
  SplitAll(3);
  Spread();
  for (int again = 0; again < 2; ++again) {
    Explain explain;
    EXPECT_EQ(FindRouted(Section("s7"), &explain).size(), 100u);
    EXPECT_EQ(explain.regions_total, 8u) << explain.ToText();
    EXPECT_LE(explain.regions_asked, 2u) << explain.ToText();
    EXPECT_EQ(explain.regions_asked + explain.regions_excluded_by_filter +
                  explain.regions_excluded_by_range + explain.regions_excluded_by_key,
              explain.regions_total)
        << explain.ToText();
    EXPECT_EQ(FindRouted(Section("none"), &explain).size(), 0u);
    EXPECT_EQ(explain.regions_asked, explain.false_positive_regions) << explain.ToText();
    EXPECT_EQ(
        FindRouted(Predicate::Between(kSize, Value::Int64(1000), Value::Int64(1009)), &explain)
            .size(),
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

// A server sleeps beyond its lease, so its region is asked. Before it answers, the region moves to
// another server, whose filter excludes it. Explain must count the region once.
TEST_P(ClusterSuite, ARegionThatIsExcludedAfterItWasAskedInVainIsCountedOnce) {
  if (!kind_->has_virtual_clock()) GTEST_SKIP() << "the moment between lease and move is not ours";
  Fill(200);
  SplitAll(1);
  Spread();
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
  const Status paused = kind_->Pause(Regions()[1].server);
  ASSERT_TRUE(paused.ok()) << paused;
  while (engine_->WaitUntilRouted(*table_, {}))
    Sleep(&kind_->executor(), std::chrono::milliseconds(10));
  Explain explain;
  EXPECT_EQ(Find(Section("s0"), &explain).size(), 100u);
  EXPECT_EQ(explain.regions_asked, 1u) << explain.ToText();
  EXPECT_EQ(explain.regions_excluded_by_range + explain.regions_excluded_by_filter, 1u)
      << explain.ToText();
  EXPECT_GT(explain.requests, 1u) << explain.ToText();
}

// Entries that lie outside of the keys asked for are passed over, a bounded number in a request;
// the next one goes on after them.
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

TEST_P(ClusterSuite, AcknowledgedRowIsFoundByAnotherCoordinatorAtOnceWhileRegionsChange) {
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

TEST_P(ClusterSuite, PausedServerLosesNothing) {
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
  // A write sent to the sleeping server has an unknown outcome and is sent again. The sleeper's
  // last report is not believed any more.
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

// In each region the index that has the fewest entries finds the rows, whatever comes first in the
// condition, and the search tells what was expected of it and what was read.
TEST_P(ClusterSuite, TheIndexWithTheFewestEntriesLeads) {
  Fill(600);
  SplitAll(1);
  std::vector<Write> writes;  // all of one section, and no two of one size
  for (int i = 0; i < 600; ++i) {
    Row row = RowOf(i);
    row[kSection] = Value::Text("common");
    writes.push_back({.row = std::move(row)});
  }
  for (const Status& status : engine_->Apply(table_, std::move(writes))) {
    ASSERT_TRUE(status.ok()) << status;
  }
  ExpectClean(600);
  const auto read_of = [&](const Predicate& few, size_t rows) {
    Explain explain;
    EXPECT_EQ(Find(Predicate::And({Section("common"), few}), &explain).size(), rows);
    EXPECT_LE(explain.rows_read, rows) << explain.ToText();
    EXPECT_LE(explain.entries_read, 4 * (rows + 4) * explain.regions_asked) << explain.ToText();
    for (const Explain::IndexUse& use : explain.uses) {
      EXPECT_EQ(use.led, use.index == "size" ? explain.regions_asked : 0) << explain.ToText();
    }
    return explain;
  };
  EXPECT_LE(read_of(Size(77), 1).entries_expected, 4u);  // counters may be shared
  const auto range = Predicate::Between(kSize, Value::Int64(290), Value::Int64(309));
  const uint64_t expected = read_of(range, 20).entries_expected;
  EXPECT_GE(expected, 20u);
  EXPECT_LE(expected, 40u);  // the lower half may still have the entries of the upper one
}

// Rows whose columns are all in the index are made of its entries, but for those with a cut value.
// One region: beside the entries that a split leaves behind a scan may cost less.
TEST_P(ClusterSuite, RowsAreMadeOfEntriesThatProveThem) {
  Fill(200);
  ExpectClean(200);
  const auto find = [&](Explain* explain) {
    auto rows = Find(*engine_,
                     {.predicate = Predicate::And(
                          {Predicate::NotNull(kSection), Predicate::Prefix(kSection, "s")}),
                      .columns = std::vector<uint32_t>{0, kSection}},
                     explain);
    std::ranges::sort(rows);
    return rows;
  };
  std::vector<Row> expected;
  for (int i = 0; i < 200; ++i) {
    Row row = RowOf(i);
    row[kSize] = Value();
    expected.push_back(std::move(row));
  }
  std::ranges::sort(expected);
  Explain explain;
  EXPECT_EQ(find(&explain), expected);
  EXPECT_EQ(explain.rows_read, 0u) << explain.ToText();
  EXPECT_EQ(explain.rows_from_entries, 200u) << explain.ToText();
  EXPECT_NE(explain.ToText().find("index only: 0 rows read"), std::string::npos);
  // A value that is cut in its entry.
  Row& longer = expected[7];
  longer[kSection] = Value::Text(std::string(3000, 's'));
  Row written = longer;
  written[kSize] = Value::Int64(5);
  ASSERT_TRUE(Put(*engine_, written).ok());
  std::ranges::sort(expected);
  EXPECT_EQ(find(&explain), expected);
  EXPECT_EQ(explain.rows_read, 1u) << explain.ToText();
  EXPECT_EQ(explain.rows_from_entries, 199u) << explain.ToText();
}

// The searches' own counts equal those of the servers.
TEST_P(ClusterSuite, ServersCountWhatTheyAreAsked) {
  Fill(500);
  SplitAll(2);
  ASSERT_TRUE(engine_->WaitUntilRouted(*table_, seconds(60)));
  const auto counted = [&] {
    Explain sum;
    const auto status =
        kind_->Ask<ClusterStatus>([&](auto done) { kind_->admin().GetStatus(done); });
    EXPECT_TRUE(status.ok()) << status.status();
    if (!status.ok()) return sum;
    for (const ServerStatus& server : status->servers) {
      sum.requests += server.searches;
      sum.regions_asked += server.regions_searched;
    }
    return sum;
  };
  const Explain before = counted();
  Explain said;
  for (int i = 0; i < 20; ++i) {
    Explain explain;
    Find(Section("s" + std::to_string(i)), &explain);
    said.Add(explain);
  }
  const Explain after = counted();
  EXPECT_EQ(after.requests - before.requests, said.requests);
  // A region is searched once more for each further page.
  const uint64_t regions = after.regions_asked - before.regions_asked;
  EXPECT_GE(regions, said.regions_asked);
  EXPECT_LE(regions, said.regions_asked + said.requests);
  EXPECT_LT(said.regions_asked, said.regions_total);
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

// Each call names something that does not exist, so it changes nothing and may be refused. Only the
// refusal "this cluster has no such operation" must agree with Can().
TEST_P(ClusterSuite, CapabilitiesMatchTheCalls) {
  ClusterAdmin& admin = kind_->admin();
  const std::string nobody = "no such server";
  const auto order = [&](auto&& call) {
    return AwaitStatus(&kind_->executor(), kind_->Soon(), std::forward<decltype(call)>(call));
  };
  const auto attach = [&] {
    const auto call = [&](auto done) { admin.AttachTable(*table_, "n:none", std::move(done)); };
    return kind_->Ask<TableSchema>(call).status();
  };
  const auto examine = [&] {
    const auto call = [&](auto done) { admin.Examine(std::move(done)); };
    return kind_->Ask<std::vector<Finding>>(call).status();
  };
  const auto detach = [&](auto done) { admin.DetachTable("no such table", std::move(done)); };
  const auto kill = [&](auto done) { admin.KillServer(nobody, std::move(done)); };
  const auto pause = [&](auto done) { admin.PauseServer(nobody, std::move(done)); };
  const auto resume = [&](auto done) { admin.ResumeServer(nobody, std::move(done)); };
  const std::vector<std::pair<Capability, Status>> answers = {
      {Capability::kKillServer, order(kill)},
      {Capability::kPauseServer, order(pause)},
      {Capability::kResumeServer, order(resume)},
      {Capability::kBalance, kind_->Run({.kind = JobSpec::Kind::kBalance}).status()},
      {Capability::kCompact, kind_->Run({.kind = JobSpec::Kind::kCompact}).status()},
      {Capability::kAttachTable, attach()},
      {Capability::kAttachTable, order(detach)},
      {Capability::kExamine, examine()}};
  for (const auto& [capability, answer] : answers) {
    const bool refused = answer.code() == StatusCode::kFailedPrecondition &&
                         answer.message().find(CannotDo(capability).message()) != std::string::npos;
    EXPECT_EQ(Can(capability), !refused) << CapabilityName(capability) << ": " << answer;
  }
}

TEST(ClusterCapabilities, MissingCapabilityIsAnAnswer) {
  const Status status = CannotDo(Capability::kPauseServer);
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "this cluster cannot pause a server");
}

INSTANTIATE_TEST_SUITE_P(Every, ClusterSuite, ::testing::ValuesIn(ClusterKinds()), NameOfKind);

}  // namespace
}  // namespace tamis
