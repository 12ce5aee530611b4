// The logins of a coordinator that begins to use many region servers: each server has a principal
// of its own, so each takes a ticket from the KDC. A coordinator polls all of them, by a connection
// of its own to each; it opens a second one to a server when it first searches there or writes to
// it. The servers are threads of this process.
//
//   kerberos_login_benchmark CLIENT_KEYTAB SERVERS_KEYTAB SERVERS [ROUNDS]
//
// SERVERS_KEYTAB has the keys of hbase/h1, hbase/h2, ... KRB5_CONFIG names the KDC.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/testing/gssapi_server.h"

namespace tamis::hbase {
namespace {

constexpr uint16_t kPort = 16020;

class Bench {
 public:
  Bench(std::string client_keytab, const std::string& servers_keytab, int servers,
        Protection protection)
      : client_keytab_(std::move(client_keytab)) {
    for (int i = 0; i < servers; ++i) {
      servers_.push_back(std::make_unique<GssapiServer>(servers_keytab, protection));
    }
  }

  // Returns the seconds until each server has answered a call on each connection: that of the
  // polls, and with `both` the other one as well. The client knows no ticket.
  double Round(bool both) {
    ClientOptions options{.addresses = "h1:16020"};
    options.kerberos = KerberosOptions{.region_server_principal = "hbase/_HOST@TAMIS.TEST",
                                       .keytab_file = client_keytab_,
                                       .reverse_dns = false};
    // "h7" is the seventh server.
    options.way = [this](const Address& to) {
      return servers_.at(std::stoul(to.host.substr(1)) - 1)->address();
    };
    auto client = Client::Open(std::move(options));
    if (!client.ok()) Die(client.status().ToString());
    const size_t calls = servers_.size() * (both ? 2 : 1);
    std::atomic<size_t> answered = 0;
    std::promise<void> all;
    const auto done = [&](const ServiceReply& reply) {
      const Status status = reply.answer.status();
      if (status.message().find(GssapiServer::kAnswer) == std::string::npos) Die(status.ToString());
      if (++answered == calls) all.set_value();
    };
    const auto begin = std::chrono::steady_clock::now();
    for (size_t i = 0; i < servers_.size(); ++i) {
      const ServerName server{{"h" + std::to_string(i + 1), kPort}, 1};
      ServiceCall call{.service = "s", .method = "m", .request = "", .waits = true};
      (*client)->ExecServer(server, call, done);
      call.waits = false;
      if (both) (*client)->ExecServer(server, call, done);
    }
    all.get_future().wait();
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    CheckLogins(calls);
    return time.count();
  }

 private:
  // One per connection, and no more.
  void CheckLogins(size_t calls) {
    size_t logins = 0;
    for (const auto& server : servers_) logins += static_cast<size_t>(server->logins());
    logins_ += calls;
    if (logins != logins_) {
      Die(std::to_string(logins) + " logins instead of " + std::to_string(logins_));
    }
  }

  const std::string client_keytab_;
  std::vector<std::unique_ptr<GssapiServer>> servers_;
  size_t logins_ = 0;
};

int Main(int argc, char** argv) {
  if (argc < 4) Die("give the keytabs of the client and of the servers, and how many there are");
  const int servers = std::atoi(argv[3]);
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
  // The servers of this process check no replays: their files are not what is measured.
  setenv("KRB5RCACHENAME", "none:", 1);
  std::printf("%d servers with a principal each; a new client logs in to all of them\n", servers);
  for (const auto& [name, protection] : {std::pair("authentication", Protection::kAuthentication),
                                         std::pair("privacy", Protection::kPrivacy)}) {
    Bench bench(argv[1], argv[2], servers, protection);
    for (const bool both : {false, true}) {
      std::vector<double> seconds;
      for (int i = 0; i < rounds; ++i) seconds.push_back(bench.Round(both));
      std::ranges::sort(seconds);
      const char* connections = both ? "polls and searches" : "polls";
      std::printf("%-16s %-20s median %6.0f ms, slowest %6.0f ms of %d\n", name, connections,
                  Median(seconds) * 1e3, seconds.back() * 1e3, rounds);
      Report({.work = Printed("logins of a coordinator to %d servers for %s, %s, slowest of %d",
                              servers, connections, name, rounds),
              .now = Printed("median %.0f ms", Median(seconds) * 1e3),
              .ratio = Printed("%.2f s", seconds.back()),
              .goal = "<= 3 s"});
    }
  }
  std::printf("one login and one call per connection; goal: 100 servers within 3 s\n");
  return 0;
}

}  // namespace
}  // namespace tamis::hbase

int main(int argc, char** argv) { return tamis::hbase::Main(argc, argv); }
