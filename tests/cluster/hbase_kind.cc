#include "tests/cluster/hbase_kind.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "tamis/base/thread_executor.h"
#include "tamis/hbase/site_file.h"
#include "tamis/hbase_cluster/hbase_cluster.h"
#include "tamis/hbase_cluster/hbase_cluster_admin.h"
#include "tests/cluster/layout.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/wires.h"

namespace tamis {
namespace {

constexpr int kThreads = 4;

std::string Site() { return LocalHBase::Directory() + "/client/hbase-site.xml"; }

// Any master or region server is asked where HBase is; security is as the cluster has it.
Result<hbase::ClientOptions> OptionsOf(const LocalHBase& hbase) {
  TAMIS_ASSIGN_OR_RETURN(const auto site, hbase::SiteFile::Read(Site()));
  return site.Complete({.addresses = hbase.addresses()});
}

std::string NewNamespace() {
  static std::atomic<int> number = 0;
  return "test_" + std::to_string(::getpid()) + "_" + std::to_string(++number);
}

// An HBaseClusterAdmin, with the operations that only the owner of the processes can do. A server
// is "HOST:PORT".
class AdminOfProcesses : public ClusterAdmin {
 public:
  AdminOfProcesses(HBaseClusterAdmin* admin, const LocalHBase* hbase, bool may_pause)
      : admin_(*admin), hbase_(*hbase), may_pause_(may_pause) {}
  // Servers that were killed or paused run again for the next test.
  ~AdminOfProcesses() override {
    // One that slept may end by itself any moment.
    for (const auto& [server, state] : states_) hbase_.Try("kill " + RoleOf(server));
    if (!states_.empty()) hbase_.StartAll();
  }

  bool Can(Capability capability) const override {
    if (capability == Capability::kPauseServer) return may_pause_;
    return capability == Capability::kKillServer || capability == Capability::kResumeServer ||
           admin_.Can(capability);
  }
  void KillServer(const std::string& server, DoneCallback done) override {
    Order(server, "kill", ServerInfo::State::kDead, std::move(done));
  }
  void PauseServer(const std::string& server, DoneCallback done) override {
    if (!may_pause_) return done(CannotDo(Capability::kPauseServer));
    Order(server, "pause", ServerInfo::State::kPaused, std::move(done));
  }
  void ResumeServer(const std::string& server, DoneCallback done) override {
    const bool dead = StateOf(server) == ServerInfo::State::kDead;
    Order(server, dead ? "start" : "resume", ServerInfo::State::kLive, std::move(done));
  }
  void GetStatus(Callback<ClusterStatus> done) override {
    admin_.GetStatus([this, done = std::move(done)](Result<ClusterStatus> status) {
      if (!status.ok()) return done(std::move(status));
      for (ServerStatus& server : status->servers) {
        const ServerInfo::State state = StateOf(server.info.name);
        if (state != ServerInfo::State::kLive) server.info.state = state;
      }
      done(std::move(status));
    });
  }

