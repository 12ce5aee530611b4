// The state that all operations of one client share: timers, channels, the cache of regions.
//
// An operation is a coroutine on the client's thread. It ends by its deadline at the latest, or
// when the session is closed, which ends all waits at once.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/hbase/channel.h"
#include "tamis/hbase/client_options.h"
#include "tamis/hbase/locator.h"
#include "tamis/hbase/registry.h"
#include "tamis/hbase/task.h"
#include "tamis/hbase/timers.h"

namespace tamis::hbase {

class Session {
 public:
  // REQUIRES: the addresses can be parsed; `tls` was loaded from `options.tls`, and `login` made
  // from `options.kerberos`.
  Session(boost::asio::io_context& io_context, ClientOptions client_options,
          std::shared_ptr<TlsContext> tls_context, std::shared_ptr<SaslLogin> login);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Ends all operations with kCancelled, soon.
  void Close();
  bool closed() const { return closed_; }

  Task<bool> SleepUntil(Deadline when);
  Task<Reply> Send(Channel& channel, Call call);
  // Sends all calls at once; returns the replies in the order of the calls.
  Task<std::vector<Reply>> SendAll(std::vector<std::pair<Channel*, Call>> calls);

  // The deadline of one try.
  Deadline CallDeadline(Deadline operation) const {
    return std::min(operation, Clock::now() + options.call_timeout);
  }
  // Identifies an operation, so that a server that has run it does not run it again.
  uint64_t NextNonce() { return random() | 1; }

  boost::asio::io_context& io;
  const ClientOptions options;
  const std::shared_ptr<TlsContext> tls;  // not set: no TLS
  Random random;
  const uint64_t nonce_group;
  Timers timers;
  Channels channels;
  Registry registry;
  Locator locator;

 private:
  bool closed_ = false;
};

}  // namespace tamis::hbase
