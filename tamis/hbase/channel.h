// The way to one service of one server: a connection that is opened when it is needed and opened
// again when it broke, and a window of calls.
//
// More calls in flight than the server's queue holds bring nothing but refusals, so that no more
// than the window leave; it shrinks when the server says that it is overloaded and grows slowly
// again. The others wait here, each no longer than until its own deadline. A server that could not
// be reached is not tried again at every call: until the pause is over they fail at once, with the
// old reason.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "tamis/hbase/connection.h"

namespace tamis::hbase {

class Channel : public std::enable_shared_from_this<Channel> {
 public:
  struct Options {
    Connection::Options connection;
    double max_window = 64;
    size_t max_waiting = 100'000;
    // If nothing has arrived on a connection for this long when a call times out, the connection
    // takes no more calls: they go over a new one. Calls that wait on the old connection may still
    // be answered.
    std::chrono::milliseconds patience{1000};
  };

  Channel(asio::io_context& io, Timers& timers, Address address, Options options)
      : io_(io),
        timers_(timers),
        address_(std::move(address)),
        options_(std::move(options)),
        window_(options_.max_window) {}
  ~Channel();

  // `done` is called once, later, with "SERVER: reason" when there is no answer.
  void Send(Call call, Connection::Done done);
  void Close(const Status& why);

  const Address& address() const { return address_; }
  double window() const { return window_; }
  size_t in_flight() const { return in_flight_; }
  uint64_t connections_opened() const { return connections_opened_; }

 private:
  struct Waiting {
    Call call;
    Connection::Done done;
    Timers::Entry timer;
  };

  void SendWaiting();
  void Give(Call call, Connection::Done done);
  void Took(Reply reply, const Connection::Done& done, const std::shared_ptr<Connection>& from);

  asio::io_context& io_;
  Timers& timers_;
  const Address address_;
  const Options options_;
  std::shared_ptr<Connection> connection_;
  std::list<Waiting> waiting_;
  size_t in_flight_ = 0;
  double window_;
  uint64_t connections_opened_ = 0;
  int connect_failures_ = 0;  // since the last answer
  Deadline not_before_;
  Status last_failure_;
};

// The channels of a client.
class Channels {
 public:
  // A lane has connections of its own, so that what is slow in one stands in nobody's way in
  // another.
  enum class Lane { kNormal, kPolls };

  Channels(asio::io_context& io, Timers& timers, Channel::Options options)
      : io_(io), timers_(timers), options_(std::move(options)) {}

  Channel& To(const Address& address, std::string_view service, Lane lane = Lane::kNormal);
  // All calls end, and later ones too.
  void Close(const Status& why);

 private:
  asio::io_context& io_;
  Timers& timers_;
  const Channel::Options options_;
  std::map<std::tuple<Address, std::string, Lane>, std::shared_ptr<Channel>, std::less<>> channels_;
};

}  // namespace tamis::hbase
