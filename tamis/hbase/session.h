// State that all operations of one client share: its thread's clock, its channels, the known
// regions.
//
// An operation is a coroutine on the client's thread. It ends: by its deadline, or because the
// session is closed, which ends all waits at once.
#pragma once

#include <asio/async_result.hpp>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/use_awaitable.hpp>
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
  // REQUIRES: the addresses can be parsed; `tls` is what the options say of it.
  Session(asio::io_context& io, ClientOptions options, std::shared_ptr<TlsContext> tls);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // All operations end with kCancelled, soon.
  void Close();
  bool closed() const { return closed_; }

  Task<bool> SleepUntil(Deadline when);
  Task<Reply> Send(Channel& channel, Call call);
  // Sends all at once; the replies in the order of the calls.
  Task<std::vector<Reply>> SendAll(std::vector<std::pair<Channel*, Call>> calls);

  // When one try has to be over.
  Deadline CallDeadline(Deadline operation) const {
    return std::min(operation, Clock::now() + options.call_timeout);
  }
  // Names an operation, so that a server that has run it does not run it again.
  uint64_t NextNonce() { return random() | 1; }

  asio::io_context& io;
  const ClientOptions options;
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
