#include "tamis/hbase_cluster/table_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr Duration kPatience = seconds(60);

// Two regions on a server each; the test defines the answers. A pause advances the clock.
class TableJobTest : public testing::Test {
 protected:
  Status Run(TableJob::Options options = {.patience = kPatience}) {
    TableJob job({.list = [this] { return Result<std::vector<RegionInfo>>(regions_); },
                  .start =
                      [this](const std::string&, const pb::StartJobRequest& request) {
                        ++started_;
                        for (const uint64_t id : request.region_ids()) job_of_[id] = request.job();
                        last_request_ = request;
                        return Result<pb::StartJobReply>(started_reply_);
                      },
                  .get = [this](const std::string&, const pb::GetJobRequest& request,
                                const std::vector<RegionId>&) { return get_(request.job()); },
                  .now = [this] { return now_; }},
                 7, options);
    for (int steps = 0; steps < kMostSteps; ++steps) {
      const auto pause = job.Step([this](uint64_t done, uint64_t) { done_ = done; });
      report_ = job.report();
      samples_ = job.samples();
      if (!pause.ok() || !pause->has_value()) return pause.status();
      now_ += **pause;
    }
    return Cancelled("it goes on for ever");
  }

  static RegionInfo NewRegion(uint64_t id, std::string start, std::string end) {
    return {.id = RegionId(id),
            .name = std::to_string(id),
            .table_id = 7,
            .start = std::move(start),
            .end = std::move(end),
            .server = "s" + std::to_string(id)};
  }

  // Answers that all regions of the job are done, except those for which `error` returns an error.
  pb::GetJobReply Ended(uint64_t job, const std::function<Status(uint64_t id)>& error) {
    pb::GetJobReply reply;
    reply.set_ended(true);
    for (const RegionInfo& region : regions_) {
      const uint64_t id = region.id.number();
      if (job_of_[id] != job) continue;
      pb::RegionJobResult* result = reply.add_results();
      result->set_region_id(id);
      const Status status = error(id);
      if (!status.ok()) {
        result->mutable_error()->set_code(static_cast<pb::Error::Code>(status.code()));
        result->mutable_error()->set_message(status.message());
        continue;
      }
      result->set_start(region.start);
      result->set_end(region.end);
      result->mutable_check()->set_rows(10);
      result->mutable_sample()->add_values("b");
      result->mutable_sample()->add_values("a");
      result->mutable_sample()->set_distinct(id == 1 ? 9 : 0);
    }
    return reply;
  }

  static constexpr int kMostSteps = 100'000;
  std::vector<RegionInfo> regions_ = {NewRegion(1, "", "m"), NewRegion(2, "m", "")};
  std::map<uint64_t, uint64_t> job_of_;  // by region
  pb::StartJobReply started_reply_;
  std::function<Result<pb::GetJobReply>(uint64_t job)> get_;
  Time now_ = seconds(1000);
  int started_ = 0;
  uint64_t done_ = 0;
  CheckReport report_;
  std::vector<ValueSample> samples_;
  pb::StartJobRequest last_request_;
};

TEST_F(TableJobTest, CombinesTheResultsOfAllRegions) {
  get_ = [&](uint64_t job) { return Ended(job, [](uint64_t) { return Status(); }); };
  EXPECT_EQ(Run(), Status());
  EXPECT_EQ(report_.rows, 20u);
  EXPECT_EQ(started_, 2);
}

TEST_F(TableJobTest, TakesTheSamplesOfAllRegions) {
  get_ = [&](uint64_t job) { return Ended(job, [](uint64_t) { return Status(); }); };
  EXPECT_EQ(Run({.kind = pb::StartJobRequest::SAMPLE, .index_id = 3, .sample_size = 1000}),
            Status());
  EXPECT_EQ(last_request_.most_values(), 500u);
  EXPECT_EQ(last_request_.index_id(), 3u);
  ASSERT_EQ(samples_.size(), 2u);
  for (const ValueSample& sample : samples_) {
    EXPECT_EQ(sample.values, (std::vector<std::string>{"a", "b"}));
  }
  EXPECT_EQ(samples_[0].distinct, 9u);
  EXPECT_EQ(samples_[1].distinct, 2u);  // no fewer than there are
  // Some values of each region, however many regions there are.
  EXPECT_EQ(Run({.kind = pb::StartJobRequest::SAMPLE, .sample_size = 4}), Status());
  EXPECT_EQ(last_request_.most_values(), 16u);
}

TEST_F(TableJobTest, RepeatsOnlyTheRegionThatWasNotThere) {
  bool first = true;
  get_ = [&](uint64_t job) {
    return Ended(job, [&](uint64_t id) {
      if (id != 2 || !std::exchange(first, false)) return Status();
      return Unavailable("region 2 is not open here");
    });
  };
  EXPECT_EQ(Run(), Status());
  EXPECT_EQ(report_.rows, 20u);
  EXPECT_EQ(started_, 3);
}

// The server reports the error promptly each time, which does not count as progress.
TEST_F(TableJobTest, UnreadableRegionEndsTheJobWithTheServersError) {
  get_ = [&](uint64_t job) {
    return Ended(job, [&](uint64_t id) {
      return id == 2 ? Unavailable("a block of its file is missing") : Status();
    });
  };
  const Status status = Run();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_THAT(status.message(), HasSubstr("a block of its file is missing"));
  EXPECT_EQ(done_, 1u);
}

TEST_F(TableJobTest, WaitsForASlowServer) {
  get_ = [&](uint64_t job) -> Result<pb::GetJobReply> {
    if (now_ < seconds(1000) + 10 * kPatience) return pb::GetJobReply();
    return Ended(job, [](uint64_t) { return Status(); });
  };
  EXPECT_EQ(Run(), Status());
}

TEST_F(TableJobTest, PermanentErrorEndsTheJobAtOnce) {
  get_ = [&](uint64_t job) {
    return Ended(job, [](uint64_t) { return FailedPrecondition("you may not"); });
  };
  EXPECT_EQ(Run(), FailedPrecondition("you may not"));
  EXPECT_LE(started_, 2);
}

TEST_F(TableJobTest, ErrorWithCodeOkIsDataLoss) {
  get_ = [&](uint64_t) -> Result<pb::GetJobReply> {
    pb::GetJobReply reply;
    reply.set_ended(true);
    reply.add_results()->mutable_error();
    return reply;
  };
  EXPECT_EQ(Run().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace tamis