  void CreateTable(TableSchema schema, Callback<TableSchema> done) override {
    admin_.CreateTable(std::move(schema), std::move(done));
  }
  void DropTable(const std::string& table, DropOptions options, DoneCallback done) override {
    admin_.DropTable(table, options, std::move(done));
  }
  void AttachTable(TableSchema schema, const std::string& foreign_name,
                   Callback<TableSchema> done) override {
    admin_.AttachTable(std::move(schema), foreign_name, std::move(done));
  }
  void DetachTable(const std::string& table, DoneCallback done) override {
    admin_.DetachTable(table, std::move(done));
  }
  void DetachForeignTable(const std::string& foreign_name, DoneCallback done) override {
    admin_.DetachForeignTable(foreign_name, std::move(done));
  }
  void ListUnnamedTables(Callback<std::vector<std::string>> done) override {
    admin_.ListUnnamedTables(std::move(done));
  }
  void Examine(Callback<std::vector<Finding>> done) override { admin_.Examine(std::move(done)); }
  void AddColumn(const std::string& table, Column column, Callback<TableSchema> done) override {
    admin_.AddColumn(table, std::move(column), std::move(done));
  }
  void DropColumn(const std::string& table, const std::string& column,
                  Callback<TableSchema> done) override {
    admin_.DropColumn(table, column, std::move(done));
  }
  void CreateIndex(const std::string& table, IndexSpec index, Callback<TableSchema> done) override {
    admin_.CreateIndex(table, std::move(index), std::move(done));
  }
  void DropIndex(const std::string& table, const std::string& index,
                 Callback<TableSchema> done) override {
    admin_.DropIndex(table, index, std::move(done));
  }
  void GetIndexProgress(const std::string& table, const std::string& index,
                        Callback<IndexProgress> done) override {
    admin_.GetIndexProgress(table, index, std::move(done));
  }
  void SplitRegion(RegionId region, std::string key, DoneCallback done) override {
    admin_.SplitRegion(region, std::move(key), std::move(done));
  }
  void MergeRegion(RegionId region, DoneCallback done) override {
    admin_.MergeRegion(region, std::move(done));
  }
  void MoveRegion(RegionId region, const std::string& server, DoneCallback done) override {
    admin_.MoveRegion(region, server, std::move(done));
  }
  void StartJob(JobSpec spec, Callback<uint64_t> done) override {
    admin_.StartJob(std::move(spec), std::move(done));
  }
  void GetJob(uint64_t job, Callback<JobInfo> done) override {
    admin_.GetJob(job, std::move(done));
  }

 private:
  std::string RoleOf(const std::string& server) const {
    return hbase_.FindRole(
        static_cast<unsigned>(std::atoi(server.c_str() + server.rfind(':') + 1)));
  }
  ServerInfo::State StateOf(const std::string& server) const {
    std::lock_guard lock(mutex_);
    const auto found = states_.find(server);
    return found == states_.end() ? ServerInfo::State::kLive : found->second;
  }
  void Order(const std::string& server, const std::string& verb, ServerInfo::State state,
             DoneCallback done) {
    const std::string role = RoleOf(server);
    if (role.empty()) return done(NotFound("no region server \"" + server + "\""));
    if (verb != "start" && StateOf(server) == ServerInfo::State::kDead) {
      return done(FailedPrecondition("region server " + server + " is not running"));
    }
    // One that slept for too long ends when it wakes.
    const bool done_well = hbase_.Try(verb + " " + role);
    {
      std::lock_guard lock(mutex_);
      states_[server] = state;
    }
    done(done_well ? Status::Ok() : Unavailable("cannot " + verb + " " + role));
  }

  HBaseClusterAdmin& admin_;
  const LocalHBase& hbase_;
  const bool may_pause_;
  mutable std::mutex mutex_;
  std::map<std::string, ServerInfo::State> states_;  // servers that a test has done something to
};

class FarHBase : public FarCluster {
 public:
  static Result<std::unique_ptr<FarCluster>> Open(hbase::ClientOptions client,
                                                  const std::string& name_space) {
    auto far = std::make_unique<FarHBase>();
    client.way = [wires = &far->wires_](const hbase::Address& to) { return wires->WayTo(to); };
    TAMIS_ASSIGN_OR_RETURN(
        far->cluster_, HBaseCluster::Open({.client = std::move(client), .name_space = name_space},
                                          &far->executor_));
    return std::unique_ptr<FarCluster>(std::move(far));
  }
  ~FarHBase() override {
    wires_.Heal();
    executor_.Stop();
  }

  Cluster& cluster() override { return *cluster_; }
  Executor& executor() override { return executor_; }
  void Cut() override { wires_.Cut(); }
  void Heal() override { wires_.Heal(); }

