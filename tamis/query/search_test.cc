// Searches and writes against scripted region servers.
#include <gtest/gtest.h>

#include <ranges>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/trace_context.h"
#include "tamis/query/engine.h"
#include "tamis/query/testing/scripted_cluster.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SearchTest : public testing::Test {
 protected:
  void Start(int regions, int64_t width, const std::vector<std::string>& servers,
             Engine::Options options = {}) {
    cluster_.Make(regions, width, servers);
    options.polling = false;
    options.seed = 1;
    engine_ = std::make_unique<Engine>(&cluster_, &executor_, options);
    table_ = std::make_shared<const TableSchema>(cluster_.table);
  }
  ~SearchTest() override { executor_.Clear(); }

  // The next row's id and how long it took; -1 at the end.
  std::pair<int64_t, Duration> Next(RowStream* rows) {
    const Time begin = executor_.Now();
    auto row = rows->Next();
    EXPECT_TRUE(row.ok()) << row.status();
    const int64_t id = row.ok() && row->has_value() ? (**row)[0].int64() : -1;
    return {id, executor_.Now() - begin};
  }
  std::multiset<int64_t> All(RowStream rows) {
    std::multiset<int64_t> ids;
    for (int64_t id = Next(&rows).first; id >= 0; id = Next(&rows).first) ids.insert(id);
    return ids;
  }
  std::multiset<int64_t> Wanted() const { return {cluster_.rows.begin(), cluster_.rows.end()}; }

  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  std::unique_ptr<Engine> engine_;
  SchemaPtr table_;
};

// The scope may end, and another begin, before the search asks its last region.
TEST_F(SearchTest, EveryRequestHasTheTraceContextInWhichTheSearchBegan) {
  Start(9, 4, {"a"});
  std::multiset<std::string> traces;
  cluster_.servers["a"]->search = [&, answer = cluster_.servers["a"]->search](
                                      const pb::SearchRequest& request, auto done) {
    traces.insert(request.has_trace() ? request.trace().parent() + request.trace().state()
                                      : "none");
    answer(request, done);
  };
  std::optional<RowStream> rows;
  {
    const TraceScope scope({.parent = "parent ", .state = "state"});
    rows.emplace(engine_->Search(table_, {}));
  }
  const TraceScope other({.parent = "other"});
  EXPECT_EQ(All(*std::move(rows)), Wanted());
  EXPECT_FALSE(traces.empty());
  EXPECT_EQ(traces.count("parent state"), traces.size());
  traces.clear();
  const TraceScope none({});
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
  EXPECT_EQ(traces.count("none"), traces.size());
}

TEST_F(SearchTest, AServerThatHangsDelaysItsOwnRowsAlone) {
  Start(9, 4, {"a", "b", "c"}, {.request_timeout = seconds(5)});
  int hung = 0;
  cluster_.servers["b"]->search = [&, answer = cluster_.servers["b"]->search](
                                      const pb::SearchRequest& request, auto done) {
    if (hung++ == 0) return;  // for ever
    answer(request, done);
  };
  RowStream rows = engine_->Search(table_, {});
  std::multiset<int64_t> ids;
  for (int i = 0; i < 24; ++i) {  // the rows of a and c
    const auto [id, took] = Next(&rows);
    EXPECT_NE(id / 4 % 3, 1) << "a row of the server that hangs";
    EXPECT_LT(took, milliseconds(100));
    ids.insert(id);
  }
  const auto [late, waited] = Next(&rows);
  EXPECT_EQ(late / 4 % 3, 1);
  EXPECT_GE(waited, seconds(4));
  ids.insert(late);
  for (int64_t id = Next(&rows).first; id >= 0; id = Next(&rows).first) ids.insert(id);
  EXPECT_EQ(ids, Wanted());
}

TEST_F(SearchTest, ErrorWithCodeOkEndsTheSearch) {
  Start(8, 4, {"a"}, {.request_timeout = seconds(5)});
  cluster_.servers["a"]->search = [&](const pb::SearchRequest& request, auto done) {
    pb::SearchReply reply = cluster_.Answer(request);
    reply.mutable_results(0)->Clear();
    reply.mutable_results(0)->mutable_error();
    done(reply);
  };
  const auto row = engine_->Search(table_, {}).Next();
  EXPECT_EQ(row.status().code(), StatusCode::kDataLoss) << row.status();
  EXPECT_LE(cluster_.servers["a"]->searches, 2);
}

