#include "tamis/hbase/channel.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

constexpr double kLeastWindow = 4;
constexpr std::chrono::milliseconds kFirstPause(20);
constexpr std::chrono::milliseconds kLongestPause(1000);

}  // namespace

Channel::~Channel() {
  for (Waiting& waiting : waiting_) timers_.TakeBack(waiting.timer);
}

void Channel::Send(Call call, Connection::Done done) {
  if (in_flight_ < static_cast<size_t>(window_) && waiting_.empty()) {
    return Give(std::move(call), std::move(done));
  }
  if (waiting_.size() >= options_.max_waiting) {
    asio::post(io_, [address = address_, done = std::move(done)] {
      done(Reply::NotSent(Busy(address.ToString() + ": too many calls wait for it")));
    });
    return;
  }
  const auto entry = waiting_.insert(waiting_.end(), Waiting{std::move(call), std::move(done), {}});
  entry->timer = timers_.Add(entry->call.deadline, [this, entry] {
    const Connection::Done late = std::move(entry->done);
    waiting_.erase(entry);
    late(Reply::NotSent(
        Busy(address_.ToString() + ": the calls before it were not answered in time")));
  });
}

void Channel::SendWaiting() {
  while (!waiting_.empty() && in_flight_ < static_cast<size_t>(window_)) {
    Waiting next = std::move(waiting_.front());
    timers_.TakeBack(next.timer);
    waiting_.pop_front();
    Give(std::move(next.call), std::move(next.done));
  }
}

void Channel::Give(Call call, Connection::Done done) {
  if (!connection_ || !connection_->status().ok()) {
    if (Clock::now() < not_before_) {
      asio::post(io_, [why = last_failure_, done = std::move(done)] { done(why); });
      return;
    }
    connection_ = Connection::Open(io_, timers_, address_, options_.connection);
    ++connections_opened_;
  }
  ++in_flight_;
  connection_->Send(std::move(call),
                    [self = shared_from_this(), done = std::move(done), from = connection_](
                        Reply reply) { self->Took(std::move(reply), done, from); });
}

void Channel::Took(Reply reply, const Connection::Done& done,
                   const std::shared_ptr<Connection>& from) {
  --in_flight_;
  if (reply.outcome == Reply::Outcome::kAnswer || reply.outcome == Reply::Outcome::kException) {
    connect_failures_ = 0;
    if (reply.exception.server_overloaded) {
      window_ = std::min(window_, std::max(kLeastWindow, window_ / 2));
    } else {
      window_ = std::min(options_.max_window, window_ + 1 / window_);
    }
  } else {
    reply.status = reply.status.WithContext(address_.ToString());
    // The first call that fails with a broken connection drops it for all.
    if (from == connection_ && !from->status().ok()) {
      connection_.reset();
      last_failure_ = Reply::NotSent(reply.status);
      last_failure_.no_server = reply.no_server;
      const auto pause =
          std::min(kLongestPause, kFirstPause * (1 << std::min(connect_failures_, 6)));
      ++connect_failures_;
      not_before_ = Clock::now() + pause;
    } else if (from == connection_ && reply.status.code() == StatusCode::kDeadlineExceeded &&
               Clock::now() - from->last_heard() >= options_.patience) {
      connection_.reset();
    }
  }
  if (from != connection_ && from->status().ok() && from->in_flight() == 0) {
    from->Close(Unavailable("the connection was closed: a newer one has replaced it"));
  }
  done(std::move(reply));
  SendWaiting();
}

void Channel::Close(const Status& why) {
  not_before_ = Deadline::max();
  last_failure_ = Reply::NotSent(why);
  // Detach the connection first, so that callbacks of its calls see a channel without one.
  if (const auto left = std::exchange(connection_, nullptr)) left->Close(why);
  auto waiting = std::exchange(waiting_, {});
  for (Waiting& one : waiting) {
    timers_.TakeBack(one.timer);
    asio::post(io_, [done = std::move(one.done), why] { done(Reply::NotSent(why)); });
  }
}

Channel& Channels::To(const Address& address, std::string_view service, Lane lane) {
  auto& channel = channels_[{address, std::string(service), lane}];
  if (!channel) {
    Channel::Options options = options_;
    options.connection.service = service;
    channel = std::make_shared<Channel>(io_, timers_, address, std::move(options));
  }
  return *channel;
}

void Channels::Close(const Status& why) {
  for (auto& [key, channel] : channels_) channel->Close(why);
}

}  // namespace tamis::hbase
