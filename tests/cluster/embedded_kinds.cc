#include "tests/cluster/embedded_kinds.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/thread_executor.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/layout.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kThreads = 4;

std::filesystem::path NewDirectory() {
  static std::atomic<int> number = 0;
  return std::filesystem::temp_directory_path() /
         ("tamis_cluster." + std::to_string(::getpid()) + "." + std::to_string(++number));
}

class EmbeddedCluster : public ClusterUnderTest {
 public:
  EmbeddedCluster(const ClusterWishes& wishes, bool virtual_clock)
      : wishes_(wishes), virtual_clock_(virtual_clock), directory_(NewDirectory()) {
    std::filesystem::remove_all(directory_);
  }
  ~EmbeddedCluster() override {
    Close();
    std::filesystem::remove_all(directory_);
  }

  Status Open() {
    if (virtual_clock_) {
      sim_executor_ = std::make_unique<SimExecutor>(wishes_.seed, milliseconds(1));
    } else {
      thread_executor_ = std::make_unique<ThreadExecutor>(kThreads);
    }
    TAMIS_ASSIGN_OR_RETURN(cluster_, RocksCluster::Open(Options(), &executor()));
    return Status::Ok();
  }

  Cluster& cluster() override { return *cluster_; }
  ClusterAdmin& admin() override { return *cluster_; }
  Executor& executor() override {
    if (virtual_clock_) return *sim_executor_;
    return *thread_executor_;
  }
  bool has_virtual_clock() const override { return virtual_clock_; }
  bool can_restart() const override { return true; }
  Status Restart() override {
    Close();
    return Open();
  }
  std::string Describe(const TableSchema& table, const RowState& row) override {
    return Layout(*cluster_, table, row);
  }

 private:
  RocksCluster::Options Options() const {
    RocksCluster::Options options;
    options.store.directory = directory_;
    options.servers = wishes_.servers;
    options.seed = wishes_.seed;
    options.server.faults = wishes_.faults;
    if (wishes_.small_pages) options.server.page_candidates = 10;
    if (wishes_.page_rows > 0) options.server.page_rows = wishes_.page_rows;
    if (wishes_.page_grouped > 0) options.server.page_grouped = wishes_.page_grouped;
    if (!wishes_.restless) return options;
    options.session_timeout = milliseconds(500);
    options.operation_timeout = seconds(5);
    options.balance = false;
    options.server.feed.lease = milliseconds(200);
    options.server.proof_term = milliseconds(400);
    options.server.heartbeat_interval = milliseconds(100);
    options.server.write_timeout = seconds(3);
    options.server.split_bytes = 0;
    options.server.build_rows = 16;
    options.server.recount = {.least = 20, .an_entry = 1};
    if (wishes_.seed % 2 == 0) options.server.filter_bytes = 400;
    return options;
  }

  void Close() {
    if (thread_executor_) thread_executor_->Stop();
    if (sim_executor_) sim_executor_->Clear();
    cluster_.reset();
    thread_executor_.reset();
    sim_executor_.reset();
  }

  const ClusterWishes wishes_;
  const bool virtual_clock_;
  const std::filesystem::path directory_;
  std::unique_ptr<SimExecutor> sim_executor_;
  std::unique_ptr<ThreadExecutor> thread_executor_;
  std::unique_ptr<RocksCluster> cluster_;
};

ClusterKind KindOf(std::string name, bool virtual_clock) {
  return {.name = std::move(name),
          .virtual_clock = virtual_clock,
          .open = [virtual_clock](
                      const ClusterWishes& wishes) -> Result<std::unique_ptr<ClusterUnderTest>> {
            auto opened = std::make_unique<EmbeddedCluster>(wishes, virtual_clock);
            TAMIS_RETURN_IF_ERROR(opened->Open());
            return std::unique_ptr<ClusterUnderTest>(std::move(opened));
          }};
}

}  // namespace

ClusterKind EmbeddedKind() { return KindOf("embedded", false); }
ClusterKind EmbeddedVirtualKind() { return KindOf("embedded_virtual", true); }
std::vector<ClusterKind> ClusterKinds() { return {EmbeddedKind(), EmbeddedVirtualKind()}; }

}  // namespace tamis
