#include "tamis/query/table_cache.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/testing/scripted_cluster.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class TableCacheTest : public testing::Test {
 protected:
  TableCacheTest()
      : tables_(std::make_shared<TableCache>(&cluster_, &executor_,
                                             TableCache::Options{.timeout = seconds(5)})) {
    cluster_.Make(10, 10, {"a", "b"});
  }

  Result<TableCache::Regions> Refresh(const std::vector<KeyRange>& stale) {
    return AwaitResult<TableCache::Regions>(
        &executor_, {.deadline = executor_.Now() + seconds(60)},
        [&](auto done) { tables_->RefreshRegions(cluster_.table, stale, done); });
  }
  KeyRange Ids(int64_t from, int64_t to) const { return {cluster_.Key(from), cluster_.Key(to)}; }

  SimExecutor executor_{1, milliseconds(0)};
  ScriptedCluster cluster_;
  std::shared_ptr<TableCache> tables_;
};

TEST_F(TableCacheTest, OnlyStaleKeysAreAskedFor) {
  ASSERT_TRUE(Refresh({Ids(5, 6)}).ok());  // nothing is known: all are asked for
  cluster_.regions[3].server = "b";
  cluster_.regions[7].server = "a";
  const auto fresh = Refresh({Ids(35, 36)});
  ASSERT_TRUE(fresh.ok());
  ASSERT_EQ((*fresh)->size(), 10u);
  EXPECT_EQ((**fresh)[3].server, "b");
  EXPECT_EQ((**fresh)[7].server, "b");  // the server that was known before
  EXPECT_EQ(cluster_.listings, (std::vector<std::vector<KeyRange>>{{}, {Ids(30, 40)}}))
      << "the keys of the region that was known there";
}

TEST_F(TableCacheTest, KnownRegionsThatTheListedOnesOverlapAreForgotten) {
  ASSERT_TRUE(Refresh({}).ok());
  // Regions 2 and 3 have become one, 5 was split.
  cluster_.regions[2].id = RegionId(20);
  cluster_.regions[2].end = cluster_.regions[3].end;
  cluster_.regions.erase(cluster_.regions.begin() + 3);
  RegionInfo upper = cluster_.regions[4];
  ASSERT_EQ(upper.start, cluster_.Key(50));
  cluster_.regions[4].end = upper.start = cluster_.Key(55);
  upper.id = RegionId(21);
  cluster_.regions.insert(cluster_.regions.begin() + 5, upper);
  const auto fresh = Refresh({Ids(25, 26), Ids(51, 52)});
  ASSERT_TRUE(fresh.ok());
  std::vector<std::string> starts;
  for (const RegionInfo& region : **fresh) starts.push_back(region.start);
  // The upper daughter stands in the keys of the region that was known: no gap is left there.
  EXPECT_EQ(starts,
            (std::vector<std::string>{"", cluster_.Key(10), cluster_.Key(20), cluster_.Key(40),
                                      cluster_.Key(50), cluster_.Key(55), cluster_.Key(60),
                                      cluster_.Key(70), cluster_.Key(80), cluster_.Key(90)}));
}

TEST_F(TableCacheTest, OneQuestionIsUnderWayAtATimeAndItsAnswerIsShared) {
  std::vector<Callback<std::vector<RegionInfo>>> asked;
  cluster_.list_regions = [&](const auto&, auto done) { asked.push_back(done); };
  int answered = 0;
  const auto count = [&](const Result<TableCache::Regions>& regions) {
    EXPECT_TRUE(regions.ok());
    ++answered;
  };
  tables_->RefreshRegions(cluster_.table, {}, count);
  for (int64_t i = 0; i < 20; ++i) {
    tables_->RefreshRegions(cluster_.table, {Ids(10 * (i % 3), 10 * (i % 3) + 1)}, count);
  }
  ASSERT_EQ(asked.size(), 1u);
  asked[0](cluster_.Listed({}));
  EXPECT_EQ(answered, 1);
  executor_.RunFor(seconds(1));
  ASSERT_EQ(asked.size(), 2u);
  asked[1](cluster_.Listed({}));
  EXPECT_EQ(answered, 21);
  // No caller knew of regions when it asked, so all are asked for; later only the stale ones.
  tables_->RefreshRegions(cluster_.table, {Ids(1, 2)}, count);
  executor_.RunFor(seconds(1));
  EXPECT_EQ(cluster_.listings.back(), (std::vector<KeyRange>{cluster_.regions[0].keys()}));
}

