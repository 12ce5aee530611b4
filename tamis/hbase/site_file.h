// The client's settings in an hbase-site.xml, the file that an administrator of a cluster gives to
// its users.
//
// Settings that a client does not use are ignored. A setting that the client would have to honor
// and cannot is an error that names it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tamis/base/status.h"
#include "tamis/hbase/client_options.h"

namespace tamis::hbase {

class SiteFile {
 public:
  // kInvalidArgument names the file and the fault.
  static Result<SiteFile> Read(const std::string& file);
  // `file` is the name for messages.
  static Result<SiteFile> Parse(std::string_view xml, std::string file);

  // Returns `options` completed by the file: an address, a principal, a TLS file or a protection
  // that `options` has already is kept, and the file's setting is not looked at.
  Result<ClientOptions> Complete(ClientOptions options) const;

 private:
  explicit SiteFile(std::string file) : file_(std::move(file)) {}

  // The value of a setting, with ${...} replaced; nothing if it is not set or is empty.
  Result<std::optional<std::string>> Find(const std::string& name) const;
  Result<std::string> Get(const std::string& name, std::string_view fallback = "") const;
  Result<bool> GetSwitch(const std::string& name, bool fallback) const;
  Status GetTime(const std::string& name, std::chrono::milliseconds* time) const;
  Result<std::string> GetPem(const std::string& name) const;
  Status Fault(const std::string& name, const std::string& why) const;

  Status CompletePlace(ClientOptions* options) const;
  Status CompleteRpcRegistry(ClientOptions* options) const;
  Status CompleteTls(ClientOptions* options) const;
  Status CompleteKerberos(ClientOptions* options) const;

  std::string file_;
  std::map<std::string, std::string> settings_;
};

}  // namespace tamis::hbase
