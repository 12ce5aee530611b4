#include "tamis/hbase/visit.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tamis::hbase {

namespace asio = boost::asio;

Visit::Visit(asio::io_context& io, Timers& timers, Deadline deadline,
             std::shared_ptr<TlsContext> tls)
    : timers_(timers), resolver_(io), transport_(std::make_shared<Transport>(io, std::move(tls))) {
  timer_ = timers_.Add(deadline, [this] {
    is_late_ = true;
    resolver_.cancel();
    boost::system::error_code ignored;
    transport_->socket().close(ignored);
  });
}

Visit::~Visit() {
  if (!is_late_) timers_.TakeBack(timer_);
}

Task<Status> Visit::Connect(Address way, std::string host) {
  boost::system::error_code error;
  auto token = asio::redirect_error(asio::use_awaitable, error);
  const auto found = co_await resolver_.async_resolve(way.host, std::to_string(way.port), token);
  if (error) co_return Fault(error);
  co_await asio::async_connect(transport_->socket(), found, token);
  if (error) co_return Fault(error);
  if (!transport_->has_tls()) co_return Status();
  Task<Status> shaken = Suspended<Status>([this, &host](std::function<void(Status)> resume) {
    transport_->Handshake(host, std::move(resume));
  });
  Status status = co_await std::move(shaken);
  no_server_ = status.code() == StatusCode::kUnavailable;
  co_return is_late_ ? Fault({}) : status;
}

Status Visit::Fault(const boost::system::error_code& error) {
  if (is_late_) return Unavailable("no answer in time");
  const bool is_closed = IsEnd(error) || error == asio::error::broken_pipe;
  no_server_ =
      is_closed || error == asio::error::host_not_found || error == asio::error::connection_refused;
  return Unavailable(is_closed ? "it closes the connection (does it serve?)" : error.message());
}

}  // namespace tamis::hbase
