// Installation: how an HBase cluster is set up, and what an administrator must change before and
// while tables are indexed (docs/HBASE.md#tamis-doctor).
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
    enum class Silence {
      kOther,
      kNoJar,   // it does not load the jar
      kDenied,  // it refuses to answer this user
    };
    std::string address;
    std::vector<std::string>
        coprocessors;  // coprocessors of its regions and logs, from the master's report
    // The server's own answer, given by the jar.
    Result<pb::DescribeReply> described;
    Silence silence = Silence::kOther;  // why `described` is an error
  };
  struct Table {
    hbase::TableDescription description;
    Result<std::optional<IndexedTable>> indexed;
  };
  std::string program_version;  // the version of the program that runs the check
  std::string hbase_version;
  Server master;
  std::vector<Server> servers;
  std::vector<Table> tables;
};

// Reasons why no table may be indexed. A server that does not load the jar aborts when it opens a
// region of an indexed table, and so does the next server that gets the region. A server whose
// HBase lacks what the jar needs cannot index either, nor can one whose jar does not support what
// an index of the table requires. Servers that refuse to answer this user count only if `strict`.
std::vector<std::string> MissingJar(const Installation& installation, bool strict,
                                    const TableSchema& table);

// Servers with the same finding share one entry.
std::vector<Finding> Examine(const Installation& installation);

}  // namespace tamis
