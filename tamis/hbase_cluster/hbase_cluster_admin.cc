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
    : client_(std::move(client)),
      regions_(cluster, client_.get()),
      reports_(executor, cluster, client_.get(), &regions_, &closed_),
      schema_changes_(cluster, client_.get(), &reports_),
      attachments_(cluster, client_.get(), &reports_),
      region_changes_(executor, options.patience, client_.get(), &regions_),
      jobs_(executor, options.patience, cluster, client_.get(), &regions_, &schema_changes_,
            &closed_),
      workers_(executor, kWorkers) {}

HBaseClusterAdmin::~HBaseClusterAdmin() {
  closed_ = true;
  client_->Close();
  workers_.Stop();
  jobs_.Stop();
}

// ---- Schemas

void HBaseClusterAdmin::CreateTable(TableSchema schema, Callback<TableSchema> done) {
  workers_.Run([this, schema = std::move(schema)] { return schema_changes_.Create(schema); },
               std::move(done));
}

void HBaseClusterAdmin::DropTable(const std::string& table, DropOptions options,
                                  DoneCallback done) {
  workers_.Run([this, table, options] { return schema_changes_.Drop(table, options); },
               std::move(done));
}

void HBaseClusterAdmin::AttachTable(TableSchema schema, const std::string& foreign_name,
                                    Callback<TableSchema> done) {
  workers_.Run([this, schema = std::move(schema),
                foreign_name] { return attachments_.Attach(schema, foreign_name); },
               std::move(done));
}

void HBaseClusterAdmin::DetachTable(const std::string& table, DoneCallback done) {
  workers_.Run([this, table] { return attachments_.Detach(table); }, std::move(done));
}

void HBaseClusterAdmin::DetachForeignTable(const std::string& foreign_name, DoneCallback done) {
  workers_.Run([this, foreign_name] { return attachments_.DetachForeign(foreign_name); },
               std::move(done));
}

void HBaseClusterAdmin::ListUnnamedTables(Callback<std::vector<std::string>> done) {
  workers_.Run([this] { return attachments_.ListUnnamed(); }, std::move(done));
}

void HBaseClusterAdmin::AddColumn(const std::string& table, Column column,
                                  Callback<TableSchema> done) {
  workers_.Run([this, table,
                column = std::move(column)] { return schema_changes_.AddColumn(table, column); },
               std::move(done));
}

void HBaseClusterAdmin::DropColumn(const std::string& table, const std::string& column,
                                   Callback<TableSchema> done) {
  workers_.Run([this, table, column] { return schema_changes_.DropColumn(table, column); },
               std::move(done));
}

void HBaseClusterAdmin::CreateIndex(const std::string& table, IndexSpec index,
                                    Callback<TableSchema> done) {
  workers_.Run(
      [this, table, index = std::move(index)] { return schema_changes_.CreateIndex(table, index); },
      std::move(done));
}

void HBaseClusterAdmin::DropIndex(const std::string& table, const std::string& index,
                                  Callback<TableSchema> done) {
  workers_.Run([this, table, index] { return schema_changes_.DropIndex(table, index); },
               std::move(done));
}

void HBaseClusterAdmin::GetIndexProgress(const std::string& table, const std::string& index,
                                         Callback<IndexProgress> done) {
  workers_.Run([this, table, index] { return reports_.GetIndexProgress(table, index); },
               std::move(done));
}

// ---- Regions

void HBaseClusterAdmin::SplitRegion(RegionId region, std::string key, DoneCallback done) {
  workers_.RunSteps(region_changes_.Split(region, std::move(key)), std::move(done));
}

void HBaseClusterAdmin::MergeRegion(RegionId region, DoneCallback done) {
  workers_.RunSteps(region_changes_.Merge(region), std::move(done));
}

void HBaseClusterAdmin::MoveRegion(RegionId region, const std::string& server, DoneCallback done) {
  workers_.RunSteps(region_changes_.Move(region, server), std::move(done));
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
  workers_.Run([this] { return reports_.GetStatus(); }, std::move(done));
}

void HBaseClusterAdmin::Examine(Callback<std::vector<Finding>> done) {
  workers_.Run([this] { return reports_.Examine(); }, std::move(done));
}

// ---- Jobs

void HBaseClusterAdmin::StartJob(JobSpec spec, Callback<uint64_t> done) {
  workers_.Run([this, spec = std::move(spec)] { return jobs_.Start(spec); }, std::move(done));
}

void HBaseClusterAdmin::GetJob(uint64_t job, Callback<JobInfo> done) { done(jobs_.Find(job)); }

}  // namespace tamis
