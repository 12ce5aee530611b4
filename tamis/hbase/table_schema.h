// A table's schema, as the master stores it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

struct FamilySchema {
  std::string name;
  // "VERSIONS", "TTL", "BLOOMFILTER", ...; HBase's defaults apply to the rest.
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> configuration;
};

struct TableDescription {
  std::string name;
  // "SPLIT_POLICY", "coprocessor$1", and attributes that other tools set.
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> configuration;
  std::vector<FamilySchema> families;
};

enum class TableState { kEnabled, kDisabled, kDisabling, kEnabling };

// The answer of a region's server to whether and where the region can be split.
struct SplitState {
  // False: the region still refers to files of the region that it was made from. A compaction ends
  // that.
  bool splittable = false;
  // Where HBase would split the region; empty if its files are too small to have such a key.
  std::string key;
};

// The requested detail of a cluster's state. The load of a server includes that of each of its
// regions.
enum class ClusterDetail {
  kServers,  // live and dead servers and the master: names only, small even with 10,000 regions
  kAll,
};

struct ClusterState {
  struct Server {
    ServerName name;
    std::vector<std::string> coprocessors;  // classes without their packages
    uint64_t used_heap_mb = 0;
    uint64_t max_heap_mb = 0;
    // Bytes on disk and in memory by encoded region name, rounded to whole megabytes.
    std::map<std::string, uint64_t> region_bytes = {};
  };
  std::string version;
  std::string cluster_id;
  ServerName master;
  std::vector<std::string> master_coprocessors;
  std::vector<ServerName> backup_masters;
  std::vector<Server> servers;
  std::vector<ServerName> dead_servers;
  bool balancer_on = false;
};

}  // namespace tamis::hbase
