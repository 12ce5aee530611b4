// A client of an HBase cluster (2.6), without Java and without ZooKeeper.
//
//   auto client = hbase::Client::Open({.addresses = "host1:16000,host2:16020"});
//   (*client)->Mutate("t", Mutation::Put("row").Set("f", "q", "value"));
//   auto row = (*client)->Get("t", {.row = "row"});
//
// Every operation finds the servers that it needs, follows regions that split, move, or come back
// on another server, and is retried until it is answered or ClientOptions::operation_timeout is
// over. A change that may have been carried out is not sent again (WriteOptions::repeat): then the
// status is kDeadlineExceeded.
//
// Each operation can be had in two ways: with a callback, which runs on the client's thread and
// must not block or call the second kind; and without, which blocks. Threads: any may use the
// client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/filter.h"
#include "tamis/hbase/operations.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/row.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/hbase/write_options.h"

namespace tamis::hbase {

struct ClientThread;

template <class T>
using Done = std::function<void(T)>;

// The rows of a scan, batch by batch. Threads: one at a time. Ends before its client.
class RowStream {
 public:
  ~RowStream();
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // No rows at the end.
  void Next(Done<Result<std::vector<Row>>> done);
  Result<std::vector<Row>> Next();

 private:
  friend class Client;
  struct Inside;
  explicit RowStream(std::shared_ptr<Inside> inside) : inside_(std::move(inside)) {}
  std::shared_ptr<Inside> inside_;
};

class Client {
 public:
  // Starts a thread, and connects when there is something to ask. kInvalidArgument for addresses
  // that are none, and for files of TLS that cannot be used.
  static Result<std::unique_ptr<Client>> Open(ClientOptions options);
  // Operations that have not ended end with kCancelled first.
  ~Client();
  // Ends the operations under way with kCancelled, soon, and later ones too: for a caller whose
  // threads block on the client that it is about to destroy.
  void Close();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // ---- Rows.
  void Get(std::string table, hbase::Get get, Done<Result<Row>> done);
  Result<Row> Get(std::string table, hbase::Get get);
  // A result for each, in their order.
  void Get(std::string table, std::vector<hbase::Get> gets, Done<std::vector<Result<Row>>> done);
  std::vector<Result<Row>> Get(std::string table, std::vector<hbase::Get> gets);

  void Mutate(std::string table, Mutation mutation, WriteOptions options,
              Done<Result<MutateResult>> done);
  Result<MutateResult> Mutate(std::string table, Mutation mutation, WriteOptions options = {});
  // All or none; all of one row.
  void MutateRow(std::string table, std::vector<Mutation> mutations, WriteOptions options,
                 Done<Result<MutateResult>> done);
  Result<MutateResult> MutateRow(std::string table, std::vector<Mutation> mutations,
                                 WriteOptions options = {});
  // Each for itself, in any order. The row of a result has the new values of Increment and Append.
  void Mutate(std::string table, std::vector<Mutation> mutations, WriteOptions options,
              Done<std::vector<Result<Row>>> done);
  std::vector<Result<Row>> Mutate(std::string table, std::vector<Mutation> mutations,
                                  WriteOptions options = {});

  std::unique_ptr<RowStream> Scan(std::string table, hbase::Scan scan);

  // ---- Coprocessors. Executed at the region that holds the row.
  void Exec(std::string table, std::string row, ServiceCall call, Done<Result<std::string>> done);
  Result<std::string> Exec(std::string table, std::string row, ServiceCall call);
  // One try, at this server, by a region that it is believed to have.
  void ExecAt(const Region& region, ServiceCall call, Done<ServiceReply> done);
  ServiceReply ExecAt(const Region& region, ServiceCall call);
  // Executed by the server itself, which requires the right ADMIN where rights are checked.
  void ExecServer(ServerName server, ServiceCall call, Done<Result<std::string>> done);
  Result<std::string> ExecServer(ServerName server, ServiceCall call);
  // Executed by the active master; the same right is required.
  Result<std::string> ExecMaster(ServiceCall call);

  // ---- Regions. Known locations are used; hbase:meta is asked for the others.
  void Locate(std::string table, std::string row, Done<Result<RegionPtr>> done);
  Result<RegionPtr> Locate(std::string table, std::string row);
  // Regions as hbase:meta has them now; a region that is open nowhere has no server.
  void Regions(std::string table, Done<Result<std::vector<RegionPtr>>> done);
  Result<std::vector<RegionPtr>> Regions(std::string table);
  // The regions that hold rows from `start` to before `end`; empty for a table that does not exist.
  void Regions(std::string table, std::string start, std::string end,
               Done<Result<std::vector<RegionPtr>>> done);
  // It does not answer as it should: what is known of it is looked up again when it is asked for.
  void Suspect(RegionPtr region);

  // ---- The master. Each returns when the work is done.
  Status CreateTable(TableDescription table, std::vector<std::string> split_keys = {});
  Status ModifyTable(TableDescription table, bool reopen = true);
  Status EnableTable(std::string table);
  Status DisableTable(std::string table);
  // REQUIRES: it is disabled.
  Status DeleteTable(std::string table);
  Status CreateNamespace(std::string name);
  Status DeleteNamespace(std::string name);
  Result<std::vector<std::string>> Namespaces();
  // A namespace's; all when it is empty. The tables of HBase itself are left out.
  Result<std::vector<TableDescription>> Tables(std::string name_space = {});
  Result<TableDescription> Table(std::string name);
  Result<TableState> StateOfTable(std::string name);
  Status SplitRegion(Region region, std::string key);
  Status MergeRegions(std::vector<Region> neighbours);
  Status MoveRegion(Region region, ServerName to);
  Status FlushRegion(Region region);
  // Returns when it has been asked for.
  Status CompactRegion(Region region, bool major);
  Result<bool> IsCompacting(Region region);
  Result<bool> SwitchBalancer(bool on);
  Result<uint64_t> Balance();
  Result<ClusterState> Cluster(ClusterDetail detail = ClusterDetail::kAll);

  // ---- How it goes.
  struct Counts {
    uint64_t meta_lookups = 0;      // single keys read from hbase:meta
    uint64_t meta_table_scans = 0;  // whole tables read from it
    uint64_t registry_lookups = 0;  // of hbase:meta itself
    uint64_t hints_taken = 0;       // regions followed without asking hbase:meta
  };
  Counts counts();

 private:
  explicit Client(std::shared_ptr<ClientThread> inside) : inside_(std::move(inside)) {}
  std::shared_ptr<ClientThread> inside_;
};

}  // namespace tamis::hbase
