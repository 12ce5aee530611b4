// A client of an HBase cluster (2.5, 2.6 or 3), without Java and without ZooKeeper.
//
//   auto client = hbase::Client::Open({.addresses = "host1:16000,host2:16020"});
//   (*client)->Mutate("t", Mutation::Put("row").Set("f", "q", "value"));
//   auto row = (*client)->Get("t", {.row = "row"});
//
// Every operation finds the servers that it needs, follows regions that split, move, or reopen on
// another server, and is repeated until it is answered or ClientOptions::operation_timeout is over.
// Only wrong addresses and security that does not fit end it at once (registry.h), with
// kFailedPrecondition.
// A change that may have been carried out is not sent again unless WriteOptions::repeat allows it;
// it then ends with kDeadlineExceeded.
//
// Reads and writes have two forms: one with a callback, which runs on the client's thread and must
// not block or call the blocking form; and one without, which blocks. Scan has no callback, and
// calls of the master only block. Threads: any thread may use the client.
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
#include "tamis/hbase/token_file.h"
#include "tamis/hbase/write_options.h"

namespace tamis::hbase {

struct ClientThread;

template <class T>
using Done = std::function<void(T)>;

// The rows of a scan, batch by batch. Threads: one at a time. The client must outlive it.
class RowStream {
 public:
  ~RowStream();
  RowStream(const RowStream&) = delete;
  RowStream& operator=(const RowStream&) = delete;

  // An empty batch is the end.
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
  // Starts a thread; connections are opened when they are needed. Returns kInvalidArgument for
  // addresses that cannot be parsed and for TLS files that cannot be used.
  static Result<std::unique_ptr<Client>> Open(ClientOptions options);
  // Ends all running operations with kCancelled before it returns.
  ~Client();
  // Ends all running operations with kCancelled soon, and every later one, too. Call it before the
  // destructor if other threads block on this client.
  void Close();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // ---- Rows.
  void Get(std::string table, hbase::Get get, Done<Result<Row>> done);
  Result<Row> Get(std::string table, hbase::Get get);
  // Returns a result for each Get, in the same order.
  void Get(std::string table, std::vector<hbase::Get> gets, Done<std::vector<Result<Row>>> done);
  std::vector<Result<Row>> Get(std::string table, std::vector<hbase::Get> gets);

  void Mutate(std::string table, Mutation mutation, WriteOptions options,
              Done<Result<MutateResult>> done);
  Result<MutateResult> Mutate(std::string table, Mutation mutation, WriteOptions options = {});
  // Applies all mutations or none. REQUIRES: all are of one row.
  void MutateRow(std::string table, std::vector<Mutation> mutations, WriteOptions options,
                 Done<Result<MutateResult>> done);
  Result<MutateResult> MutateRow(std::string table, std::vector<Mutation> mutations,
                                 WriteOptions options = {});
  // Applies each mutation independently, in any order. Each result's row has the new values of
  // Increment and Append.
  void Mutate(std::string table, std::vector<Mutation> mutations, WriteOptions options,
              Done<std::vector<Result<Row>>> done);
  std::vector<Result<Row>> Mutate(std::string table, std::vector<Mutation> mutations,
                                  WriteOptions options = {});

  std::unique_ptr<RowStream> Scan(std::string table, hbase::Scan scan);

  // ---- Coprocessors.
  // Calls the region that holds the row.
  void Exec(std::string table, std::string row, ServiceCall call, Done<Result<std::string>> done);
  Result<std::string> Exec(std::string table, std::string row, ServiceCall call);
  // Makes one try at `region.server`, which is assumed to have the region.
  void ExecAt(const Region& region, ServiceCall call, Done<ServiceReply> done);
  ServiceReply ExecAt(const Region& region, ServiceCall call);
  // Calls the region server itself. Where HBase checks rights, this takes the ADMIN right.
  void ExecServer(ServerName server, ServiceCall call, Done<ServiceReply> done);
  ServiceReply ExecServer(ServerName server, ServiceCall call);
  // Calls the active master; the same rights apply.
  ServiceReply ExecMaster(ServiceCall call);

  // ---- Delegation tokens, for jobs of this user on machines without a ticket (token_file.h).
  // REQUIRES: HBase loads its TokenProvider, and this client logs in by Kerberos.
  Result<DelegationToken> IssueToken();

  // ---- Regions.
  // Answers from the cache; reads hbase:meta for regions that are not in it.
  void Locate(std::string table, std::string row, Done<Result<RegionPtr>> done);
  Result<RegionPtr> Locate(std::string table, std::string row);
  // Reads hbase:meta. A region that is open nowhere has no server.
  void Regions(std::string table, Done<Result<std::vector<RegionPtr>>> done);
  Result<std::vector<RegionPtr>> Regions(std::string table);
  // The regions that hold rows in [start, end), read from hbase:meta; none if the table does not
  // exist.
  void Regions(std::string table, std::string start, std::string end,
               Done<Result<std::vector<RegionPtr>>> done);
  // Reports that the region's server does not answer as it should: the client drops the region from
  // its cache and looks it up again when it is needed.
  void Suspect(RegionPtr region);

  // ---- The master. Each call returns when the work is done.
  Status CreateTable(TableDescription table, std::vector<std::string> split_keys = {});
  Status ModifyTable(TableDescription table, bool reopen = true);
  Status EnableTable(std::string table);
  Status DisableTable(std::string table);
  // REQUIRES: it is disabled.
  Status DeleteTable(std::string table);
  Status CreateNamespace(std::string name);
  Status DeleteNamespace(std::string name);
  Result<std::vector<std::string>> Namespaces();
  // The tables of one namespace; all tables if it is empty. HBase's own tables are left out.
  Result<std::vector<TableDescription>> Tables(std::string name_space = {});
  Result<TableDescription> Table(std::string name);
  Result<TableState> StateOfTable(std::string name);
  Status SplitRegion(Region region, std::string key);
  Status MergeRegions(std::vector<Region> neighbours);
  Status MoveRegion(Region region, ServerName to);
  Status FlushRegion(Region region);
  // Returns when the compaction has been requested, not when it is done.
  Status CompactRegion(Region region, bool major);
  Result<bool> IsCompacting(Region region);
  Result<SplitState> StateOfSplit(Region region);
  Result<bool> SwitchBalancer(bool on);
  Result<uint64_t> Balance();
  Result<ClusterState> Cluster(ClusterDetail detail = ClusterDetail::kAll);

  // ---- Statistics.
  struct Counts {
    uint64_t meta_lookups = 0;      // single keys read from hbase:meta
    uint64_t meta_table_scans = 0;  // whole tables read from it
    uint64_t registry_lookups = 0;  // look-ups of the location of hbase:meta itself
    // regions whose new server came from an exception, without hbase:meta
    uint64_t hints_taken = 0;
  };
  Counts counts();

 private:
  explicit Client(std::shared_ptr<ClientThread> inside) : inside_(std::move(inside)) {}
  std::shared_ptr<ClientThread> inside_;
};

}  // namespace tamis::hbase
