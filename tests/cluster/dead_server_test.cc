// A caller of a server that dies gets an answer.

#include <gtest/gtest.h>

#include <filesystem>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/rocks_cluster.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

class DeadServerTest : public ::testing::Test {
 protected:
  DeadServerTest() {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_dead_server_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = 2;
    options.balance = false;
    options.server.inline_steps = false;  // so that there is a time between asked and done
    auto cluster = RocksCluster::Open(options, &executor_);
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = std::move(*cluster);
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "n", .type = Type::kInt64}};
    schema.key = {0};
    schema.indexes = {{.name = "n", .columns = {1}, .expected_values = 100}};
    const auto made = Await<Result<TableSchema>>(
        &executor_, [&](auto done) { cluster_->CreateTable(schema, done); });
    EXPECT_TRUE(made.ok()) << made.status();
    executor_.RunFor(1s);  // the region is opened
    owner_ = cluster_->catalog().Regions(made->id).front().server();
  }
  ~DeadServerTest() override {
    executor_.Clear();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  // The error that is reported when the owner dies before it does anything of what `start` asks.
  template <class Answer>
  Status KilledDuring(const std::function<void(std::function<void(Answer)>)>& start) {
    return StatusOf(Await<Answer>(&executor_, [&](auto done) {
      start(done);
      EXPECT_TRUE(cluster_->Kill(owner_).ok());
    }));
  }
  static Status StatusOf(const Status& status) { return status; }
  template <class T>
  static Status StatusOf(const Result<T>& result) {
    return result.status();
  }

  std::filesystem::path directory_;
  SimExecutor executor_{1, 1ms};
  std::unique_ptr<RocksCluster> cluster_;
  std::string owner_;
};

TEST_F(DeadServerTest, RebuildFailsWhenTheServerDies) {
  const Status status =
      KilledDuring<Status>([&](auto done) { cluster_->RebuildIndex("t", "n", done); });
  EXPECT_EQ(
      status.ToString(),
      "unavailable: cannot rebuild indexes of table \"t\": region server " + owner_ + " died");
  // Its regions are opened elsewhere, and can be rebuilt there.
  executor_.RunFor(1min);
  const Status again =
      Await<Status>(&executor_, [&](auto done) { cluster_->RebuildIndex("t", "n", done); });
  EXPECT_TRUE(again.ok()) << again;
}

TEST_F(DeadServerTest, CheckFailsWhenTheServerDies) {
  const Status status =
      KilledDuring<Result<CheckReport>>([&](auto done) { cluster_->Check("t", done); });
  EXPECT_EQ(status.ToString(), "unavailable: region server " + owner_ + " died");
}

}  // namespace
}  // namespace tamis