TEST_F(TableCacheTest, RegionWithoutAServerFailsTheCallersOfItsKeysAlone) {
  ASSERT_TRUE(Refresh({}).ok());
  cluster_.regions[3].unserved = ResourceExhausted("the disk is full");
  cluster_.regions[7].server = "a";
  std::vector<Callback<std::vector<RegionInfo>>> asked;
  cluster_.list_regions = [&](const auto&, auto done) { asked.push_back(done); };
  std::vector<Status> answers(4, Cancelled("not answered"));
  const auto refresh = [&](size_t caller, const std::vector<KeyRange>& stale) {
    tables_->RefreshRegions(cluster_.table, stale,
                            [&answers, caller](const Result<TableCache::Regions>& regions) {
                              answers[caller] = regions.status();
                              if (!regions.ok()) return;
                              EXPECT_EQ((**regions)[7].server, "a");
                            });
  };
  refresh(0, {Ids(35, 36)});
  executor_.RunFor(seconds(1));
  // These share the next question.
  refresh(1, {Ids(75, 76)});
  refresh(2, {Ids(12, 13), Ids(31, 32)});
  refresh(3, {Ids(40, 50)});
  ASSERT_EQ(asked.size(), 1u);
  asked[0](cluster_.Listed({Ids(30, 40)}));
  EXPECT_EQ(answers[0], ResourceExhausted("the disk is full"));
  executor_.RunFor(seconds(1));
  ASSERT_EQ(asked.size(), 2u);
  asked[1](cluster_.Listed(cluster_.listings.back()));
  EXPECT_EQ(answers[1], Status());
  EXPECT_EQ(answers[2], ResourceExhausted("the disk is full"));
  EXPECT_EQ(answers[3], Status());
  // The region has a server again.
  cluster_.regions[3].unserved = Status();
  cluster_.list_regions = nullptr;
  EXPECT_TRUE(Refresh({Ids(35, 36)}).ok());
}

TEST_F(TableCacheTest, QuestionsWithoutNewAnswersComeLessOften) {
  std::vector<Time> times;
  cluster_.list_regions = [&](const auto& stale, auto done) {
    times.push_back(executor_.Now());
    done(cluster_.Listed(stale));
  };
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(Refresh({Ids(1, 2)}).ok());
  std::vector<Duration> pauses;
  for (size_t i = 1; i < times.size(); ++i) pauses.push_back(times[i] - times[i - 1]);
  for (size_t i = 1; i < pauses.size(); ++i) EXPECT_GE(pauses[i], pauses[i - 1]);
  EXPECT_LE(pauses.front(), milliseconds(40));
  EXPECT_EQ(pauses.back(), seconds(1));
  cluster_.regions[0].epoch = 2;  // news
  ASSERT_TRUE(Refresh({Ids(1, 2)}).ok());
  ASSERT_TRUE(Refresh({Ids(1, 2)}).ok());
  EXPECT_LE(times.back() - times[times.size() - 2], milliseconds(40));
}

TEST_F(TableCacheTest, UnansweredQuestionBlocksNoLaterOne) {
  cluster_.list_regions = [](const auto&, auto) {};
  EXPECT_EQ(Refresh({}).status().code(), StatusCode::kDeadlineExceeded);
  cluster_.list_regions = nullptr;
  EXPECT_TRUE(Refresh({}).ok());
}

TEST_F(TableCacheTest, LateAnswerDoesNotEndTheNextQuestion) {
  std::vector<Callback<std::vector<RegionInfo>>> asked;
  cluster_.list_regions = [&](const auto&, auto done) { asked.push_back(done); };
  std::vector<bool> answers;
  const auto keep = [&](const Result<TableCache::Regions>& regions) {
    answers.push_back(regions.ok());
  };
  tables_->RefreshRegions(cluster_.table, {}, keep);
  tables_->RefreshRegions(cluster_.table, {}, keep);
  while (answers.empty()) executor_.RunFor(milliseconds(1));
  EXPECT_EQ(answers, std::vector<bool>{false});
  ASSERT_EQ(asked.size(), 1u);  // the next one is put off
  asked[0](cluster_.Listed({}));
  executor_.RunFor(seconds(1));
  ASSERT_EQ(asked.size(), 2u);
  asked[1](cluster_.Listed({}));
  EXPECT_EQ(answers, (std::vector<bool>{false, true}));
}

TEST_F(TableCacheTest, ATableOfTheSameNameMadeLaterIsAnotherOne) {
  ASSERT_TRUE(Refresh({}).ok());
  for (RegionInfo& region : cluster_.regions) region.table_id = 2;
  EXPECT_EQ(Refresh({Ids(1, 2)}).status().code(), StatusCode::kNotFound);
}

TEST_F(TableCacheTest, ATableThatIsGoneIsLookedUpAnewByItsName) {
  const auto id = [&] { return (*tables_->Table(cluster_.table.name))->id; };
  const uint32_t before = id();
  ASSERT_TRUE(Refresh({}).ok());
  // No server tells that it is gone: it was detached and attached again.
  cluster_.table.id = before + 1;
  EXPECT_EQ(id(), before);
  TableSchema old = cluster_.table;
  old.id = before;
  for (RegionInfo& region : cluster_.regions) region.table_id = before + 1;
  const auto regions =
      AwaitResult<TableCache::Regions>(&executor_, {.deadline = executor_.Now() + seconds(60)},
                                       [&](auto done) { tables_->RefreshRegions(old, {}, done); });
  EXPECT_EQ(regions.status().code(), StatusCode::kNotFound);
  EXPECT_EQ(id(), before + 1);
}

}  // namespace
}  // namespace tamis
