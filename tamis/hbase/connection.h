// One TCP connection to one service of an HBase server: many calls in flight, answers in any order.
//
// It connects at once. Calls may be sent before it is connected and leave together in few writes.
// Each call ends exactly once, in one of four ways (Reply), and never from inside of Send(). A
// broken connection stays broken; Channel opens a new one.
//
// The server does not answer the connection header; it closes the connection if it rejects the
// header (an unknown service, TLS expected). So the error for a close before the first answer names
// these possible causes.
//
// Threads: use it only on its io_context, which runs on one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/exception.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/sasl_handshake.h"
#include "tamis/hbase/sasl_login.h"
#include "tamis/hbase/server_name.h"
#include "tamis/hbase/timers.h"
#include "tamis/hbase/wrapped_reader.h"

namespace tamis::hbase {

class TlsContext;
class Transport;

// How a call ended.
struct Reply {
  enum class Outcome {
    kAnswer,
    kException,  // the server answered with an exception
    kNotSent,    // the call was not sent, so it did not run
    // The call may have run or may still run. With kResourceExhausted it did run, but its answer
    // exceeds max_frame_bytes.
    kUnknown,
  };
  Outcome outcome = Outcome::kNotSent;
  Status status;        // the reason, for kNotSent and kUnknown
  Exception exception;  // for kException
  // For kNotSent and kUnknown: the address is not that of an HBase server now. The host is unknown,
  // it refuses the connection, or the peer closes it or answers in another way before it has
  // answered as an HBase.
  bool no_server = false;
  // For kAnswer: `message` and `cells` are views of it.
  std::shared_ptr<const std::string> frame;
  std::string_view message;
  std::string_view cells;

  // Ok for kAnswer; else the reason.
  Status ToStatus() const;

  static Reply NotSent(Status why) {
    return {.outcome = Outcome::kNotSent, .status = std::move(why)};
  }
  static Reply Unknown(Status why) {
    return {.outcome = Outcome::kUnknown, .status = std::move(why)};
  }
};

// A call that is not assigned to a connection yet.
struct Call {
  std::string method;
  std::shared_ptr<const google::protobuf::MessageLite> parameter;
  std::string cells;
  uint32_t priority = 0;  // above 10: the server uses handlers reserved for such calls
  Deadline deadline;
  // The headers of the client's trace context, "traceparent" for one, for HBase's own spans.
  std::map<std::string, std::string> trace = {};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  struct Options {
    std::string service;  // "ClientService"
    std::string user;
    std::shared_ptr<TlsContext> tls;                  // not set: no TLS
    std::shared_ptr<SaslLogin> login = {};            // not set: names `user` without proof
    std::function<Address(const Address&)> way = {};  // not set: connects to the address itself
    std::chrono::milliseconds connect_timeout{1000};
    std::chrono::milliseconds handshake_timeout{1500};
    std::chrono::milliseconds login_timeout{15000};
    // The kernel closes a connection if the peer does not acknowledge sent bytes for this long.
    std::chrono::milliseconds silence{10000};
    size_t max_frame_bytes = 256 << 20;
    size_t max_request_bytes = 256 << 20;
  };
  using Done = std::function<void(Reply)>;

  static std::shared_ptr<Connection> Open(boost::asio::io_context& io, Timers& timers,
                                          Address address, Options options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(Call call, Done done);
  // Ends all calls in flight.
  void Close(const Status& why);

  // Ok while the connection can be used.
  const Status& status() const { return status_; }
  bool connected() const { return state_ == State::kOpen; }
  size_t in_flight() const { return calls_.size(); }
  // When bytes last arrived; before that, when the connection was created.
  Clock::time_point last_heard() const { return last_heard_; }

 private:
  enum class State { kConnecting, kOpen, kClosed };
  struct Waiting {
    Done done;
    Timers::Entry timer;
    uint64_t begin = 0;  // offset of its first byte among all bytes written so far
  };

  Connection(boost::asio::io_context& io, Timers& timers, Address address, Options options);

  void Connect();
  void Connected();
  void Authenticate();
  void AskForPrincipal();
  void Reconnect();
  void NoTicket(const Status& why);
  // Whether to try all names once more, with newer tickets than those that the server refused.
  bool RenewTickets();
  void Exchange(SaslStart start);
  void Authenticated(SaslHandshake::Outcome outcome);
  void Greet();
  void SetConnectTimer(std::chrono::milliseconds timeout, std::string missing);
  void TakeBackConnectTimer();
  std::string Greeting() const;
  bool Wrap(std::string* bytes);
  void Write();
  void Read();
  bool TakePieces();
  bool TakeAnswers();
  void TakeAnswer(const FrameReader::Frame& frame);
  void TimedOut(uint32_t id);
  Status WhyBroken(const boost::system::error_code& error);
  Status Unreadable(Status why);
  void Fail(Status why);

  boost::asio::io_context& io_;
  Timers& timers_;
  const Address address_;
  const Options options_;
  boost::asio::ip::tcp::resolver resolver_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Transport>> old_transports_;  // may have pending operations
  FrameReader reader_;

  // With a login: the names that the server may have, and the one that is tried.
  std::vector<std::string> names_;
  size_t name_ = 0;
  std::string asked_for_;  // the principal that the server must be
  uint64_t tickets_ = 0;   // used for the last login
  bool refused_ = false;   // the server refused a login
  bool renewed_ = false;   // the tickets
  bool asked_ = false;     // the server was asked which name it has
  Status first_refusal_;
  std::unique_ptr<SaslMechanism> mechanism_;  // not set: no authentication
  WrappedReader pieces_;                      // if the mechanism wraps
  State state_ = State::kConnecting;
  Status status_;
  std::string missing_;  // the step that it waits for while it connects
  bool has_connect_timer_ = false;
  Timers::Entry connect_timer_;

  std::unordered_map<uint32_t, Waiting> calls_;
  uint32_t last_id_ = 0;
  bool answered_ = false;
  bool no_server_ = false;  // like Reply::no_server
  Clock::time_point last_heard_ = Clock::now();

  std::string out_;      // not passed to the socket yet
  std::string writing_;  // being written
  uint64_t given_ = 0;   // total bytes passed to the socket
  bool write_posted_ = false;
};

}  // namespace tamis::hbase
