// CuttingProxy: an HTTP server between a client and servers, for tests. It counts requests, ends
// the connection in the middle of an answer where the test says so, and sends a request to one
// server, or to several, one after the other, as a load balancer that repeats it does.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tamis/server/testing/http_client.h"

namespace tamis {

// Threads: safe.
class CuttingProxy {
 public:
  static constexpr size_t kAll = static_cast<size_t>(-1);
  // How many bytes of the `size` bytes of the answer to the request are sent; kAll: all of them,
  // and the connection stays open.
  using Cut = std::function<size_t(const std::string& path, int number, size_t size)>;

  // The servers that the request is sent to; the client gets the last one's answer. A port without
  // a server answers with status 502.
  using Route = std::function<std::vector<uint16_t>(const std::string& path, int number)>;

  explicit CuttingProxy(uint16_t server)
      : route_([server](const std::string&, int) { return std::vector{server}; }),
        acceptor_(io_, {Loopback(), 0}) {
    thread_ = std::thread([this] { Accept(); });
  }
  ~CuttingProxy() {
    boost::system::error_code ignored;
    shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
    {
      const std::lock_guard lock(mutex_);
      for (Socket* socket : open_) socket->shutdown(Socket::shutdown_both, ignored);
    }
    for (std::thread& connection : connections_) connection.join();
  }

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  void SetCut(Cut cut) {
    const std::lock_guard lock(mutex_);
    cut_ = std::move(cut);
    counts_.clear();
  }
  void SetRoute(Route route) {
    const std::lock_guard lock(mutex_);
    route_ = std::move(route);
    counts_.clear();
  }
  // The header `traceparent` of each request; empty without one.
  std::vector<std::string> Traces(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = traces_.find(path);
    return found == traces_.end() ? std::vector<std::string>() : found->second;
  }
  int Count(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(path);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  using Socket = boost::asio::ip::tcp::socket;
  static boost::asio::ip::address Loopback() { return boost::asio::ip::make_address("127.0.0.1"); }

  void Accept() {
    while (true) {
      auto socket = std::make_shared<Socket>(io_);
      boost::system::error_code error;
      acceptor_.accept(*socket, error);
      if (error) return;
      connections_.emplace_back([this, socket] { Serve(socket.get()); });
    }
  }

  void Serve(Socket* socket) {
    {
      const std::lock_guard lock(mutex_);
      open_.push_back(socket);
    }
    boost::beast::flat_buffer buffer;
    while (ServeOne(socket, &buffer)) {
    }
    const std::lock_guard lock(mutex_);
    open_.remove(socket);
    boost::system::error_code ignored;
    socket->close(ignored);
  }

  bool ServeOne(Socket* socket, boost::beast::flat_buffer* buffer) {
    namespace http = boost::beast::http;
    http::request<http::string_body> request;
    boost::system::error_code error;
    http::read(*socket, *buffer, request, error);
    if (error) return false;
    const std::string path(request.target());
    size_t sent = kAll;
    Cut cut;
    int number = 0;
    std::vector<uint16_t> servers;
    {
      const std::lock_guard lock(mutex_);
      number = ++counts_[path];
      traces_[path].emplace_back(request["traceparent"]);
      cut = cut_;
      servers = route_(path, number);
    }
    server::HttpClient::Answer answer{.status = 502, .headers = {}, .body = {}};
    for (const uint16_t server : servers) {
      try {
        answer = server::HttpClient(server).Ask("POST", path, request.body());
      } catch (const boost::system::system_error&) {
      }
    }
    std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " X\r\n";
    std::string body = answer.body;
    if (answer.status == 200) {
      text += "Transfer-Encoding: chunked\r\n\r\n";
      char length[32];
      snprintf(length, sizeof length, "%zx\r\n", body.size());
      if (!body.empty()) body = length + body + "\r\n";
      body += "0\r\n\r\n";
    } else {
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    }
    text += body;
    if (cut) sent = cut(path, number, text.size());
    boost::asio::write(*socket, boost::asio::buffer(text.data(), std::min(sent, text.size())),
                       error);
    return !error && sent == kAll;
  }

  Route route_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  mutable std::mutex mutex_;
  Cut cut_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::vector<std::string>> traces_;
  std::list<Socket*> open_;
  std::list<std::thread> connections_;
  std::thread thread_;
};

}  // namespace tamis
