// A blocking HTTP client for tests: one connection to a server on the loopback.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <map>
#include <string>

namespace tamis::server {

class HttpClient {
 public:
  struct Answer {
    int status = 0;  // 0: the connection ended before the answer did
    std::map<std::string, std::string> headers;
    std::string body;  // the body that came, whole or in part
  };

  explicit HttpClient(uint16_t port) : socket_(io_) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }

  Answer Ask(const std::string& method, const std::string& target, const std::string& body = "",
             const std::map<std::string, std::string>& headers = {}) {
    Send(method, target, body, headers);
    return Receive(method == "HEAD");
  }
  Answer Get(const std::string& target) { return Ask("GET", target); }

  void Send(const std::string& method, const std::string& target, const std::string& body = "",
            const std::map<std::string, std::string>& headers = {}) {
    std::string text = method + " " + target + " HTTP/1.1\r\n";
    if (!headers.contains("Host")) text += "Host: localhost\r\n";
    for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
    text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    SendRaw(text);
  }
  void SendRaw(const std::string& bytes) {
    boost::system::error_code ignored;  // the server may have closed the connection
    boost::asio::write(socket_, boost::asio::buffer(bytes), ignored);
  }

  Answer Receive(bool is_head = false) {
    namespace http = boost::beast::http;
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    parser.skip(is_head);
    boost::system::error_code error;
    http::read(socket_, buffer_, parser, error);
    Answer answer;
    answer.body = parser.get().body();
    if (error) return answer;
    answer.status = parser.get().result_int();
    for (const auto& field : parser.get()) {
      answer.headers[std::string(field.name_string())] = std::string(field.value());
    }
    return answer;
  }

  // The bytes of a streamed answer so far, once they contain the text; all of them if the
  // connection ends before.
  const std::string& ReceiveUntil(const std::string& text) {
    while (received_.find(text) == std::string::npos) {
      char bytes[4096];
      boost::system::error_code error;
      const size_t count = socket_.read_some(boost::asio::buffer(bytes), error);
      received_.append(bytes, count);
      if (error) break;
    }
    return received_;
  }

  // Whether the server has closed the connection, which this waits for.
  bool IsClosed() {
    char byte = 0;
    boost::system::error_code error;
    socket_.read_some(boost::asio::buffer(&byte, 1), error);
    return error == boost::asio::error::eof || error == boost::asio::error::connection_reset;
  }
  void Close() { socket_.close(); }

 private:
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  std::string received_;  // by ReceiveUntil
};

}  // namespace tamis::server
