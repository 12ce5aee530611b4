// One TCP connection to one service of an HBase server: many calls in flight, answers in any order.
//
// It connects at once; calls may be given to it from the start and leave together in few writes.
// Each ends in one of four ways (Reply), always, and never from inside of Call(). A broken
// connection stays broken: who needs another one opens another one (Channel).
//
// The server answers nothing to the header, and closes when it does not like it (an unknown
// service, TLS expected). So a close before the first answer names these suspects.
//
// Threads: those of one io_context that runs on one thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tamis/base/status.h"
#include "tamis/hbase/exception.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/timers.h"

namespace tamis::hbase {

class TlsContext;
class Transport;

// How a call ended.
struct Reply {
  enum class Outcome {
    kAnswer,
    kException,  // the server's answer is an exception
    kNotSent,    // it did not leave, so it did not run
    // It may have run, may still run, or may not. kResourceExhausted: it has run, and its answer is
    // larger than an answer may be.
    kUnknown,
  };
  Outcome outcome = Outcome::kNotSent;
  Status status;        // kNotSent, kUnknown: why
  Exception exception;  // kException
  // kAnswer: `message` and `cells` are views of it.
  std::shared_ptr<const std::string> frame;
  std::string_view message;
  std::string_view cells;

  // Why it is no answer; ok when it is one.
  Status ToStatus() const;

  static Reply NotSent(Status why) {
    return {.outcome = Outcome::kNotSent, .status = std::move(why)};
  }
  static Reply Unknown(Status why) {
    return {.outcome = Outcome::kUnknown, .status = std::move(why)};
  }
};

// A call that is not bound to a connection yet.
struct Call {
  std::string method;
  std::shared_ptr<const google::protobuf::MessageLite> parameter;
  std::string cells;
  uint32_t priority = 0;  // above 10: handlers that normal calls do not occupy
  Deadline deadline;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    std::string service;  // "ClientService"
    std::string user;
    std::shared_ptr<TlsContext> tls;                  // nothing: in the open
    std::function<Address(const Address&)> way = {};  // nothing: to the address itself
    std::chrono::milliseconds connect_timeout{1000};
    std::chrono::milliseconds handshake_timeout{1500};
    // The kernel gives a connection up whose bytes the other machine does not confirm for so long.
    std::chrono::milliseconds silence{10000};
    size_t max_frame_bytes = 256 << 20;
    size_t max_request_bytes = 256 << 20;
  };
  using Done = std::function<void(Reply)>;

  static std::shared_ptr<Connection> Open(asio::io_context& io, Timers& timers, Address address,
                                          Options options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(Call call, Done done);
  // Ends all that is in flight.
  void Close(const Status& why);

  // Ok while it can be used.
  const Status& status() const { return status_; }
  bool connected() const { return state_ == State::kOpen; }
  size_t in_flight() const { return calls_.size(); }
  // When something came last, or else when it was made.
  Clock::time_point last_heard() const { return last_heard_; }

 private:
  enum class State { kConnecting, kOpen, kClosed };
  struct Waiting {
    Done done;
    Timers::Entry timer;
    uint64_t begin = 0;  // of its first byte in all that was ever written
  };

  Connection(asio::io_context& io, Timers& timers, Address address, Options options);

  void Connect();
  void Connected();
  void Greet();
  void SetConnectTimer(std::chrono::milliseconds timeout, std::string missing);
  void TakeBackConnectTimer();
  std::string Greeting() const;
  void Write();
  void Read();
  bool TakeAnswers();
  void TakeAnswer(const FrameReader::Frame& frame);
  void TimedOut(uint32_t id);
  Status WhyBroken(const asio::error_code& error) const;
  void Fail(Status why);

  asio::io_context& io_;
  Timers& timers_;
  const Address address_;
  const Options options_;
  asio::ip::tcp::resolver resolver_;
  const std::unique_ptr<Transport> transport_;
  FrameReader reader_;
  State state_ = State::kConnecting;
  Status status_;
  std::string missing_;  // while it connects: what it waits for
  bool has_connect_timer_ = false;
  Timers::Entry connect_timer_;

  std::unordered_map<uint32_t, Waiting> calls_;
  uint32_t last_id_ = 0;
  bool answered_ = false;
  Clock::time_point last_heard_ = Clock::now();

  std::string out_;      // not given to the socket yet
  std::string writing_;  // being written
  uint64_t given_ = 0;   // bytes ever given to the socket
  bool write_posted_ = false;
};

}  // namespace tamis::hbase
