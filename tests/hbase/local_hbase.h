// The real HBase of a test program: started by tools/hbase-local, deleted at the end.
#pragma once

#include <string>

namespace tamis {

class LocalHBase {
 public:
  // Starts three region servers, anew. Ends the program when they do not start. With
  // TAMIS_HBASE_RUNNING=DIRECTORY it takes the cluster that runs there, as it is.
  static LocalHBase& Get();
  // Further words for that start; before the first Get. Nothing comes of them where none is
  // started.
  static void AddToStart(const std::string& words);

  const std::string& addresses() const { return addresses_; }
  static std::string Directory();
  // hbase-local with these words; fails the test when it fails.
  std::string Run(const std::string& words) const;
  // The same, when it may fail.
  bool Try(const std::string& words) const;
  // Starts all servers that are down, in one go.
  void StartAll() const { Run("start"); }
  // The role of the server on this port: "rs2".
  std::string RoleOf(unsigned port) const;
  std::string FindRole(unsigned port) const;           // empty: there is none
  std::string StateOf(const std::string& role) const;  // "up", "paused" or "down"

 private:
  LocalHBase();
  std::string addresses_;
};

}  // namespace tamis
