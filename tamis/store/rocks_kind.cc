// The embedded cluster in a directory: rocks:DIRECTORY[?mode=ro], or DIRECTORY.
#include <filesystem>

#include "tamis/rocks/rocks_cluster.h"
#include "tamis/store/store_kind.h"

namespace tamis {
namespace {

struct Directory {
  std::string path;
  bool read_only = false;
};

Result<Directory> DirectoryOf(const std::string& name) {
  const std::string_view prefix = PrefixOfStore(name);
  Directory directory{.path = prefix.empty() ? name : name.substr(prefix.size() + 1)};
  const auto refuse = [&](const std::string& why) {
    return InvalidArgument("cannot open store \"" + name + "\": " + why);
  };
  // A name without a kind is a path, whatever it holds; but one with a mode was meant as an
  // address.
  const size_t mark = directory.path.rfind('?');
  const std::string option = mark == std::string::npos ? "" : directory.path.substr(mark + 1);
  if (prefix.empty()) {
    if (option == "mode=ro" || option == "mode=rw") return refuse("write rocks:" + name);
  } else if (option.find('=') != std::string::npos) {
    if (option != "mode=ro" && option != "mode=rw") {
      return refuse("it has the option \"" + option +
                    "\"; there is ?mode=ro (reading only) and ?mode=rw");
    }
    directory.read_only = option == "mode=ro";
    directory.path.resize(mark);
  }
  if (!directory.path.empty()) return directory;
  return InvalidArgument("no store is named; give a directory with --store or $TAMIS_STORE");
}

Status OpenRocks(const std::string& name, const OpenedStore::Options& options, Executor* executor,
                 OpenedKind* opened) {
  TAMIS_ASSIGN_OR_RETURN(const Directory directory, DirectoryOf(name));
  RocksCluster::Options cluster;
  cluster.store.directory = directory.path;
  cluster.store.create = options.create;
  cluster.store.sync = options.sync;
  cluster.store.salvage = options.salvage;
  cluster.store.read_only = options.read_only || directory.read_only;
  cluster.servers = options.servers;
  cluster.server.split_bytes = options.split_bytes;
  cluster.server.filter_bytes = options.server_filter_bytes;
  TAMIS_ASSIGN_OR_RETURN(std::shared_ptr<RocksCluster> rocks,
                         RocksCluster::Open(std::move(cluster), executor));
  *opened = {.name = directory.path, .cluster = rocks, .admin = rocks};
  return Status::Ok();
}

Result<std::string> RocksIdentity(const std::string& name, const OpenedStore::Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const Directory directory, DirectoryOf(name));
  std::error_code ignored;
  const std::string path = std::filesystem::weakly_canonical(directory.path, ignored).string();
  return options.read_only || directory.read_only ? path + "?mode=ro" : path;
}

}  // namespace

constinit const StoreKind kRocksKind = {.prefix = "rocks",
                                        .form = "rocks:DIRECTORY[?mode=ro]",
                                        .open = OpenRocks,
                                        .identity = RocksIdentity};

}  // namespace tamis
