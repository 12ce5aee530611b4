// A channel to one service of one server: a connection that is opened when it is needed and
// reopened after it breaks, and a window that limits the calls in flight.
//
// The server refuses calls that its queue cannot hold, so no more calls than the window are in
// flight. The window shrinks when the server reports overload and grows again slowly. Other calls
// wait here until their own deadlines. After a connection has failed, calls fail at once with the
// same reason until a pause is over.
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
    // If a call times out and the connection has received nothing for this long, new calls use a
    // new connection. Calls that wait on the old connection may still be answered.
    std::chrono::milliseconds patience{1000};
  };

  Channel(boost::asio::io_context& io, Timers& timers, Address address, Options options)
      : io_(io),
        timers_(timers),
        address_(std::move(address)),
        options_(std::move(options)),
        window_(options_.max_window) {}
  ~Channel();

  // Calls `done` once, later. If there is no answer, the status is "SERVER: reason".
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

  boost::asio::io_context& io_;
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
  Reply last_failure_;  // kNotSent
};

// All channels of a client.
class Channels {
 public:
  // Each lane has its own connections, so that slow calls in one lane do not delay the other.
  enum class Lane { kNormal, kPolls };

  Channels(boost::asio::io_context& io, Timers& timers, Channel::Options options)
      : io_(io), timers_(timers), options_(std::move(options)) {}

  Channel& To(const Address& address, std::string_view service, Lane lane = Lane::kNormal);
  // Ends all calls, and every later call.
  void Close(const Status& why);

 private:
  boost::asio::io_context& io_;
  Timers& timers_;
  const Channel::Options options_;
  std::map<std::tuple<Address, std::string, Lane>, std::shared_ptr<Channel>, std::less<>> channels_;
};

}  // namespace tamis::hbase
