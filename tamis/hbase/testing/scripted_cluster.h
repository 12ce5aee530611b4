// A cluster of scripted servers for tests. Every server knows where hbase:meta is, and the first
// one serves it with rows that the test sets. The test defines the answers to all other calls.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/hbase/region.h"
#include "tamis/hbase/testing/scripted_server.h"

namespace tamis::hbase {

class ScriptedCluster {
 public:
  explicit ScriptedCluster(size_t servers);

  ScriptedServer& server(size_t i) { return *servers_[i]; }
  // Changes a server's address in answers and in regions set from now on. Connections to the new
  // address must reach the server.
  void SetAddress(size_t server, const Address& address);
  // Adds a region of table "t" on a server to hbase:meta; replaces a region with the same start.
  Region SetRegion(const std::string& start, const std::string& end, size_t server,
                   int64_t open_sequence = 1);
  void RemoveRegion(const std::string& start);
  int meta_reads() const { return servers_[0]->calls("Scan"); }

  // Answers a Get with one cell f:q of this value.
  static void AnswerGet(const ScriptedServer::Request& request, const ScriptedServer::PeerPtr& peer,
                        const std::string& value);

 private:
  ServerName NameOf(size_t server);
  void ScanMeta(const ScriptedServer::Request& request, const ScriptedServer::PeerPtr& peer);

  std::mutex mutex_;
  std::map<std::string, Region> rows_;
  std::vector<ServerName> names_;
  std::vector<std::unique_ptr<ScriptedServer>> servers_;  // last: its threads use the others
};

}  // namespace tamis::hbase
