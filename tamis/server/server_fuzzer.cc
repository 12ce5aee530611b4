// Fuzzes `tamis serve` as its clients reach it: the input is what a client sends over a connection.
// A whole request must be answered by HTTP. Then, or at once after other bytes, the client closes
// the connection for writing; the server must close it, too, and must go on to answer others.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "tamis/server/tamis_server.h"

namespace tamis::server {
namespace {

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "server_fuzzer: %s\n", what.c_str());
  std::abort();
}

// Whether the bytes begin with a whole request.
bool IsRequest(std::string_view bytes) {
  namespace http = boost::beast::http;
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  return !error && parser.is_done();
}

// A server that reads and writes a small table, made once for the process.
class Fuzzed {
 public:
  Fuzzed() {
    directory_ = std::filesystem::temp_directory_path() /
                 ("tamis_server_fuzzer." + std::to_string(getpid()));
    std::filesystem::remove_all(directory_);
    auto store = OpenedStore::Open(directory_, {.servers = 2});
    if (!store.ok()) Fail(store.status().ToString());
    const auto table =
        (*store)->Define("t", {"id int64", "n int64", "s", "b bytes", "key (id)", "index n (n)"});
    if (!table.ok()) Fail(table.status().ToString());
    TamisServer::Options options;
    options.sql.may_write = true;
    options.sql.max_time = std::chrono::milliseconds(200);
    options.http.idle_time = std::chrono::seconds(5);
    options.threads = 2;
    auto server = TamisServer::Start(*std::move(store), options);
    if (!server.ok()) Fail(server.status().ToString());
    server_ = *std::move(server);
  }
  ~Fuzzed() {
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  // All that the server answers to these bytes.
  std::string Answer(std::string_view bytes) const {
    namespace asio = boost::asio;
    asio::io_context io;
    asio::ip::tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect({asio::ip::make_address("127.0.0.1"), server_->port()}, error);
    if (error) Fail("the server accepts no connection: " + error.message());
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    setsockopt(socket.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    // The server may close the connection before it has taken all bytes.
    asio::write(socket, asio::buffer(bytes.data(), bytes.size()), error);
    // The end of the client would cancel its statement.
    const bool is_request = IsRequest(bytes);
    pollfd readable{.fd = socket.native_handle(), .events = POLLIN};
    if (is_request && poll(&readable, 1, 30'000) == 0) Fail("the server answers no request");
    socket.shutdown(asio::ip::tcp::socket::shutdown_send, error);
    std::string answer;
    char part[4096];
    while (true) {
      const ssize_t count = read(socket.native_handle(), part, sizeof part);
      if (count < 0 && errno == EAGAIN)
        Fail("the server neither answers nor closes the connection");
      if (count <= 0) {
        if (is_request && answer.empty()) Fail("the server closes the connection of a request");
        return answer;
      }
      if (answer.size() < (1 << 20)) answer.append(part, static_cast<size_t>(count));
    }
  }

 private:
  std::filesystem::path directory_;
  std::unique_ptr<TamisServer> server_;
};

}  // namespace
}  // namespace tamis::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tamis::server::Fuzzed fuzzed;
  const std::string answer =
      fuzzed.Answer(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!answer.empty() && !answer.starts_with("HTTP/1.")) {
    tamis::server::Fail("an answer that is not one of HTTP: " + answer.substr(0, 100));
  }
  static uint64_t inputs = 0;
  if (++inputs % 64 == 1 &&
      !fuzzed.Answer("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
           .starts_with("HTTP/1.1 200")) {
    tamis::server::Fail("the server does not answer any more");
  }
  return 0;
}
