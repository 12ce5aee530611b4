#include "tamis/hbase/connection.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "tamis/base/coding.h"
#include "tamis/base/exception_status.h"
#include "tamis/hbase/preamble.h"
#include "tamis/hbase/transport.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

// A wrapped piece is larger than its content.
constexpr size_t kWrappingBytes = 1 << 16;
// the call id of an exception that ends the connection
constexpr uint32_t kFatalCallId = 0xffffffff;

// Sets socket options for which asio has no names.
void SetOption(asio::ip::tcp::socket& socket, int level, int name, int value) {
  ::setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
}

}  // namespace

Status Reply::ToStatus() const {
  switch (outcome) {
    case Outcome::kAnswer:
      return {};
    case Outcome::kException:
      return exception.ToStatus();
    default:
      return status;
  }
}

std::shared_ptr<Connection> Connection::Open(asio::io_context& io, Timers& timers, Address address,
                                             Options options) {
  std::shared_ptr<Connection> connection(
      new Connection(io, timers, std::move(address), std::move(options)));
  connection->Connect();
  return connection;
}

Connection::Connection(asio::io_context& io, Timers& timers, Address address, Options options)
    : io_(io),
      timers_(timers),
      address_(std::move(address)),
      options_(std::move(options)),
      resolver_(io),
      transport_(std::make_unique<Transport>(io, options_.tls)),
      reader_(options_.max_frame_bytes),
      pieces_(options_.max_frame_bytes + kWrappingBytes) {
  if (options_.login) names_ = options_.login->NamesOf(address_, options_.service);
}

Connection::~Connection() {
  TakeBackConnectTimer();
  for (auto& [id, waiting] : calls_) timers_.TakeBack(waiting.timer);
}

void Connection::Connect() {
  SetConnectTimer(options_.connect_timeout, "no connection");
  const auto self = weak_from_this();
  Address way = address_;
  if (options_.way) {
    try {
      way = options_.way(address_);
    } catch (const std::exception& error) {
      return Fail(Unavailable(std::string("there is no way to it: ") + error.what()));
    }
  }
  resolver_.async_resolve(
      way.host, std::to_string(way.port),
      [self, this](const boost::system::error_code& error, const auto& found) {
        const auto alive = self.lock();
        if (!alive || state_ == State::kClosed) return;
        if (error) {
          no_server_ = error == asio::error::host_not_found;
          return Fail(Unavailable("its name cannot be resolved: " + error.message()));
        }
        // asio uses the socket once more before it calls back, so `alive` keeps it until then.
        asio::async_connect(transport_->socket(), found,
                            [alive, this](const boost::system::error_code& refused, const auto&) {
                              if (state_ == State::kClosed) return;
                              if (refused) {
                                no_server_ = refused == asio::error::connection_refused;
                                return Fail(Unavailable(refused.message()));
                              }
                              Connected();
                            });
      });
}

void Connection::SetConnectTimer(std::chrono::milliseconds timeout, std::string missing) {
  TakeBackConnectTimer();
  missing_ = std::move(missing);
  has_connect_timer_ = true;
  connect_timer_ = timers_.Add(Clock::now() + timeout, [self = weak_from_this(), timeout] {
    const auto alive = self.lock();
    if (!alive) return;
    alive->has_connect_timer_ = false;
    alive->Fail(
        Unavailable(alive->missing_ + " within " + std::to_string(timeout.count()) + " ms"));
  });
}

void Connection::TakeBackConnectTimer() {
  if (has_connect_timer_) timers_.TakeBack(connect_timer_);
  has_connect_timer_ = false;
}

