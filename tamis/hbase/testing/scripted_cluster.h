// A cluster of scripted servers for tests: all know where hbase:meta is, the first one has it, and
// its rows are given by the test. The test scripts all other calls.
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
  // Names a server so from now on, in answers and in regions that are set: what is there leads to
  // it.
  void SetAddress(size_t server, const Address& address);
  // Puts a region of table "t" into hbase:meta, on a server; replaces one with the same start.
  Region SetRegion(const std::string& start, const std::string& end, size_t server,
                   int64_t open_sequence = 1);
  void RemoveRegion(const std::string& start);
  int meta_reads() const { return servers_[0]->calls("Scan"); }

  // An answer to a Get: one cell f:q with this value.
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
