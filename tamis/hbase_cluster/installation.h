// Installation: what an HBase says of itself, and what is to be done about it before, and while,
// tables of it are indexed (docs/HBASE.md#tamis-doctor).
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/hbase/table_schema.h"
#include "tamis/hbase_cluster/indexed_table.h"
#include "tamis/hbase_cluster/installation.pb.h"

namespace tamis {

struct Installation {
  struct Server {
    std::string address;
    std::vector<std::string> coprocessors;  // of its regions and logs, as it tells the master
    // The server's own report, given by the jar. A server without the jar reports nothing.
    Result<pb::DescribeReply> described;
  };
  struct Table {
    hbase::TableDescription description;
    Result<std::optional<IndexedTable>> indexed;
  };
  std::string program_version;  // of who asks
  std::string hbase_version;
  Server master;
  std::vector<Server> servers;
  std::vector<Table> tables;
};

// Why no table may be indexed: servers that do not load the jar, since such a server ends when it
// is given a region of one, and so does the next; and servers whose HBase lacks what the jar needs.
// Servers that do not tell this user count only if `strict`.
std::vector<std::string> MissingJar(const Installation& installation, bool strict);

// A finding about several servers is given once.
std::vector<Finding> Examine(const Installation& installation);

}  // namespace tamis