void Connection::Connected() {
  TakeBackConnectTimer();
  asio::ip::tcp::socket& socket = transport_->socket();
  boost::system::error_code ignored;
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const int seconds = std::max<int>(1, static_cast<int>(options_.silence.count() / 2000));
  SetOption(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  SetOption(socket, IPPROTO_TCP, TCP_KEEPCNT, 2);
  SetOption(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(options_.silence.count()));
  if (!transport_->has_tls()) return Authenticate();
  SetConnectTimer(options_.handshake_timeout, "no TLS handshake");
  // `self` keeps the transport alive until the handshake has ended.
  transport_->Handshake(address_.host, [self = shared_from_this()](Status status) {
    if (self->state_ == State::kClosed) return;
    self->TakeBackConnectTimer();
    if (!status.ok()) {
      self->no_server_ = status.code() == StatusCode::kUnavailable;  // closed
      return self->Fail(std::move(status));
    }
    self->Authenticate();
  });
}

void Connection::Authenticate() {
  if (!options_.login) return Greet();
  if (names_.size() > 1 && !asked_ && !options_.login->IsKnown(address_)) return AskForPrincipal();
  SetConnectTimer(options_.login_timeout, options_.login->Missing(address_, names_[name_]));
  const auto self = weak_from_this();
  options_.login->Begin(
      address_, names_[name_], [self] { return !self.expired(); },
      // On the login's thread, which must never own the connection.
      [self, &io = io_](Result<SaslStart> start) {
        auto shared = std::make_shared<Result<SaslStart>>(std::move(start));
        asio::post(io, [self, shared] {
          const auto alive = self.lock();
          if (!alive || alive->state_ == State::kClosed) return;
          if (!shared->ok()) return alive->NoTicket(shared->status());
          alive->Exchange(*std::move(*shared));
        });
      });
}

// A server with one of two names says which one. If it says neither, both are tried.
void Connection::AskForPrincipal() {
  asked_ = true;
  SetConnectTimer(options_.handshake_timeout, "no answer to the question for its principal");
  const auto question = std::make_shared<PreambleQuestion>(*transport_, shared_from_this());
  question->Ask(
      Question::kPrincipal, [self = weak_from_this()](const PreambleQuestion::Answer& answer) {
        const auto alive = self.lock();
        if (!alive || alive->state_ == State::kClosed) return;
        alive->TakeBackConnectTimer();
        const auto named = std::ranges::find_if(
            alive->names_, [&](const auto& name) { return NamesPrincipal(name, answer.text); });
        if (named != alive->names_.end()) std::iter_swap(alive->names_.begin(), named);
        answer.is_open ? alive->Authenticate() : alive->Reconnect();
      });
}

// The server has closed the connection.
void Connection::Reconnect() {
  boost::system::error_code ignored;
  transport_->socket().close(ignored);
  old_transports_.push_back(std::move(transport_));
  transport_ = std::make_unique<Transport>(io_, options_.tls);
  Connect();
}

// The KDC may know the server by its other name.
void Connection::NoTicket(const Status& why) {
  if (first_refusal_.ok()) first_refusal_ = why;
  if (IsTransient(why.code())) return Fail(first_refusal_);
  if (++name_ == names_.size() && !RenewTickets()) return Fail(first_refusal_);
  Authenticate();
}

bool Connection::RenewTickets() {
  if (!refused_ || renewed_ || !options_.login->Renew(address_, tickets_)) return false;
  renewed_ = true;
  name_ = 0;
  first_refusal_ = Status();
  return true;
}

void Connection::Exchange(SaslStart start) {
  asked_for_ = start.server.empty() ? names_[name_] : start.server;
  tickets_ = start.tickets;
  SetConnectTimer(options_.handshake_timeout, "no answer to the login");
  const auto handshake =
      std::make_shared<SaslHandshake>(*transport_, shared_from_this(), std::move(start));
  handshake->Run(options_.login->method(),
                 [self = weak_from_this()](SaslHandshake::Outcome outcome) {
                   const auto alive = self.lock();
                   if (alive && alive->state_ != State::kClosed) {
                     alive->Authenticated(std::move(outcome));
                   }
                 });
}

void Connection::Authenticated(SaslHandshake::Outcome outcome) {
  TakeBackConnectTimer();
  if (outcome.refused) {
    const Status why = FailedPrecondition(
        "the server refuses the login to " + asked_for_ + ": " + outcome.status.message() +
        " (its log says why: " + std::string(options_.login->reasons_of_refusal()) + ")");
    if (first_refusal_.ok()) first_refusal_ = why;
    refused_ = true;
    if (++name_ == names_.size() && !RenewTickets()) return Fail(first_refusal_);
    return Reconnect();
  }
  if (!outcome.status.ok()) {
    // The peer closed the connection, or it does not speak SASL.
    no_server_ = outcome.status.code() == StatusCode::kUnavailable ||
                 outcome.status.code() == StatusCode::kDataLoss;
    return Fail(std::move(outcome.status));
  }
  if (!outcome.mechanism && !options_.login->falls_back()) {
    return Fail(FailedPrecondition(
        "the server has no security, where Kerberos is wanted: either it is not the server that it "
        "should be, or allow that by fallback=simple"));
  }
  mechanism_ = std::move(outcome.mechanism);
  if (mechanism_) options_.login->Accepted(address_, names_[name_], tickets_);
  Greet();
}

void Connection::Greet() {
  state_ = State::kOpen;
  writing_ = Greeting();
  if (!Wrap(&writing_)) return;
  asio::async_write(*transport_, asio::buffer(writing_),
                    [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                      self->writing_.clear();
                      if (!error) self->Write();  // Read() reports the error
                    });
  Read();
}

std::string Connection::Greeting() const {
  pb::ConnectionHeader header;
  // The ticket names the user. Sending another name would ask for the right to act for that user.
  if (!mechanism_) header.mutable_user_info()->set_effective_user(options_.user);
  header.set_service_name(options_.service);
  DescribeClient(&header);
  std::string bytes;
  if (!options_.login) bytes = Preamble(kNoLogin);
  PutBig32(&bytes, static_cast<uint32_t>(header.ByteSizeLong()));
  header.AppendToString(&bytes);
  return bytes;
}

void Connection::Send(Call call, Done done) {
  const auto refuse = [&](Status why) {
    asio::post(io_, [done = std::move(done), why = std::move(why)]() mutable {
      done(Reply::NotSent(std::move(why)));
    });
  };
  if (state_ == State::kClosed) return refuse(status_);
  const size_t size = call.parameter->ByteSizeLong() + call.cells.size();
  if (size > options_.max_request_bytes) {
    return refuse(InvalidArgument("a request of " + std::to_string(size) + " bytes, where " +
                                  std::to_string(options_.max_request_bytes) +
                                  " are allowed: send less at once"));
  }
  if (++last_id_ == kFatalCallId) last_id_ = 1;
  const uint32_t id = last_id_;
  pb::RequestHeader header;
  header.set_call_id(id);
  header.set_method_name(call.method);
  header.set_request_param(true);
  if (!call.cells.empty()) {
    header.mutable_cell_block_meta()->set_length(static_cast<uint32_t>(call.cells.size()));
  }
  if (call.priority != 0) header.set_priority(call.priority);
  for (const auto& [name, value] : call.trace) {
    (*header.mutable_trace_info()->mutable_headers())[name] = value;
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(call.deadline - Clock::now()).count();
  header.set_timeout(static_cast<uint32_t>(std::clamp<int64_t>(left, 1, 1 << 30)));

  Waiting waiting{.done = std::move(done), .begin = given_ + out_.size()};
  waiting.timer = timers_.Add(call.deadline, [self = weak_from_this(), id] {
    if (const auto alive = self.lock()) alive->TimedOut(id);
  });
  calls_.emplace(id, std::move(waiting));
  AppendCall(header, *call.parameter, call.cells, &out_);
  if (state_ == State::kOpen && writing_.empty() && !write_posted_) {
    // Calls sent in one turn of the event loop share one write.
    write_posted_ = true;
    asio::post(io_, [self = shared_from_this()] {
      self->write_posted_ = false;
      self->Write();
    });
  }
}

// Replaces the bytes by wrapped pieces, if they are to be wrapped. False: the connection is broken.
bool Connection::Wrap(std::string* bytes) {
  if (!mechanism_ || !mechanism_->wraps()) return true;
  std::string wrapped;
  for (std::string_view rest = *bytes; !rest.empty();) {
    const auto piece = mechanism_->Wrap(rest.substr(0, mechanism_->max_piece_bytes()));
    if (!piece.ok()) {
      Fail(piece.status());
      return false;
    }
    PutBig32(&wrapped, static_cast<uint32_t>(piece->size()));
    wrapped += *piece;
    rest.remove_prefix(std::min(rest.size(), mechanism_->max_piece_bytes()));
  }
  *bytes = std::move(wrapped);
  return true;
}

void Connection::Write() {
  if (state_ != State::kOpen || out_.empty() || !writing_.empty()) return;
  writing_.swap(out_);
  given_ += writing_.size();
  if (!Wrap(&writing_)) return;
  asio::async_write(*transport_, asio::buffer(writing_),
                    [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                      // Keep the buffer for the next write, unless one large request made it huge.
                      self->writing_.clear();
                      if (self->writing_.capacity() > (1 << 20)) self->writing_.shrink_to_fit();
                      if (!error) self->Write();
                    });
}

void Connection::Read() {
  const bool is_wrapped = mechanism_ && mechanism_->wraps();
  const auto space = is_wrapped ? pieces_.Space() : reader_.Space();
  transport_->async_read_some(
      asio::buffer(space.data(), space.size()),
      [self = shared_from_this(), is_wrapped](const boost::system::error_code& error, size_t size) {
        if (self->state_ == State::kClosed) return;
        if (error) return self->Fail(self->WhyBroken(error));
        self->last_heard_ = Clock::now();
        is_wrapped ? self->pieces_.Commit(size) : self->reader_.Commit(size);
        if (is_wrapped ? self->TakePieces() : self->TakeAnswers()) self->Read();
      });
}

bool Connection::TakePieces() {
  while (state_ == State::kOpen) {
    const auto plain = pieces_.Next(mechanism_.get());
    if (!plain.ok()) {
      Fail(plain.status());
      break;
    }
    if (!*plain) break;
    for (std::string_view rest = **plain; !rest.empty() && state_ == State::kOpen;) {
      const auto space = reader_.Space();
      const size_t size = rest.copy(space.data(), space.size());
      reader_.Commit(size);
      rest.remove_prefix(size);
      TakeAnswers();
    }
  }
  return state_ == State::kOpen;
}

Status Connection::WhyBroken(const boost::system::error_code& error) {
  const std::string why = "the connection broke: " + EndOf(error);
  if (answered_) return Unavailable(why);
  if (Status refusal = transport_->Refusal(error); !refusal.ok()) return refusal;
  no_server_ = IsEnd(error);
  return Unavailable(
      why + " before its first answer (is there a " + options_.service +
      " on this port, of a master (16000) or region server (16020), not ZooKeeper's (2181)" +
      (transport_->has_tls() ? "?)" : "? Does it require TLS or Kerberos?)"));
}

Status Connection::Unreadable(Status why) {
  if (answered_) return why;
  no_server_ = true;
  return why.WithContext("it does not answer as an HBase does");
}

bool Connection::TakeAnswers() {
  while (state_ == State::kOpen) {
    const auto frame = reader_.Next();
    if (!frame.ok()) {
      Fail(Unreadable(frame.status()));
      break;
    }
    if (!*frame) break;
    TakeAnswer(**frame);
  }
  return state_ == State::kOpen;
}

void Connection::TakeAnswer(const FrameReader::Frame& frame) {
  pb::ResponseHeader header;
  Reply reply;
  if (frame.is_cut()) {
    std::string_view bytes = frame.bytes;
    if (Status taken = TakeHeader(&bytes, &header); !taken.ok()) {
      return Fail(Unreadable(std::move(taken)));
    }
    const std::string what = "an answer of " + std::to_string(frame.size) + " bytes";
    reply = Reply::Unknown(frame.size <= options_.max_frame_bytes
                               ? OutOfMemory().WithContext(what)
                               : ResourceExhausted(what + ", where " +
                                                   std::to_string(options_.max_frame_bytes) +
                                                   " are allowed"));
  } else {
    reply.outcome = Reply::Outcome::kAnswer;
    reply.frame = std::make_shared<const std::string>(frame.bytes);
    const auto parts = ParseAnswer(*reply.frame, &header);
    if (!parts.ok()) return Fail(Unreadable(parts.status()));
    reply.message = parts->message;
    reply.cells = parts->cells;
  }
  if (header.has_exception()) {
    reply.outcome = Reply::Outcome::kException;
    reply.exception = ExceptionOf(header.exception());
  }
  if (header.call_id() == kFatalCallId) {
    const Status why = reply.ToStatus();
    if (!options_.login && why.message().ends_with("Authentication is required")) {
      return Fail(FailedPrecondition(
          "the server requires Kerberos: run kinit, and name the cluster by its settings, as "
          "hbase:///NAMESPACE?site=/etc/hbase/conf/hbase-site.xml, where "
          "hbase.security.authentication is kerberos"));
    }
    return Fail(FailedPrecondition("the server refused the connection: " +
                                   (why.ok() ? "without a reason" : why.message())));
  }
  answered_ = true;
  const auto found = calls_.find(header.call_id());
  if (found == calls_.end()) {
    // A late answer, whose call has timed out. An id that was never used means that the stream is
    // corrupt.
    if (header.call_id() == 0 || header.call_id() > last_id_) {
      Fail(DataLoss("an answer to call " + std::to_string(header.call_id()) +
                    ", which was never made"));
    }
    return;
  }
  Waiting waiting = std::move(found->second);
  calls_.erase(found);
  timers_.TakeBack(waiting.timer);
  waiting.done(std::move(reply));
}

void Connection::TimedOut(uint32_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  Waiting waiting = std::move(found->second);
  calls_.erase(found);
  // A call that is still in the buffer will be sent all the same: its bytes are among those of
  // others.
  const std::string missing = state_ == State::kConnecting ? missing_ : "no answer";
  waiting.done(Reply::Unknown(DeadlineExceeded(missing + " in time")));
}

void Connection::Close(const Status& why) {
  if (state_ != State::kClosed) Fail(why);
}

void Connection::Fail(Status why) {
  const auto self = shared_from_this();  // a callback may release the last other owner
  TakeBackConnectTimer();
  const bool refused =
      state_ == State::kConnecting || why.code() == StatusCode::kFailedPrecondition;
  state_ = State::kClosed;
  status_ = why;
  resolver_.cancel();
  boost::system::error_code ignored;
  transport_->socket().close(ignored);
  auto calls = std::exchange(calls_, {});
  for (auto& [id, waiting] : calls) timers_.TakeBack(waiting.timer);
  for (auto& [id, waiting] : calls) {
    // Bytes that were not passed to the socket have not left. After a refusal, the server has read
    // nothing.
    const bool left = !refused && waiting.begin < given_;
    asio::post(io_, [done = std::move(waiting.done), left, why, no_server = no_server_] {
      Reply reply = left ? Reply::Unknown(why) : Reply::NotSent(why);
      reply.no_server = no_server;
      done(std::move(reply));
    });
  }
}

}  // namespace tamis::hbase