 private:
  Wires wires_;
  ThreadExecutor executor_{kThreads};
  std::unique_ptr<HBaseCluster> cluster_;
};

class HBaseUnderTest : public ClusterUnderTest {
 public:
  explicit HBaseUnderTest(const ClusterWishes& wishes)
      : wishes_(wishes), hbase_(LocalHBase::Get()), name_space_(NewNamespace()) {}
  ~HBaseUnderTest() override {
    processes_.reset();
    DropTables();
    Close();
  }

  Status Open() {
    executor_ = std::make_unique<ThreadExecutor>(kThreads);
    TAMIS_ASSIGN_OR_RETURN(hbase::ClientOptions client, OptionsOf(hbase_));
    TAMIS_ASSIGN_OR_RETURN(
        cluster_,
        HBaseCluster::Open({.client = client, .name_space = name_space_}, executor_.get()));
    client.operation_timeout = std::chrono::minutes(2);
    TAMIS_ASSIGN_OR_RETURN(
        admin_, HBaseClusterAdmin::Open({.client = client, .patience = std::chrono::seconds(50)},
                                        cluster_.get(), executor_.get()));
    // A server that is paused for longer than its session and is written to when it wakes loses
    // rows that it acknowledges: on the local file system HBase does not prevent that.
    const bool may_pause = !wishes_.restless;
    processes_ = std::make_unique<AdminOfProcesses>(admin_.get(), &hbase_, may_pause);
    return Status::Ok();
  }

  Cluster& cluster() override { return *cluster_; }
  ClusterAdmin& admin() override { return *processes_; }
  Executor& executor() override { return *executor_; }
  bool has_virtual_clock() const override { return false; }
  // It takes half a minute, and is tried by tests of its own.
  bool can_restart() const override { return false; }
  Status Restart() override { return Internal("it does not restart"); }
  std::string StoreName() override {
    return "hbase://" + hbase_.addresses() + "/" + name_space_ + "?site=" + Site();
  }
  Result<std::unique_ptr<FarCluster>> OpenFar() override {
    TAMIS_ASSIGN_OR_RETURN(hbase::ClientOptions client, OptionsOf(hbase_));
    return FarHBase::Open(std::move(client), name_space_);
  }
  std::string Describe(const TableSchema& table, const RowState&) override {
    std::string text = "\n";
    const auto regions = Regions(table.name);
    if (!regions.ok()) return text + regions.status().ToString();
    for (const RegionInfo& region : *regions) {
      text += region.name + " " + region.id.ToString() + " at " + region.server + "\n";
    }
    return text;
  }

 private:
  void DropTables() {
    const auto tables =
        Ask<std::vector<TableSchema>>([&](auto done) { cluster_->ListTables(done); });
    if (!tables.ok()) return;
    for (const TableSchema& table : *tables) {
      (void)AwaitStatus(executor_.get(), Soon(),
                        [&](auto done) { admin_->DropTable(table.name, {}, done); });
    }
  }
  void Close() {
    executor_->Stop();
    admin_.reset();
    cluster_.reset();
    executor_.reset();
  }

  const ClusterWishes wishes_;
  const LocalHBase& hbase_;
  const std::string name_space_;
  std::unique_ptr<ThreadExecutor> executor_;
  std::unique_ptr<HBaseCluster> cluster_;
  std::unique_ptr<HBaseClusterAdmin> admin_;
  std::unique_ptr<AdminOfProcesses> processes_;
};

}  // namespace

ClusterKind HBaseKind() {
  return {.name = "hbase",
          .open = [](const ClusterWishes& wishes) -> Result<std::unique_ptr<ClusterUnderTest>> {
            auto opened = std::make_unique<HBaseUnderTest>(wishes);
            TAMIS_RETURN_IF_ERROR(opened->Open());
            return std::unique_ptr<ClusterUnderTest>(std::move(opened));
          }};
}

std::vector<ClusterKind> ClusterKinds() { return {HBaseKind()}; }

}  // namespace tamis
