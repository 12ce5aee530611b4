#include "tamis/hbase_cluster/hbase_cluster_admin.h"

namespace tamis {
namespace {

constexpr int kWorkers = 4;

}  // namespace

Result<std::unique_ptr<HBaseClusterAdmin>> HBaseClusterAdmin::Open(Options options,
                                                                   HBaseCluster* cluster,
                                                                   Executor* executor) {
  TAMIS_ASSIGN_OR_RETURN(auto client, hbase::Client::Open(options.client));
  return std::unique_ptr<HBaseClusterAdmin>(
      new HBaseClusterAdmin(options, cluster, executor, std::move(client)));
}

HBaseClusterAdmin::HBaseClusterAdmin(const Options& options, HBaseCluster* cluster,
                                     Executor* executor, std::unique_ptr<hbase::Client> client)
    : executor_(executor),
      client_(std::move(client)),
      regions_(cluster, client_.get()),
      reports_(executor, cluster, client_.get(), &regions_, &closed_),
      schema_changes_(cluster, client_.get(), &reports_),
      attachments_(cluster, client_.get(), &reports_),
      region_changes_(executor, options.patience, client_.get(), &regions_),
      jobs_(executor, options.patience, cluster, client_.get(), &regions_, &closed_),
      workers_(kWorkers) {}

HBaseClusterAdmin::~HBaseClusterAdmin() {
  closed_ = true;
  client_->Close();
  workers_.Stop();
  jobs_.Stop();
}

template <class T>
void HBaseClusterAdmin::Do(Callback<T> done, std::function<Result<T>()> work) {
  workers_.Post([this, done = std::move(done), work = std::move(work)] {
    executor_->Post([done, answer = work()] { done(answer); });
  });
}

void HBaseClusterAdmin::DoStatus(DoneCallback done, std::function<Status()> work) {
  workers_.Post([this, done = std::move(done), work = std::move(work)] {
    executor_->Post([done, status = work()] { done(status); });
  });
}

// ---- Schemas

void HBaseClusterAdmin::CreateTable(TableSchema schema, Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done),
                  [this, schema = std::move(schema)] { return schema_changes_.Create(schema); });
}

void HBaseClusterAdmin::DropTable(const std::string& table, DropOptions options,
                                  DoneCallback done) {
  DoStatus(std::move(done),
           [this, table, options] { return schema_changes_.Drop(table, options); });
}

void HBaseClusterAdmin::AttachTable(TableSchema schema, const std::string& foreign_name,
                                    Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, schema = std::move(schema), foreign_name] {
    return attachments_.Attach(schema, foreign_name);
  });
}

void HBaseClusterAdmin::DetachTable(const std::string& table, DoneCallback done) {
  DoStatus(std::move(done), [this, table] { return attachments_.Detach(table); });
}

void HBaseClusterAdmin::DetachForeignTable(const std::string& foreign_name, DoneCallback done) {
  DoStatus(std::move(done),
           [this, foreign_name] { return attachments_.DetachForeign(foreign_name); });
}

void HBaseClusterAdmin::ListUnnamedTables(Callback<std::vector<std::string>> done) {
  Do<std::vector<std::string>>(std::move(done), [this] { return attachments_.ListUnnamed(); });
}

void HBaseClusterAdmin::AddColumn(const std::string& table, Column column,
                                  Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, table, column = std::move(column)] {
    return schema_changes_.AddColumn(table, column);
  });
}

void HBaseClusterAdmin::CreateIndex(const std::string& table, IndexSpec index,
                                    Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done), [this, table, index = std::move(index)] {
    return schema_changes_.CreateIndex(table, index);
  });
}

void HBaseClusterAdmin::DropIndex(const std::string& table, const std::string& index,
                                  Callback<TableSchema> done) {
  Do<TableSchema>(std::move(done),
                  [this, table, index] { return schema_changes_.DropIndex(table, index); });
}

void HBaseClusterAdmin::GetIndexProgress(const std::string& table, const std::string& index,
                                         Callback<IndexProgress> done) {
  Do<IndexProgress>(std::move(done),
                    [this, table, index] { return reports_.GetIndexProgress(table, index); });
}

// ---- Regions

void HBaseClusterAdmin::SplitRegion(RegionId region, std::string key, DoneCallback done) {
  DoStatus(std::move(done),
           [this, region, key = std::move(key)] { return region_changes_.Split(region, key); });
}

void HBaseClusterAdmin::MergeRegion(RegionId region, DoneCallback done) {
  DoStatus(std::move(done), [this, region] { return region_changes_.Merge(region); });
}

void HBaseClusterAdmin::MoveRegion(RegionId region, const std::string& server, DoneCallback done) {
  DoStatus(std::move(done),
           [this, region, server] { return region_changes_.Move(region, server); });
}

// ---- Servers

bool HBaseClusterAdmin::Can(Capability capability) const {
  return capability == Capability::kBalance || capability == Capability::kCompact ||
         capability == Capability::kAttachTable || capability == Capability::kExamine;
}

void HBaseClusterAdmin::KillServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kKillServer));
}

void HBaseClusterAdmin::PauseServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kPauseServer));
}

void HBaseClusterAdmin::ResumeServer(const std::string&, DoneCallback done) {
  done(CannotDo(Capability::kResumeServer));
}

void HBaseClusterAdmin::GetStatus(Callback<ClusterStatus> done) {
  Do<ClusterStatus>(std::move(done), [this] { return reports_.GetStatus(); });
}

void HBaseClusterAdmin::Examine(Callback<std::vector<Finding>> done) {
  Do<std::vector<Finding>>(std::move(done), [this] { return reports_.Examine(); });
}

// ---- Jobs

void HBaseClusterAdmin::StartJob(JobSpec spec, Callback<uint64_t> done) {
  Do<uint64_t>(std::move(done), [this, spec = std::move(spec)] { return jobs_.Start(spec); });
}

void HBaseClusterAdmin::GetJob(uint64_t job, Callback<JobInfo> done) { done(jobs_.Find(job)); }

}  // namespace tamis
