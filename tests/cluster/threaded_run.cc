#include "tests/cluster/threaded_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tamis/table/codec.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kServers = 5;

}  // namespace

ThreadedRun::ThreadedRun(const ClusterKind& kind, const ThreadedClusterOptions& options)
    : options_(options), progress_(options.seed, options.operations) {
  Open(kind);
}

ThreadedRun::~ThreadedRun() {
  plain_.reset();
  process_.reset();
  far_engine_.reset();
  far_.reset();
  sql_.clear();
  for (auto& engine : engines_) engine.reset();
  cluster_.reset();
}

void ThreadedRun::Open(const ClusterKind& kind) {
  auto opened = kind.open(
      {.servers = kServers, .seed = options_.seed, .restless = true, .faults = options_.faults});
  if (!opened.ok()) return progress_.Fail("cannot open the cluster: " + opened.status().ToString());
  cluster_ = std::move(*opened);
  auto servers = cluster_->Servers();
  if (!servers.ok())
    return progress_.Fail("cannot list the servers: " + servers.status().ToString());
  servers_ = std::move(*servers);
  for (auto& engine : engines_) engine = StartEngine();
  TableSchema schema = RandomRows::Schema();
  for (IndexSpec& index : schema.indexes) index = RandomRows::WithCells(std::move(index));
  auto made = cluster_->CreateTable(std::move(schema));
  if (!made.ok()) return progress_.Fail("cannot create the table: " + made.status().ToString());
  table_ = std::move(*made);
  // In an outage few orders succeed: there is something to leave out from the beginning.
  if (!options_.outages.empty()) SplitInHalf();
  for (int i = 0; i < options_.clients && !progress_.failed(); ++i)
    OpenSql(*engines_[i % engines_.size()]);
  if (!options_.coordinator.empty() && !progress_.failed()) StartProcess();
  if (!options_.plain_client.empty() && !progress_.failed()) StartPlainClient();
  if (!options_.cut_off) return;
  auto far = cluster_->OpenFar();
  if (!far.ok())
    return progress_.Fail("cannot open the cluster from afar: " + far.status().ToString());
  far_ = std::move(*far);
  if (far_) far_engine_ = StartEngine(far_->cluster(), far_->executor());
}

void ThreadedRun::StartProcess() {
  std::vector<std::string> command = options_.coordinator;
  command.push_back(cluster_->StoreName());
  auto started = SqlProcess::Start(command);
  if (!started.ok())
    return progress_.Fail("cannot start a coordinator: " + started.status().ToString());
  std::lock_guard lock(mutex_);
  process_ = std::move(*started);
}

void ThreadedRun::StartPlainClient() {
  std::vector<std::string> command = options_.plain_client;
  std::string store = cluster_->StoreName();
  store.resize(std::min(store.size(), store.find('?')));
  command.push_back(store.substr(store.rfind('/') + 1) + ":t");
  auto started = PlainClient::Start(command);
  if (!started.ok())
    return progress_.Fail("cannot start a plain client: " + started.status().ToString());
  plain_ = std::move(*started);
}

void ThreadedRun::SplitInHalf() {
  const auto regions = cluster_->Regions("t");
  if (!regions.ok())
    return progress_.Fail("cannot list the regions: " + regions.status().ToString());
  const Row middle = RandomRows::KeyRow(kShared + RandomRows::kKeys / 2);
  const Status split = cluster_->Split(regions->front().id, EncodeKey(*table_, middle));
  if (!split.ok()) progress_.Fail("cannot split the table: " + split.ToString());
}

std::unique_ptr<Engine> ThreadedRun::StartEngine() {
  return StartEngine(cluster_->cluster(), cluster_->executor());
}

std::unique_ptr<Engine> ThreadedRun::StartEngine(Cluster& cluster, Executor& executor) {
  Engine::Options options;
  options.poll_wait = milliseconds(100);
  options.request_timeout = seconds(1);
  options.write_timeout = seconds(15);
  options.seed = Mix(options_.seed) + ++engines_started_;
  options.faults = std::make_shared<const Faults>(options_.faults);
  return std::make_unique<Engine>(&cluster, &executor, options);
}

void ThreadedRun::OpenSql(Engine& engine) {
  auto client = SqlClient::Open(&engine);
  if (!client.ok()) return progress_.Fail("cannot open SQLite: " + client.status().ToString());
  sql_.push_back(std::move(*client));
}

std::shared_ptr<SqlProcess> ThreadedRun::process() {
  std::lock_guard lock(mutex_);
  return process_;
}

// One request has a second, which a busy machine does not always have.
SchemaPtr ThreadedRun::SchemaOf(Engine& engine) {
  const Time end = cluster_->Soon().deadline;
  while (true) {
    auto schema = engine.Table("t");
    if (schema.ok()) return *schema;
    if (TakeAbsence("schemas", schema.status())) return nullptr;
    if (!IsAbsence(schema.status()) || cluster_->executor().Now() >= end) {
      progress_.Fail("no schema: " + schema.status().ToString());
      return nullptr;
    }
    progress_.Count("schemas asked for again");
  }
}

bool ThreadedRun::IsAbsence(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded;
}

bool ThreadedRun::TakeAbsence(const std::string& of, const Status& status) {
  if (options_.outages.empty() || at_rest_ || !IsAbsence(status)) return false;
  progress_.Count(of + " out of time");
  return true;
}

}  // namespace tamis
