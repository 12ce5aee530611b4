// The master's operations for a client: tables, regions, servers.
//
// The master runs its work as a procedure, which continues even if no client polls it: Start...
// returns the procedure's number, and AwaitProcedure waits for its end. Each request that starts a
// procedure carries a nonce, so that repeating it is safe, even at another master.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/connection.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/write_options.h"

namespace tamis::hbase {

class Session;

class Admin {
 public:
  explicit Admin(Session& session) : session_(session) {}

  Task<Result<uint64_t>> StartCreateTable(TableDescription table,
                                          std::vector<std::string> split_keys, Deadline deadline);
  // If `reopen` is set, every region is closed and opened with the new description.
  Task<Result<uint64_t>> StartModifyTable(TableDescription table, bool reopen, Deadline deadline);
  // "EnableTable", "DisableTable", "DeleteTable"
  Task<Result<uint64_t>> StartOnTable(std::string method, std::string table, Deadline deadline);
  // An empty key lets HBase choose where to split.
  Task<Result<uint64_t>> StartSplit(Region region, std::string key, Deadline deadline);
  Task<Result<uint64_t>> StartMerge(std::vector<Region> regions, Deadline deadline);
  Task<Result<uint64_t>> StartCreateNamespace(std::string name, Deadline deadline);
  Task<Result<uint64_t>> StartDeleteNamespace(std::string name, Deadline deadline);
  Task<Status> AwaitProcedure(uint64_t id, Deadline deadline);

  // Moves to any server if `to` has no host. HBase returns ok once the region is open on any
  // server.
  Task<Status> MoveRegion(Region region, ServerName to, Deadline deadline);
  // The tables of one namespace; all tables if `name_space` is empty.
  Task<Result<std::vector<TableDescription>>> Tables(std::string name_space, Deadline deadline);
  Task<Result<TableDescription>> Table(std::string name, Deadline deadline);
  Task<Result<hbase::TableState>> StateOfTable(std::string name, Deadline deadline);
  Task<Result<std::vector<std::string>>> Namespaces(Deadline deadline);
  Task<Result<ClusterState>> Cluster(ClusterDetail detail, Deadline deadline);
  // Calls the active master.
  Task<ServiceReply> ExecMasterService(ServiceCall call, Deadline deadline);
  // Returns the previous state.
  Task<Result<bool>> SwitchBalancer(bool on, Deadline deadline);
  // Returns the number of regions moved.
  Task<Result<uint64_t>> Balance(Deadline deadline);

  // These call the server that has the region.
  Task<Status> FlushRegion(Region region, Deadline deadline);
  Task<Status> CompactRegion(Region region, bool major, Deadline deadline);
  Task<Result<bool>> IsCompacting(Region region, Deadline deadline);
  Task<Result<SplitState>> StateOfSplit(Region region, Deadline deadline);

 private:
  using Message = google::protobuf::MessageLite;

  // `repeat`: the request is sent again even if an earlier try may have been carried out. `thrown`:
  // set to the last exception, if there was one.
  Task<Status> Ask(std::string method, std::shared_ptr<const Message> request, Message* answer,
                   bool repeat, Deadline deadline, Exception* thrown = nullptr);
  Task<Result<uint64_t>> Start(std::string method, std::shared_ptr<const Message> request,
                               Deadline deadline);
  Task<Status> AskServer(ServerName server, std::string method,
                         std::shared_ptr<const Message> request, Message* answer,
                         Deadline deadline);

  Session& session_;
  ServerName master_;
};

}  // namespace tamis::hbase
