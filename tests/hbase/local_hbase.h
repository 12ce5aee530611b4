// The real HBase of a test program: started with tools/hbase-local, deleted at the end.
#pragma once

#include <string>

namespace tamis {

class LocalHBase {
 public:
  // Starts a new cluster of three region servers, of the version in $TAMIS_HBASE_VERSION if it is
  // set, with the arguments in $TAMIS_HBASE_ALSO, too; ends the program if that fails. With
  // TAMIS_HBASE_RUNNING=DIRECTORY it uses the cluster that runs there instead, unchanged. If it has
  // Kerberos, the process gets the ticket of its user ada.
  static LocalHBase& Get();
  // Adds arguments to that start. Call it before the first Get; ignored if no cluster is started.
  static void AddToStart(const std::string& words);

  // The beginning of the version that Get starts.
  static std::string Version();

  const std::string& addresses() const { return addresses_; }
  static std::string Directory();
  // Runs hbase-local with these arguments and returns its output; the test fails if it fails.
  std::string Run(const std::string& words) const;
  // The same, but a failure is allowed. Returns whether it succeeded.
  bool Try(const std::string& words) const;
  // Starts all servers that are down, with one command.
  void StartAll() const { Run("start"); }
  // The role of the server on this port: "rs2".
  std::string RoleOf(unsigned port) const;
  std::string FindRole(unsigned port) const;           // empty: no such server
  std::string StateOf(const std::string& role) const;  // "up", "paused" or "down"

 private:
  LocalHBase();
  std::string addresses_;
};

}  // namespace tamis
