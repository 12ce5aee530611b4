// A server that accepts Kerberos logins as a region server does, and answers every call by an
// exception. For tests and benchmarks that have a KDC.
#pragma once

#include <gssapi/gssapi.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tamis/hbase/client_options.h"
#include "tamis/hbase/testing/loopback_listener.h"
#include "tamis/hbase/testing/scripted_server.h"

namespace tamis::hbase {

class GssapiServer {
 public:
  // The class of the exception.
  static constexpr char kAnswer[] = "DoNotRetryIOException";

  // `keytab_file` has the keys of all principals of the server.
  GssapiServer(const std::string& keytab_file, Protection protection);
  ~GssapiServer();
  GssapiServer(const GssapiServer&) = delete;
  GssapiServer& operator=(const GssapiServer&) = delete;

  const Address& address() const { return listener_->address(); }
  int logins() const { return logins_; }

 private:
  using Peer = ScriptedServer::Peer;
  class Side;

  void Serve(Peer& peer);

  const Protection protection_;
  gss_cred_id_t credential_ = GSS_C_NO_CREDENTIAL;
  std::atomic<int> logins_ = 0;
  // Only the thread of the listener uses these two.
  std::vector<std::shared_ptr<Peer>> peers_;
  std::vector<std::thread> threads_;
  std::unique_ptr<LoopbackListener> listener_;
};

}  // namespace tamis::hbase
