// tamis serve.
#include <fmt/format.h>
#include <netdb.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/server/tamis_server.h"

namespace tamis {
namespace {

struct ServeArguments {
  std::string listen = "127.0.0.1:7470";
  std::string token_file;
  std::string tls_cert;
  std::string tls_key;
  std::string tls_client_ca;
  std::vector<std::string> host_names;
  bool write = false;
  bool admin = false;
  uint64_t statements = 64;
  uint64_t threads = 16;
  uint64_t statement_time = 60;
  uint64_t idle_time = 60;
  uint64_t drain_time = 10;
  uint64_t sql_memory = 1024;
};

// "[::1]:7470" -> "::1" and 7470.
Status ParseAddress(const std::string& text, server::HttpServer::Options* http) {
  const size_t colon = text.rfind(':');
  const Status wrong = InvalidArgument("cannot listen on \"" + text +
                                       "\": give an address and a port, such as 127.0.0.1:7470 or "
                                       "[::]:7470");
  if (colon == std::string::npos) return wrong;
  http->host = text.substr(0, colon);
  if (http->host.starts_with('[') && http->host.ends_with(']')) {
    http->host = http->host.substr(1, http->host.size() - 2);
  }
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data() + colon + 1, end, http->port);
  return error == std::errc() && last == end && !http->host.empty() ? Status::Ok() : wrong;
}

bool IsLoopback(const std::string& host) { return host == "::1" || host.starts_with("127."); }

// The address on which a socket of the service manager listens; empty if it cannot be found out.
std::string AddressOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  std::array<char, NI_MAXHOST> text{};
  if (getsockname(socket, any, &size) != 0 ||
      getnameinfo(any, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

Result<std::string> ReadToken(const std::string& file) {
  std::ifstream in(file);
  std::string token;
  if (!std::getline(in, token)) {
    return InvalidArgument("cannot read a token from \"" + file +
                           "\": put one line of at least 16 characters there, for example by "
                           "openssl rand -hex 32");
  }
  while (!token.empty() && (token.back() == '\r' || token.back() == ' ')) token.pop_back();
  if (token.size() >= 16) return token;
  return InvalidArgument("the token in \"" + file +
                         "\" is shorter than 16 characters; make one by openssl rand -hex 32");
}

Status CheckNumbers(const ServeArguments& arguments) {
  struct Number {
    const char* option;
    uint64_t value;
    uint64_t most;
  };
  constexpr uint64_t kManySeconds = 100'000'000;
  for (const Number& number : {Number{"--statements", arguments.statements, 100'000},
                               Number{"--threads", arguments.threads, 10'000},
                               Number{"--statement-time", arguments.statement_time, kManySeconds},
                               Number{"--idle-time", arguments.idle_time, kManySeconds},
                               Number{"--sql-memory", arguments.sql_memory, 1 << 30}}) {
    if (number.value > 0 && number.value <= number.most) continue;
    return InvalidArgument(fmt::format("{} must be between 1 and {}; it is {}", number.option,
                                       number.most, number.value));
  }
  if (arguments.drain_time <= kManySeconds) return Status::Ok();
  return InvalidArgument(fmt::format("--drain-time must be at most {}", kManySeconds));
}

Result<server::TamisServer::Options> OptionsOf(const ServeArguments& arguments) {
  server::TamisServer::Options options;
  // A service manager may have opened the socket.
  const char* const pid = std::getenv("LISTEN_PID");
  if (pid != nullptr && std::atol(pid) == getpid()) {
    options.http.socket = 3;
    options.http.host = AddressOf(options.http.socket);
  } else {
    TAMIS_RETURN_IF_ERROR(ParseAddress(arguments.listen, &options.http));
  }
  if (arguments.tls_cert.empty() != arguments.tls_key.empty()) {
    return InvalidArgument("--tls-cert and --tls-key are needed together");
  }
  options.http.tls_cert_file = arguments.tls_cert;
  options.http.tls_key_file = arguments.tls_key;
  if (!arguments.tls_client_ca.empty() && arguments.tls_cert.empty()) {
    return InvalidArgument("--tls-client-ca needs --tls-cert and --tls-key");
  }
  options.http.tls_client_ca_file = arguments.tls_client_ca;
  options.http.idle_time = std::chrono::seconds(arguments.idle_time);
  if (!arguments.token_file.empty()) {
    TAMIS_ASSIGN_OR_RETURN(options.token, ReadToken(arguments.token_file));
  }
  if (options.token.empty() && arguments.tls_client_ca.empty() && !IsLoopback(options.http.host)) {
    return InvalidArgument(
        "without a token only programs of this machine may be served: give --token-file or "
        "--tls-client-ca, or listen on 127.0.0.1");
  }
  options.host_names = arguments.host_names;
  options.host_names.push_back(options.http.host.find(':') == std::string::npos
                                   ? options.http.host
                                   : "[" + options.http.host + "]");
  TAMIS_RETURN_IF_ERROR(CheckNumbers(arguments));
  options.threads = static_cast<int>(arguments.threads);
  options.sql.may_write = arguments.write;
  options.may_administer = arguments.admin;
  options.sql.max_statements = static_cast<int>(arguments.statements);
  options.sql.max_time = std::chrono::seconds(arguments.statement_time);
  return options;
}

std::string_view WhoIsServed(const server::TamisServer::Options& options) {
  const bool token = !options.token.empty();
  if (options.http.tls_client_ca_file.empty()) {
    return token ? ", to clients with the token" : ", to programs of this machine";
  }
  return token ? ", to clients with a certificate and the token"
               : ", to clients with a certificate";
}

// Threads that are started from now on do not take the signals; AwaitSignal does.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Afterwards the next signal ends the process.
void AwaitSignal(const sigset_t& signals) {
  int signal = 0;
  sigwait(&signals, &signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

int Serve(const Invocation& invocation, const ServeArguments& arguments) {
  const auto options = OptionsOf(arguments);
  if (!options.ok()) return Report(options.status());
  const sigset_t signals = BlockSignals();
  sqlite3_hard_heap_limit64(static_cast<int64_t>(arguments.sql_memory) << 20);
  auto store = OpenedStore::Open(invocation.store, StoreOptionsOf(invocation, /*create=*/false));
  if (!store.ok()) return Report(store.status());
  const std::string name = (*store)->name();
  const auto server = server::TamisServer::Start(*std::move(store), *options);
  if (!server.ok()) return Report(server.status());
  fmt::print("{} is served at {}{}{}\n", name, (*server)->address(),
             arguments.write ? ", for reading and writing" : ", for reading only",
             WhoIsServed(*options));
  std::fflush(stdout);
  AwaitSignal(signals);
  fmt::print(
      "stopping: waiting at most {} s for answers under way; a second signal ends it at once\n",
      arguments.drain_time);
  std::fflush(stdout);
  if ((*server)->Stop(std::chrono::seconds(arguments.drain_time))) return kExitOk;
  fmt::print(stderr, "some statements do not end; the process ends without them\n");
  std::_Exit(kExitFailure);
}

}  // namespace

void AddServeCommand(Command app, Invocation* invocation) {
  auto a = std::make_shared<ServeArguments>();
  Command serve = app.AddCommand(
      "serve", "Serve the store over HTTP: SQL, tables, rows, metrics (docs/SERVER.md)");
  serve.AddOption("--listen", a->listen, "Address and port; port 0 takes a free one").ShowDefault();
  serve.AddFlag("--write", a->write, "Permit INSERT, UPDATE, DELETE and the writing of rows");
  serve.AddFlag("--admin", a->admin,
                "Permit changes of tables, indexes, regions and servers by programs that use this "
                "server as their store");
  serve.AddOption("--token-file", a->token_file,
                  "A file with the token that clients must send; needed to listen on more than "
                  "the loopback");
  serve.AddOption("--tls-cert", a->tls_cert, "PEM: the server's certificate and its chain");
  serve.AddOption("--tls-key", a->tls_key, "PEM: its private key");
  serve.AddOption("--tls-client-ca", a->tls_client_ca,
                  "PEM: the authorities whose certificates clients must show, in place of a token "
                  "or besides one");
  serve.AddOption("--host-name", a->host_names,
                  "A name by which clients call this server, besides the address; may be repeated");
  serve.AddOption("--statements", a->statements, "Statements at once; more are refused (503)")
      .ShowDefault();
  serve.AddOption("--threads", a->threads, "Threads for statements").ShowDefault();
  serve.AddOption("--statement-time", a->statement_time, "Seconds that a statement may take")
      .ShowDefault();
  serve
      .AddOption("--idle-time", a->idle_time,
                 "Seconds until a client that sends or takes nothing is disconnected")
      .ShowDefault();
  serve
      .AddOption("--drain-time", a->drain_time,
                 "Seconds that answers under way may take after SIGTERM")
      .ShowDefault();
  serve.AddOption("--sql-memory", a->sql_memory, "Megabytes of memory for all statements")
      .ShowDefault();
  serve.OnParsed([=] { invocation->run = [=] { return Serve(*invocation, *a); }; });
}

}  // namespace tamis
