// A table as the master knows it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

struct FamilySchema {
  std::string name;
  // "VERSIONS", "TTL", "BLOOMFILTER", ...: what is not named is as HBase has it.
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> configuration;
};

struct TableDescription {
  std::string name;
  // "SPLIT_POLICY", "coprocessor$1", and whatever others put there.
  std::map<std::string, std::string> attributes;
  std::map<std::string, std::string> configuration;
  std::vector<FamilySchema> families;
};

enum class TableState { kEnabled, kDisabled, kDisabling, kEnabling };

// The parts of a cluster's state. The load of servers comes with that of each of their regions.
enum class ClusterDetail {
  kServers,  // who is alive, who is dead, who is master: names only, also of 10,000 regions
  kAll,
};

struct ClusterState {
  struct Server {
    ServerName name;
    std::vector<std::string> coprocessors;  // classes without their packages
    uint64_t used_heap_mb = 0;
    uint64_t max_heap_mb = 0;
    // By their encoded names; on the disk and in memory, of whole megabytes.
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
