#include "tamis/hbase_cluster/hbase_cluster.h"

#include <algorithm>
#include <set>

#include "tamis/base/answers.h"
#include "tamis/base/join.h"

namespace tamis {
namespace {

constexpr int kWaiters = 4;

Result<RegionInfo> InfoOf(const hbase::Region& region, uint32_t table_id) {
  TAMIS_ASSIGN_OR_RETURN(const RegionId id, RegionIdOf(region.encoded));
  RegionInfo info{.id = id,
                  .name = region.encoded,
                  .epoch = 0,  // any opening of the region
                  .table_id = table_id,
                  .start = region.start,
                  .end = region.end};
  if (!region.server.address.host.empty()) info.server = region.server.address.ToString();
  return info;
}

}  // namespace

Result<std::unique_ptr<HBaseCluster>> HBaseCluster::Open(Options options, Executor* executor) {
  TAMIS_ASSIGN_OR_RETURN(auto client, hbase::Client::Open(options.client));
  return std::unique_ptr<HBaseCluster>(
      new HBaseCluster(std::move(options), executor, std::move(client)));
}

HBaseCluster::HBaseCluster(Options options, Executor* executor,
                           std::unique_ptr<hbase::Client> client)
    : options_(std::move(options)),
      executor_(executor),
      link_(std::make_shared<ServerLink>()),
      tables_(executor, options_.name_space, client.get()),
      sizes_(executor, &waiters_, client.get(),
             {.age = options_.size_age, .patience = options_.patience}),
      pauses_(options_.first_look, options_.last_look),
      client_(std::move(client)),
      waiters_(kWaiters) {
  link_->client = client_.get();
  link_->executor = executor;
  link_->on_gone = [this](const hbase::RegionPtr& region) { LookAt(region); };
}

HBaseCluster::~HBaseCluster() {
  client_->Close();  // ends the calls that waiters_ waits for
  waiters_.Stop();
}

Status HBaseCluster::WhyNoAnswer(hbase::ClientOptions client, std::chrono::milliseconds time) {
  client.operation_timeout = time;
  TAMIS_ASSIGN_OR_RETURN(const auto opened, hbase::Client::Open(std::move(client)));
  const Status why = opened->Cluster(hbase::ClusterDetail::kServers).status();
  return why.ok() ? DeadlineExceeded("the master answers, but did not list its tables in time")
                  : why;
}

std::shared_ptr<HBaseRegionServer> HBaseCluster::Stub(const std::string& name) {
  return std::make_shared<HBaseRegionServer>(name, link_);
}

// ---- Tables

template <class T>
void HBaseCluster::Ask(Shared<T>* shared, Callback<T> done, std::function<Result<T>()> ask) {
  {
    std::lock_guard lock(mutex_);
    shared->waiting.push_back(std::move(done));
    if (std::exchange(shared->asked, true)) return;
  }
  waiters_.Post([this, shared, ask = std::move(ask)] {
    Result<T> answer = ask();
    std::vector<Callback<T>> waiting;
    {
      std::lock_guard lock(mutex_);
      shared->asked = false;
      waiting.swap(shared->waiting);
    }
    executor_->Post([waiting = std::move(waiting), answer = std::move(answer)] {
      for (const auto& one : waiting) one(answer);
    });
  });
}

void HBaseCluster::Invalidate(const std::string& name) {
  const auto known = tables_.Recall(name);
  if (!known) return;
  link_->regions.ForgetTable(known->hbase_name);
  tables_.Forget(name);
}

void HBaseCluster::GetTable(const std::string& name, Callback<TableSchema> done) {
  AskTable(name, [done = std::move(done)](const Result<IndexedTable>& table) {
    if (!table.ok()) return done(table.status());
    done(table->schema());
  });
}

void HBaseCluster::AskTable(const std::string& name, Callback<IndexedTable> done) {
  Shared<IndexedTable>* find;
  {
    std::lock_guard lock(mutex_);
    find = &finds_[name];
  }
  Ask<IndexedTable>(find, std::move(done), [this, name] {
    auto table = tables_.FindReadable(name);
    tables_.Remember(name, table);
    return table;
  });
}

void HBaseCluster::ListTables(Callback<std::vector<TableSchema>> done) {
  Ask<std::vector<TableSchema>>(&lists_, std::move(done),
                                [this]() -> Result<std::vector<TableSchema>> {
                                  TAMIS_ASSIGN_OR_RETURN(const auto tables, tables_.Readable());
                                  std::vector<TableSchema> schemas;
                                  for (const IndexedTable& table : tables) {
                                    schemas.push_back(table.schema());
                                  }
                                  std::ranges::sort(schemas, {}, &TableSchema::name);
                                  return schemas;
                                });
}

void HBaseCluster::ListHiddenTables(Callback<std::vector<std::string>> done) {
  Ask<std::vector<std::string>>(&hidden_, std::move(done), [this] { return tables_.Hidden(); });
}

// ---- Regions

// Finds the table's HBase name. An old entry is used only if the master does not answer in time or
// fails.
void HBaseCluster::FindKnown(const std::string& name, Callback<HBaseTables::Known> done) {
  const auto old = tables_.Recall(name);
  if (old && executor_->Now() - old->heard < options_.description_age) return done(*old);
  auto answered = std::make_shared<std::atomic<bool>>(false);
  const auto once = [answered, done = std::move(done)](const Result<HBaseTables::Known>& known) {
    if (!answered->exchange(true)) done(known);
  };
  if (old) {
    executor_->PostAfter(options_.patience, [once, known = *old] { once(known); });
  }
  // Another caller may have dropped the remembered entry by now, so use the answer itself.
  AskTable(name, [this, once, old](const Result<IndexedTable>& table) {
    if (table.ok()) return once(tables_.KnownOf(*table));
    const bool master_knows = table.status().code() == StatusCode::kNotFound;
    once(old && !master_knows ? Result<HBaseTables::Known>(*old)
                              : Result<HBaseTables::Known>(table.status()));
  });
}

void HBaseCluster::ListRegions(const std::string& table, std::vector<KeyRange> stale,
                               Callback<std::vector<RegionInfo>> done) {
  FindKnown(table, [this, stale = std::move(stale),
                    done = std::move(done)](const Result<HBaseTables::Known>& known) mutable {
    if (!known.ok()) return done(known.status());
    const auto list = [this, known = *known, stale, done] { ListKnown(known, stale, done); };
    // A list of stale ranges only follows regions that moved, so it does not need the sizes.
    stale.empty() ? sizes_.Learn(list) : list();
  });
}

void HBaseCluster::ListKnown(const HBaseTables::Known& table, std::vector<KeyRange> stale,
                             Callback<std::vector<RegionInfo>> done) {
  using Regions = std::vector<hbase::RegionPtr>;
  if (stale.empty()) stale.push_back({});
  auto join = std::make_shared<Join<Result<Regions>>>(
      Regions(), [this, table_id = table.table_id, done](const Result<Regions>& regions) {
        executor_->Post([this, table_id, done, regions] {
          if (!regions.ok()) return done(regions.status());
          // by start key: two ranges may overlap the same region
          std::map<std::string, RegionInfo> infos;
          for (const hbase::RegionPtr& region : *regions) {
            auto info = InfoOf(*region, table_id);
            if (!info.ok()) return done(info.status());
            info->size_bytes = sizes_.Of(region->encoded);
            infos.insert_or_assign(region->start, *std::move(info));
          }
          std::vector<RegionInfo> sorted;
          for (auto& [start, info] : infos) sorted.push_back(std::move(info));
          done(std::move(sorted));
        });
      });
  for (const KeyRange& range : stale) {
    join->Begin();
    client_->Regions(table.hbase_name, range.start, range.end,
                     [this, join, range, name = table.hbase_name](const Result<Regions>& regions) {
                       if (regions.ok()) link_->regions.Learn(name, range, *regions);
                       join->End([&](Result<Regions>* all) {
                         if (!all->ok()) return;
                         if (!regions.ok()) {
                           *all = regions.status();
                           return;
                         }
                         (*all)->insert((*all)->end(), regions->begin(), regions->end());
                       });
                     });
  }
  join->End();
}

// Looks up the new server of a region that has moved, so that messages can reach that server.
void HBaseCluster::LookAt(const hbase::RegionPtr& gone) {
  client_->Regions(gone->table, gone->start, gone->end,
                   [this, gone](const Result<std::vector<hbase::RegionPtr>>& regions) {
                     if (!regions.ok()) return;
                     link_->regions.Learn(gone->table, {gone->start, gone->end}, *regions);
                   });
}

// ---- Servers

void HBaseCluster::ListServers(Callback<std::vector<ServerInfo>> done) {
  Ask<std::vector<ServerInfo>>(&servers_, std::move(done), [this] {
    auto servers = AskServers();
    if (servers.ok() && LookForRegions(*servers)) {
      for (ServerInfo& server : *servers) server.regions = link_->regions.CountAt(server.name);
    }
    return servers;
  });
}

Result<std::vector<ServerInfo>> HBaseCluster::AskServers() {
  TAMIS_ASSIGN_OR_RETURN(const hbase::ClusterState state,
                         client_->Cluster(hbase::ClusterDetail::kServers));
  std::map<std::string, ServerInfo> servers;
  for (const hbase::ServerName& name : state.dead_servers) {
    const std::string address = name.address.ToString();
    servers[address] = {.name = address, .state = ServerInfo::State::kDead};
  }
  for (const auto& server : state.servers) {
    const std::string address = server.name.address.ToString();
    servers[address] = {.name = address, .regions = link_->regions.CountAt(address)};
  }
  std::vector<ServerInfo> list;
  for (auto& [name, info] : servers) list.push_back(std::move(info));
  return list;
}

// A server is reached through a region of an indexed table. A server without a known region may
// have one all the same, so hbase:meta is read; if nothing changes, the pauses grow.
bool HBaseCluster::LookForRegions(const std::vector<ServerInfo>& servers) {
  std::vector<std::string> bare;
  for (const ServerInfo& server : servers) {
    if (server.state == ServerInfo::State::kLive && server.regions == 0) {
      bare.push_back(server.name);
    }
  }
  {
    std::lock_guard lock(mutex_);
    const Time now = executor_->Now();
    if (bare != bare_) {
      bare_ = bare;
      pauses_.Reset();
      next_look_ = std::min(next_look_, now);
    }
    if (bare.empty() || looking_ || now < next_look_) return false;
    looking_ = true;
    next_look_ = now + pauses_.Next();
  }
  // If the server of hbase:meta hangs, the read takes until hbase:meta is reassigned, so limit the
  // wait.
  return AwaitStatus(executor_, {.deadline = executor_->Now() + options_.patience},
                     [this](auto looked) {
                       waiters_.Post([this, looked = std::move(looked)] {
                         LearnRegions();
                         looked(Status::Ok());
                       });
                     })
      .ok();
}

void HBaseCluster::LearnRegions() {
  if (const auto tables = tables_.Readable(); tables.ok()) {
    for (const IndexedTable& table : *tables) {
      const auto regions = client_->Regions(table.description.name);
      if (regions.ok()) link_->regions.Learn(table.description.name, {}, *regions);
    }
  }
  std::lock_guard lock(mutex_);
  looking_ = false;
}

}  // namespace tamis
