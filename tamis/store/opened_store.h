// OpenedStore: a store, opened by its name: the cluster that holds its tables, and a coordinator
// over it. store_kind.h lists the kinds of stores; the program, the extension and the examples open
// theirs here.
//
//   rocks:DIRECTORY[?mode=ro]
//       an embedded cluster in a directory; the kind may be left out. With mode=ro the directory is
//       only read: changes are refused, and several processes may have it open
//   hbase://HOST:PORT,...[/NAMESPACE][?tls=true&ca=FILE...], hbase:///[NAMESPACE]?site=FILE, or
//   hbase+zk://HOST[:PORT],...[/PARENT[/NAMESPACE]]
//       a namespace of an HBase whose servers load our coprocessor; the addresses are those of some
//       masters and region servers; hbase_name.h has the options
//   http://HOST[:PORT][?token-file=FILE&ca=FILE&timeout=SECONDS], https://...
//       a store behind `tamis serve`, which routes searches and writes; remote_kind.cc has the
//       options
//
// A program that uses Tamis as a library begins here (examples/embedded.cc): Define, then what
// engine.h has; indexes, regions and long work are in cluster_admin.h, whose answers AwaitResult
// (answers.h) and AwaitJob wait for.
//
// Threads: safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/query/engine.h"

namespace tamis {

class OpenedStore {
 public:
  struct Options {
    // Bound of the coordinator's copies of all filters. Regions whose filters do not fit are asked
    // by every search.
    uint64_t max_filter_bytes = Engine::Options().max_filter_bytes;

    // For an embedded cluster; other kinds ignore these.
    int servers = 8;  // region servers
    // Bound of one server's filters; a filter that does not fit keeps bits alone: a removed value
    // keeps its bits until the filter is counted again.
    uint64_t server_filter_bytes = uint64_t{1} << 30;
    uint64_t split_bytes = uint64_t{64} << 20;  // a region larger than this is split; 0: never
    bool sync = false;       // each write reaches the disk before it is acknowledged
    bool salvage = false;    // see Store::Options
    bool create = true;      // when the directory is not there
    bool read_only = false;  // like ?mode=ro
  };

  static Result<std::shared_ptr<OpenedStore>> Open(const std::string& name, const Options& options);
  // Like Open, but the stores of a process are shared: several connections of one process may work
  // on one directory, which is locked against other processes, and share what they know of a
  // cluster. If the store is open already, the options of the first call apply, not these.
  static Result<std::shared_ptr<OpenedStore>> OpenShared(const std::string& name,
                                                         const Options& options);
  ~OpenedStore();
  OpenedStore(const OpenedStore&) = delete;
  OpenedStore& operator=(const OpenedStore&) = delete;

  // The name for people: the directory of an embedded cluster; for other kinds the name that was
  // opened.
  const std::string& name() const;
  Engine& engine();
  ClusterAdmin& admin();

  // The table with this name and definition, made unless it is there:
  //
  //   store->Define("cities", {"city", "people int64", "key (city)", "index people (people)"})
  //
  // The parts are those of definition.h. kAlreadyExists, with the difference, when a table of that
  // name is another one. Blocks.
  Result<SchemaPtr> Define(const std::string& table, const std::vector<std::string>& definition);

 private:
  struct Parts;
  static Result<std::shared_ptr<OpenedStore>> FindOrMake(const std::string& name,
                                                         const Options& options);
  static Result<std::unique_ptr<OpenedStore>> Make(const std::string& name, const Options& options);
  explicit OpenedStore(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace tamis