TEST_F(SearchTest, ALateAnswerToWhatWasAskedAgainIsDropped) {
  Start(4, 4, {"a", "b"}, {.request_timeout = seconds(1)});
  std::vector<std::pair<pb::SearchRequest, Callback<pb::SearchReply>>> held;
  auto answer = cluster_.servers["b"]->search;
  cluster_.servers["b"]->search = [&](const pb::SearchRequest& request, auto done) {
    if (held.empty()) {
      held.emplace_back(request, done);
      // Later than anybody waits, and twice.
      executor_.PostAfter(milliseconds(1500), [&] {
        for (int i = 0; i < 2; ++i) held[0].second(cluster_.Answer(held[0].first));
      });
      return;
    }
    executor_.PostAfter(milliseconds(800), [=] { answer(request, done); });
  };
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
}

TEST_F(SearchTest, AnswersMayBeCutReorderedAndForeign) {
  Start(16, 4, {"a", "b"}, {.request_timeout = seconds(1)});
  Random random(7);
  for (auto& [name, server] : cluster_.servers) {
    server->search = [&](const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
      pb::SearchReply reply = cluster_.Answer(request);
      switch (random.Uniform(6)) {
        case 0:  // half a page
          reply.mutable_results()->DeleteSubrange(reply.results_size() / 2,
                                                  reply.results_size() - reply.results_size() / 2);
          break;
        case 1:  // in another order: answers to other keys
          std::reverse(reply.mutable_results()->begin(), reply.mutable_results()->end());
          break;
        case 2:  // of a region that the range is not of
          reply.mutable_results(0)->set_region_id(4711);
          break;
        case 3:
          return done(Unavailable("no"));
        default:
          break;
      }
      executor_.PostAfter(milliseconds(random.Uniform(30)), [=] { done(reply); });
      if (random.OneIn(4)) done(reply);  // twice
    };
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
}

// A region that holds less than the coordinator believes, and says so.
TEST_F(SearchTest, PartOfARangeThatARegionDoesNotHoldIsAskedAgain) {
  Start(4, 6, {"a", "b"});
  int cut = 0;
  for (auto& [name, server] : cluster_.servers) {
    server->search = [&](const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
      pb::SearchReply reply = cluster_.Answer(request);
      for (pb::RangeResult& result : *reply.mutable_results()) {
        pb::RangeResult shorter = result;
        shorter.clear_rows();
        for (const pb::FoundRow& row : result.rows()) {
          if (shorter.rows_size() < 2) {
            *shorter.add_rows() = row;
          } else if (shorter.rows_size() == 2) {
            shorter.set_end(row.key());
            ++cut;
            break;
          }
        }
        result = shorter;
      }
      done(reply);
    };
  }
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
  EXPECT_GE(cut, 4);
}

TEST_F(SearchTest, RequestsAreOfAFewRangesAndAFewAreUnderWayToAServer) {
  Start(100, 1, {"a"}, {.request_ranges = 8, .requests_in_flight = 4});
  int under_way = 0;
  int most = 0;
  cluster_.servers["a"]->search = [&](const pb::SearchRequest& request, auto done) {
    EXPECT_LE(request.ranges_size(), 8);
    EXPECT_GT(request.timeout_ns(), 0u);
    most = std::max(most, ++under_way);
    executor_.PostAfter(milliseconds(5), [&, reply = cluster_.Answer(request), done] {
      --under_way;
      done(reply);
    });
  };
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
  EXPECT_EQ(most, 4);
  EXPECT_EQ(cluster_.servers["a"]->searches, 13);
}

TEST_F(SearchTest, KeyOrderHoldsForAnyOrderOfAnswers) {
  Start(30, 3, {"a", "b", "c"}, {.request_ranges = 4});
  Random random(3);
  for (auto& [name, server] : cluster_.servers) {
    server->search = [&](const pb::SearchRequest& request, auto done) {
      executor_.PostAfter(milliseconds(random.Uniform(50)),
                          [done, reply = cluster_.Answer(request)] { done(reply); });
    };
  }
  RowStream rows = engine_->Search(table_, {.key_order = true});
  for (const int64_t wanted : cluster_.rows) ASSERT_EQ(Next(&rows).first, wanted);
  EXPECT_EQ(Next(&rows).first, -1);
}

TEST_F(SearchTest, ReverseKeyOrderAsksTheLastRegionsOneAfterTheOther) {
  Start(30, 3, {"a", "b"});
  std::vector<uint64_t> asked;
  for (auto& [name, server] : cluster_.servers) {
    server->search = [&](const pb::SearchRequest& request, auto done) {
      EXPECT_TRUE(request.order().descending());
      EXPECT_EQ(request.order().index_id(), 0u);
      pb::SearchReply reply = cluster_.Answer(request);
      for (pb::RangeResult& result : *reply.mutable_results()) {
        asked.push_back(result.region_id());
        result.set_in_order(true);
        std::ranges::reverse(*result.mutable_rows());
      }
      done(reply);
    };
  }
  RowStream rows =
      engine_->Search(table_, {.limit = 4, .order = {{.column = 0, .descending = true}}});
  for (const int64_t id : {89, 88, 87, 86, -1}) EXPECT_EQ(Next(&rows).first, id);
  EXPECT_EQ(asked, (std::vector<uint64_t>{30, 29}));
}

// The region moves to a server of an earlier version, which refuses the order, when some of its
// rows have been given out.
TEST_F(SearchTest, ReverseKeyOrderGoesOnWithoutAServerThatKnowsIt) {
  Start(1, 10, {"a", "b"});
  cluster_.servers["a"]->search = [&](const pb::SearchRequest& request, auto done) {
    pb::SearchReply reply = cluster_.Answer(request);
    pb::RangeResult& result = *reply.mutable_results(0);
    result.set_in_order(true);
    result.set_resume("down");
    auto& rows = *result.mutable_rows();
    std::ranges::reverse(rows);
    rows.DeleteSubrange(3, rows.size() - 3);
    cluster_.regions[0].server = "b";
    ++cluster_.regions[0].epoch;
    done(reply);
  };
  cluster_.servers["b"]->search = [&](const pb::SearchRequest& request, auto done) {
    if (request.has_order()) return done(InvalidArgument("there is no index 0"));
    EXPECT_EQ(request.ranges(0).resume(), "");
    done(cluster_.Answer(request));
  };
  RowStream rows = engine_->Search(table_, {.order = {{.column = 0, .descending = true}}});
  for (int64_t id = 9; id >= -1; --id) {
    EXPECT_EQ(Next(&rows).first, id);
    // The map of regions is found to be old.
    if (id == 7)
      cluster_.servers["a"]->search = [](const auto&, auto done) {
        done(Unavailable("the region is not here"));
      };
  }
}

// The same for the lower part of a region that is split meanwhile: the rows that have been given
// out lie in the upper part.
TEST_F(SearchTest, ReverseKeyOrderGivesNoRowTwiceWhenAnOldServerGetsTheLowerPart) {
  Start(1, 10, {"a", "b"});
  const auto answer_below = [&](int64_t end, int count) {
    return [&, end, count](const pb::SearchRequest& request, auto done) {
      pb::SearchReply reply = cluster_.Answer(request);
      for (pb::RangeResult& result : *reply.mutable_results()) {
        if (cluster_.regions[0].server == "b" && result.region_id() == 1) {
          SetError(Unavailable("the region is not here"), result.mutable_error());
          continue;
        }
        result.set_in_order(true);
        auto& rows = *result.mutable_rows();
        std::ranges::reverse(rows);
        while (!rows.empty() && rows[0].key() >= cluster_.Key(end)) rows.DeleteSubrange(0, 1);
        if (rows.size() <= count) continue;
        rows.DeleteSubrange(count, rows.size() - count);
        result.set_resume("down");
      }
      done(reply);
    };
  };
  cluster_.servers["a"]->search = answer_below(10, 3);
  cluster_.servers["b"]->search = [&](const pb::SearchRequest& request, auto done) {
    if (request.has_order()) return done(InvalidArgument("there is no index 0"));
    done(cluster_.Answer(request));
  };
  RowStream rows = engine_->Search(table_, {.order = {{.column = 0, .descending = true}}});
  for (int64_t id = 9; id >= 7; --id) EXPECT_EQ(Next(&rows).first, id);
  RegionInfo upper = cluster_.regions[0];
  upper.id = RegionId(2);
  upper.start = cluster_.regions[0].end = cluster_.Key(5);
  cluster_.regions[0].server = "b";
  ++cluster_.regions[0].epoch;
  cluster_.regions.push_back(upper);
  cluster_.servers["a"]->search = answer_below(7, 3);
  for (int64_t id = 6; id >= -1; --id) EXPECT_EQ(Next(&rows).first, id);
}

TEST_F(SearchTest, RefusingServerIsAskedLessOften) {
  Start(2, 4, {"a", "b"});
  cluster_.servers["b"]->search = [](const auto&, auto done) { done(Unavailable("gone")); };
  RowStream rows = engine_->Search(table_, {.timeout = seconds(20)});
  for (int i = 0; i < 4; ++i) EXPECT_LT(Next(&rows).second, milliseconds(10));
  const auto end = rows.Next();
  ASSERT_EQ(end.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(end.status().message().find("gone"), std::string::npos) << end.status();
  EXPECT_LE(cluster_.servers["b"]->searches, 30);
  EXPECT_LE(cluster_.listings.size(), 32u);
  for (size_t i = 1; i < cluster_.listings.size(); ++i) {
    EXPECT_EQ(cluster_.listings[i], std::vector<KeyRange>{cluster_.regions[1].keys()});
  }
}

TEST_F(SearchTest, AWriteThatFailsAsksForNoSchemaUnlessThatIsWhy) {
  Start(1, 4, {"a"}, {.write_timeout = seconds(20)});
  int tries = 0;
  uint64_t version = 0;  // that the region says it has
  cluster_.servers["a"]->mutate = [&](const pb::MutateRequest& request, auto done) {
    ++tries;
    EXPECT_GT(request.timeout_ns(), 0u);
    pb::MutateReply reply;
    auto* result = reply.add_regions();
    result->set_region_id(request.regions(0).region_id());
    if (tries < 5 || request.schema_version() != cluster_.table.version) {
      SetError(Unavailable("no"), result->mutable_error());
      result->mutable_error()->set_schema_version(version);
    } else {
      result->add_results();
    }
    done(std::move(reply));
  };
  std::vector<Status> statuses = engine_->Apply(table_, {{.row = {Value::Int64(1)}}});
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(tries, 5);
  EXPECT_EQ(cluster_.schemas_asked, 0);
  version = cluster_.table.version = 2;
  statuses = engine_->Apply(table_, {{.row = {Value::Int64(1)}}});
  EXPECT_TRUE(statuses[0].ok()) << statuses[0];
  EXPECT_EQ(cluster_.schemas_asked, 1);

  cluster_.servers["a"]->mutate = [&](const auto&, auto done) { done(Unavailable("no")); };
  const size_t listings = cluster_.listings.size();
  statuses = engine_->Apply(table_, {{.row = {Value::Int64(1)}}});
  EXPECT_EQ(statuses[0].code(), StatusCode::kUnavailable);
  EXPECT_LE(cluster_.listings.size() - listings, 30u);
  EXPECT_EQ(cluster_.schemas_asked, 1);
}

// A sub-range that becomes due between the check for due sub-ranges and the wait is asked.
TEST_F(SearchTest, NoTimeIsLostBetweenTwoLooksAtTheClock) {
  for (int microseconds = 1; microseconds < 10'000; microseconds += 1 + microseconds / 8) {
    executor_.set_step(std::chrono::microseconds(microseconds));
    Start(2, 4, {"a", "b"});
    int refused = 0;
    cluster_.servers["b"]->search = [&, answer = cluster_.servers["b"]->search](
                                        const pb::SearchRequest& request, auto done) {
      if (refused++ < 4) return done(Unavailable("no"));
      answer(request, done);
    };
    const Time begin = executor_.Now();
    EXPECT_EQ(All(engine_->Search(table_, {.timeout = seconds(60)})), Wanted());
    EXPECT_LT(executor_.Now() - begin, seconds(5)) << "a step of " << microseconds << " us";
    executor_.Clear();
  }
}

TEST_F(SearchTest, ASearchOfAGapAsksForItsRegions) {
  Start(10, 4, {"a", "b"});
  cluster_.list_regions = [&](const std::vector<KeyRange>& stale, auto done) {
    auto listed = cluster_.Listed(stale);
    if (listed.size() > 1) listed.erase(listed.begin() + 1);  // something is always missing
    done(std::move(listed));
  };
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
}

TEST_F(SearchTest, ARegionWithoutAServerIsLookedForUntilItHasOne) {
  Start(2, 4, {"a", "b"});
  cluster_.list_regions = [&](const std::vector<KeyRange>& stale, auto done) {
    auto listed = cluster_.Listed(stale);
    if (cluster_.listings.size() < 5) listed.back().server.clear();
    done(std::move(listed));
  };
  const Time begin = executor_.Now();
  EXPECT_EQ(All(engine_->Search(table_, {})), Wanted());
  EXPECT_EQ(cluster_.listings.size(), 5u);
  EXPECT_LT(executor_.Now() - begin, seconds(2));
}

// Regions that are split, merged, moved and lost while they are searched, page by page, by searches
// of every kind: each row comes once, and in order where that is asked for.
class MovingRegions {
 public:
  explicit MovingRegions(uint64_t seed) : random_(seed) {
    const int width = 1 + static_cast<int>(random_.Uniform(6));
    cluster_.Make(1 + static_cast<int>(random_.Uniform(60)), width, {"a", "b", "c", "d"});
    next_id_ = cluster_.regions.size() + 1;
    if (random_.OneIn(3)) old_ = {"b", "d"};
    for (const auto& [name, server] : cluster_.servers) {
      server->search = [this, name = name](const pb::SearchRequest& request,
                                           Callback<pb::SearchReply> done) {
        if (random_.OneIn(6)) Change();
        if (random_.OneIn(200)) return;  // for ever
        if (random_.OneIn(20)) return done(Unavailable("no"));
        if (request.has_order() && old_.contains(name)) return done(InvalidArgument("no order"));
        pb::SearchReply reply;
        for (const pb::SearchRange& range : request.ranges()) {
          *reply.add_results() = Page(name, range, request.limit(), request.has_order());
        }
        executor_.PostAfter(milliseconds(random_.Uniform(30)), [=] { done(reply); });
      };
    }
    Engine::Options options{.request_timeout = seconds(2),
                            .request_ranges = 1 + random_.Uniform(8),
                            .requests_in_flight = 1 + static_cast<int>(random_.Uniform(4)),
                            .seed = 1,
                            .polling = false};
    engine_ = std::make_unique<Engine>(&cluster_, &executor_, options);
  }
  ~MovingRegions() { executor_.Clear(); }

  void SearchOnce() {
    const auto id = [&] { return static_cast<int64_t>(random_.Uniform(cluster_.rows.size() + 1)); };
    SearchOptions options{.timeout = std::chrono::hours(1)};
    std::set<int64_t> wanted = cluster_.rows;
    if (random_.OneIn(2)) {
      const int64_t low = id();
      const int64_t high = id();
      options.predicate = Predicate::Between(0, Value::Int64(low), Value::Int64(high));
      std::erase_if(wanted, [&](int64_t row) { return row < low || row > high; });
    } else if (random_.OneIn(2)) {
      std::vector<Value> values;
      std::set<int64_t> ids;
      for (uint64_t n = random_.Uniform(20); n > 0; --n) ids.insert(id());
      for (const int64_t value : ids) values.push_back(Value::Int64(value));
      options.predicate = Predicate::In(0, std::move(values));
      std::erase_if(wanted, [&](int64_t row) { return !ids.contains(row); });
    }
    options.key_order = random_.OneIn(2);
    const bool reverse = !options.key_order && random_.OneIn(2);
    if (reverse) options.order = {{.column = 0, .descending = true}};
    if (random_.OneIn(3)) options.limit = 1 + random_.Uniform(20);
    if (random_.OneIn(4)) options.first_rows = 1 + random_.Uniform(20);
    std::vector<int64_t> got;
    RowStream rows = engine_->Search(std::make_shared<const TableSchema>(cluster_.table), options);
    for (;;) {
      auto row = rows.Next();
      ASSERT_TRUE(row.ok()) << row.status();
      if (!row->has_value()) break;
      got.push_back((**row)[0].int64());
    }
    if (options.key_order || reverse) {
      std::vector<int64_t> in_order(wanted.begin(), wanted.end());
      if (reverse) std::ranges::reverse(in_order);
      if (options.limit > 0 && options.limit < in_order.size()) in_order.resize(options.limit);
      ASSERT_EQ(got, in_order);
      return;
    }
    const std::set<int64_t> distinct(got.begin(), got.end());
    ASSERT_EQ(distinct.size(), got.size()) << "a row came twice";
    ASSERT_TRUE(std::ranges::includes(wanted, distinct));
    ASSERT_EQ(got.size(),
              options.limit > 0 ? std::min(options.limit, wanted.size()) : wanted.size());
  }

 private:
  // The server's answer to a range: a few rows of a region that it has now. A continuation is the
  // key that comes next, or, for the reverse order, "<" and the key that came last.
  pb::RangeResult Page(const std::string& server, const pb::SearchRange& range, uint64_t limit,
                       bool reverse) {
    pb::RangeResult result;
    result.set_region_id(range.region_id());
    result.set_epoch(range.epoch());
    const auto region = std::ranges::find_if(cluster_.regions, [&](const RegionInfo& info) {
      return info.id.number() == range.region_id() && info.epoch == range.epoch() &&
             info.server == server && info.Contains(range.start());
    });
    if (region == cluster_.regions.end()) {
      SetError(Unavailable("not here"), result.mutable_error());
      return result;
    }
    KeyRange keys{range.start(), range.end()};
    if (!region->end.empty() && (keys.end.empty() || region->end < keys.end)) {
      keys.end = region->end;
    }
    result.set_start(keys.start);
    result.set_end(keys.end);
    uint64_t room = random_.Uniform(5);
    if (limit > 0) room = std::min(room, limit);
    const bool goes_down = range.resume().starts_with("<");
    if (goes_down && !reverse) {
      SetError(InvalidArgument("a continuation of another order"), result.mutable_error());
      return result;
    }
    if (reverse && (goes_down || range.resume().empty())) {
      result.set_in_order(true);
      std::string last = goes_down ? range.resume().substr(1) : "\xff";
      for (const int64_t id : cluster_.rows | std::views::reverse) {
        const std::string key = cluster_.Key(id);
        if (!keys.Contains(key) || key >= last) continue;
        if (room-- == 0) {
          result.set_resume("<" + last);
          break;
        }
        AddRow(id, &result);
        last = key;
      }
      return result;
    }
    for (const int64_t id : cluster_.rows) {
      const std::string key = cluster_.Key(id);
      if (!keys.Contains(key) || key < range.resume()) continue;
      if (room-- == 0) {
        result.set_resume(key);
        break;
      }
      AddRow(id, &result);
    }
    return result;
  }

  void AddRow(int64_t id, pb::RangeResult* result) const {
    pb::FoundRow* found = result->add_rows();
    found->set_key(cluster_.Key(id));
    found->set_row(EncodeRow(cluster_.table, {Value::Int64(id)}));
  }

  void Change() {
    std::vector<RegionInfo>& regions = cluster_.regions;
    const size_t at = random_.Uniform(regions.size());
    RegionInfo& region = regions[at];
    ++region.epoch;
    const std::string middle =
        cluster_.Key(static_cast<int64_t>(random_.Uniform(cluster_.rows.size())));
    switch (random_.Uniform(3)) {
      case 0:
        region.server = std::string(1, static_cast<char>('a' + random_.Uniform(4)));
        break;
      case 1:
        if (middle == region.start || !region.Contains(middle)) break;
        regions.insert(regions.begin() + static_cast<ptrdiff_t>(at) + 1, region);
        regions[at].end = regions[at + 1].start = middle;
        regions[at + 1].id = RegionId(next_id_++);
        break;
      default:
        if (at + 1 == regions.size()) break;
        region.end = regions[at + 1].end;
        regions.erase(regions.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
  }

  Random random_;
  SimExecutor executor_{1, std::chrono::microseconds(10)};
  ScriptedCluster cluster_;
  std::unique_ptr<Engine> engine_;
  uint64_t next_id_ = 0;
  std::set<std::string> old_;  // servers that refuse orders
};

TEST(MovingRegionsTest, EveryRowComesOnceWhileRegionsMove) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    MovingRegions regions(seed);
    for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(regions.SearchOnce());
  }
}

}  // namespace
}  // namespace tamis
