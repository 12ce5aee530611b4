#include "tamis/server/http_server.h"

#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <cerrno>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "tamis/server/problem.h"
#include "tamis/table/expression.h"

namespace tamis::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Error = boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds kWatchPause{100};
constexpr std::chrono::milliseconds kLinger{2000};

// A connection as the server sees it, with or without TLS.
class Connection {
 public:
  virtual ~Connection() = default;
  // Closes the connection once no answer is under way.
  virtual void Drain() = 0;
  virtual void Close() = 0;
};

// State that all connections of a server share.
struct Shared {
  HttpServer::Options options;
  Handler handler;
  HttpServer::Admit admit;
  std::atomic<uint64_t> bodies_bytes = 0;
  std::mutex mutex;
  std::condition_variable ended;
  std::map<Connection*, std::weak_ptr<Connection>> connections;
  std::atomic<bool> draining = false;

  void Add(const std::shared_ptr<Connection>& connection) {
    std::lock_guard lock(mutex);
    connections.emplace(connection.get(), connection);
  }
  void Remove(Connection* connection) {
    std::lock_guard lock(mutex);
    connections.erase(connection);
    ended.notify_all();
  }
  // The connections that are not being destroyed. They are used without the mutex, which the last
  // owner of one needs.
  std::vector<std::shared_ptr<Connection>> All() {
    std::vector<std::shared_ptr<Connection>> all;
    std::lock_guard lock(mutex);
    for (const auto& [address, connection] : connections) {
      if (auto alive = connection.lock()) all.push_back(std::move(alive));
    }
    return all;
  }
};

// The request without its body.
Request RequestHead(const http::request<http::string_body>& message) {
  Request request{.method = std::string(message.method_string())};
  for (const auto& field : message) {
    const auto [header, is_new] =
        request.headers.emplace(AsciiLower(field.name_string()), field.value());
    if (!is_new) header->second.append(", ").append(field.value());
  }
  std::string target(message.target());
  // A proxy may send "http://HOST/PATH", whose host counts (RFC 9112, 3.2.2).
  if (const size_t scheme = target.find("://"); scheme != std::string::npos && target[0] != '/') {
    const size_t host = scheme + 3;
    const size_t path = std::min(target.find_first_of("/?", host), target.size());
    request.headers["host"] = target.substr(host, path - host);
    target.erase(0, path);
    if (!target.starts_with('/')) target.insert(0, "/");
  }
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string::npos) request.query = target.substr(mark + 1);
  return request;
}

// One connection; all of it runs on the strand of its stream.
template <class Stream>
class HttpConnection final : public Connection,
                             public Exchange,
                             public std::enable_shared_from_this<HttpConnection<Stream>> {
 public:
  template <class... Args>
  explicit HttpConnection(std::shared_ptr<Shared> shared, Args&&... args)
      : shared_(std::move(shared)),
        stream_(std::forward<Args>(args)...),
        watch_(stream_.get_executor()) {}
  ~HttpConnection() override {
    ReleaseBody();
    shared_->Remove(this);
  }

  void Run() {
    shared_->Add(Self());
    OnStrand([this] {
      if (shared_->draining) return Shut();
      if constexpr (kTls) {
        Expire();
        stream_.async_handshake(asio::ssl::stream_base::server,
                                [self = Self()](const Error& error) {
                                  if (!error) self->ReadHead();
                                });
      } else {
        ReadHead();
      }
    });
  }

  void Drain() override {
    OnStrand([this] {
      if (state_ == State::kWaiting) Shut();
    });
  }
  void Close() override {
    OnStrand([this] { Shut(); });
  }

  // ---- Exchange

  const Request& request() const override { return request_; }

  void Send(Response response) override {
    OnStrand([this, response = std::move(response)]() mutable {
      if (state_ != State::kHandling) return;
      state_ = State::kWriting;
      ReleaseBody();
      auto message = std::make_shared<http::response<http::string_body>>(Head(response));
      message->body() = std::move(response.body);
      message->prepare_payload();
      if (is_head_) {
        const auto length = message->body().size();
        message->body().clear();
        message->content_length(length);
      }
      auto serializer = std::make_shared<http::response_serializer<http::string_body>>(*message);
      serializer->split(is_head_);
      SendSome(std::move(message), std::move(serializer));
    });
  }

  void Begin(Response head) override {
    OnStrand([this, head = std::move(head)] {
      if (state_ != State::kHandling) return;
      state_ = State::kStreaming;
      head_ = std::make_unique<http::response<http::empty_body>>(Head(head));
      // HTTP/1.0 has no chunks: the end of the connection is that of the answer.
      is_chunked_ = version_ >= 11;
      if (is_chunked_) {
        head_->chunked(true);
      } else {
        keep_alive_ = false;
        head_->keep_alive(false);
      }
      serializer_ = std::make_unique<http::response_serializer<http::empty_body>>(*head_);
    });
  }

  void Write(std::string part, std::function<void(bool)> sent) override {
    OnStrand([this, part = std::move(part), sent = std::move(sent)]() mutable {
      if (state_ != State::kStreaming || failed_) return sent(false);
      WriteHeadFirst([this, part = std::move(part), sent = std::move(sent)](bool good) mutable {
        if (!good || is_head_ || part.empty()) return sent(good);
        part_ = std::move(part);
        Expire();
        const auto done = [self = Self(), sent = std::move(sent)](const Error& error, size_t) {
          self->failed_ = self->failed_ || error;
          sent(!error);
        };
        const asio::const_buffer bytes(part_.data(), part_.size());
        if (is_chunked_) {
          asio::async_write(stream_, http::make_chunk(bytes), done);
        } else {
          asio::async_write(stream_, bytes, done);
        }
      });
    });
  }

  void End() override {
    OnStrand([this] {
      if (state_ != State::kStreaming) return;
      WriteHeadFirst([this](bool good) {
        if (!good || !is_chunked_ || is_head_) return Finish({}, !good || !keep_alive_);
        Expire();
        asio::async_write(
            stream_, http::make_chunk_last(),
            [self = Self()](const Error& e, size_t) { self->Finish(e, !self->keep_alive_); });
      });
    });
  }

  void Abort() override {
    OnStrand([this] { Shut(); });
  }

  void OnDisconnect(std::function<void()> gone) override {
    OnStrand([this, gone = std::move(gone)]() mutable {
      if (state_ == State::kClosed) return gone();
      gone_ = std::move(gone);
    });
  }

 private:
  static constexpr bool kTls = !std::is_same_v<Stream, beast::tcp_stream>;

  enum class State {
    kWaiting,    // for a request
    kReading,    // the rest of one
    kHandling,   // it was given to the handler
    kStreaming,  // its answer has begun
    kWriting,    // its whole answer is being sent
    kClosed,
  };

  std::shared_ptr<HttpConnection> Self() { return this->shared_from_this(); }
  template <class Work>
  void OnStrand(Work work) {
    asio::dispatch(stream_.get_executor(),
                   [self = Self(), work = std::move(work)]() mutable { self->Guard(work); });
  }
  // Closes the connection when memory does not suffice to serve it.
  template <class Work>
  void Guard(Work&& work) {
    try {
      work();
    } catch (...) {
      Shut();
    }
  }
  beast::tcp_stream& Tcp() { return beast::get_lowest_layer(stream_); }
  void Expire() { Tcp().expires_after(shared_->options.idle_time); }

  http::response<http::string_body> HeadOf(const Response& response) {
    http::response<http::string_body> message(static_cast<http::status>(response.status), version_);
    message.set(http::field::content_type, response.content_type);
    message.set(http::field::server, "tamis");
    message.set("X-Content-Type-Options", "nosniff");
    message.set(http::field::cache_control, "no-store");
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive_ && !shared_->draining);
    return message;
  }
  // The head of an answer, for a message with any kind of body.
  http::response_header<> Head(const Response& response) {
    auto message = HeadOf(response);
    return http::response_header<>(message.base());
  }

  void ReadHead() {
    state_ = State::kWaiting;
    is_head_ = false;
    request_ = {};
    ReleaseBody();
    if (shared_->draining) return Shut();
    parser_.emplace();
    parser_->header_limit(shared_->options.max_head_bytes);
    parser_->body_limit(shared_->options.max_body_bytes);
    Expire();
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = Self()](const Error& error, size_t) { self->Guard([&] { self->OnHead(error); }); });
  }

  void OnHead(const Error& error) {
    if (state_ == State::kClosed) return;
    if (error) return OnBadRequest(error);
    state_ = State::kReading;
    version_ = parser_->get().version() == 10 ? 10 : 11;
    keep_alive_ = parser_->get().keep_alive();
    is_head_ = parser_->get().method() == http::verb::head;
    // Fields after a body in chunks are none of the head's.
    request_ = RequestHead(parser_->get());
    if (!parser_->is_done()) {
      if (shared_->admit) {
        if (auto refusal = shared_->admit(request_)) return RefuseBody(*std::move(refusal));
      }
      if (!ReserveBody()) {
        return RefuseBody(
            Problem(Busy("the bodies of other requests take all memory for bodies; try again")));
      }
    }
    parser_->eager(true);
    const auto expected = parser_->get()[http::field::expect];
    if (!beast::iequals(expected, "100-continue")) return ReadBody();
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(
        stream_, asio::buffer(kContinue),
        [self = Self()](const Error& failed, size_t) { failed ? self->Shut() : self->ReadBody(); });
  }

  // Reads what comes; each part has the idle time again.
  void ReadBody() {
    if (parser_->is_done()) return Handle();
    Expire();
    http::async_read_some(stream_, buffer_, *parser_, [self = Self()](const Error& error, size_t) {
      self->Guard([&] { self->OnBody(error); });
    });
  }

  // Memory for the body, as long as its request is answered.
  bool ReserveBody() {
    reserved_ = parser_->content_length().value_or(shared_->options.max_body_bytes);
    if ((shared_->bodies_bytes += reserved_) <= shared_->options.max_bodies_bytes) return true;
    ReleaseBody();
    return false;
  }
  void ReleaseBody() { shared_->bodies_bytes -= std::exchange(reserved_, 0); }

  // Answers a request whose body is not read.
  void RefuseBody(Response refusal) {
    keep_alive_ = false;
    is_unread_ = true;
    state_ = State::kHandling;
    Send(std::move(refusal));
  }

  void OnBody(const Error& error) {
    if (state_ == State::kClosed) return;
    error ? OnBadRequest(error) : ReadBody();
  }

  void Handle() {
    request_.body = std::move(parser_->get().body());
    state_ = State::kHandling;
    failed_ = false;
    gone_ = nullptr;
    Tcp().expires_never();
    WatchForEnd();
    shared_->handler(Self());
  }

  void OnBadRequest(const Error& error) {
    const auto answer = [&](int status, const std::string& why) {
      RefuseBody(Problem(status, InvalidArgument(why)));
    };
    if (error == http::error::body_limit) {
      return answer(413, "the body of the request is longer than " +
                             std::to_string(shared_->options.max_body_bytes) +
                             " bytes; send it in parts");
    }
    if (error == http::error::header_limit) {
      return answer(431, "the head of the request is longer than " +
                             std::to_string(shared_->options.max_head_bytes) + " bytes");
    }
    const bool is_parse_error =
        error.category() == make_error_code(http::error::bad_method).category();
    if (!is_parse_error || error == http::error::end_of_stream ||
        error == http::error::partial_message) {
      return Shut();
    }
    answer(400, "cannot read the request as HTTP: " + error.message());
  }

  // Notices while an answer is made that the client has closed the connection: its socket becomes
  // readable, and there is nothing to read. A wait that began for an earlier request may end when
  // the bytes of this one have been read already.
  void WatchForEnd() {
    if (is_watched_) return;
    is_watched_ = true;
    Tcp().socket().async_wait(tcp::socket::wait_read, [self = Self()](const Error& error) {
      self->is_watched_ = false;
      if (error || !self->IsAnswering()) return;
      char byte = 0;
      const ssize_t got =
          recv(self->Tcp().socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got == 0) return self->Shut();
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return self->WatchForEnd();
      // Bytes of the next request, or the polite end of TLS.
      if (got > 0) self->WatchBehindBytes();
    });
  }

  // The same while unread bytes keep the socket readable: looks from time to time whether the
  // client has closed its side.
  void WatchBehindBytes() {
    is_watched_ = true;
    watch_.expires_after(kWatchPause);
    watch_.async_wait([self = Self()](const Error& error) {
      self->is_watched_ = false;
      if (error || !self->IsAnswering()) return;
      pollfd socket{.fd = self->Tcp().socket().native_handle(), .events = POLLRDHUP};
      if (poll(&socket, 1, 0) > 0) return self->Shut();
      self->WatchBehindBytes();
    });
  }
  bool IsAnswering() const {
    return state_ == State::kHandling || state_ == State::kStreaming || state_ == State::kWriting;
  }

  using WholeAnswer = http::response<http::string_body>;

  // Sends what the socket takes; each part has the idle time again.
  void SendSome(std::shared_ptr<WholeAnswer> message,
                std::shared_ptr<http::response_serializer<http::string_body>> serializer) {
    if (serializer->is_done() || (is_head_ && serializer->is_header_done())) {
      return Finish({}, message->need_eof());
    }
    Expire();
    auto& next = *serializer;
    http::async_write_some(
        stream_, next,
        [self = Self(), message = std::move(message), serializer = std::move(serializer)](
            const Error& error, size_t) mutable {
          if (error) return self->Finish(error, true);
          self->Guard([&] { self->SendSome(std::move(message), std::move(serializer)); });
        });
  }

  template <class Then>
  void WriteHeadFirst(Then then) {
    if (serializer_ == nullptr) return then(!failed_);
    Expire();
    auto serializer = std::shared_ptr(std::move(serializer_));
    http::async_write_header(
        stream_, *serializer,
        [self = Self(), serializer, then = std::move(then)](const Error& error, size_t) mutable {
          self->failed_ = self->failed_ || error;
          then(!error);
        });
  }

  void Finish(const Error& error, bool close) {
    if (state_ == State::kClosed) return;
    gone_ = nullptr;
    if (!error && is_unread_) return Linger();
    if (error || close || !keep_alive_) return Shut();
    ReadHead();
  }

  // Takes and drops what the client still sends: if a connection is closed with unread bytes, the
  // client may not see its answer.
  void Linger() {
    Error ignored;
    Tcp().socket().shutdown(tcp::socket::shutdown_send, ignored);
    Tcp().expires_after(std::min<std::chrono::milliseconds>(shared_->options.idle_time, kLinger));
    DropBytes();
  }
  void DropBytes() {
    part_.resize(size_t{64} << 10);
    Tcp().async_read_some(asio::buffer(part_), [self = Self()](const Error& error, size_t) {
      if (self->state_ == State::kClosed) return;
      error ? self->Shut() : self->DropBytes();
    });
  }

  void Shut() {
    if (state_ == State::kClosed) return;
    state_ = State::kClosed;
    failed_ = true;
    Error ignored;
    Tcp().socket().shutdown(tcp::socket::shutdown_both, ignored);
    Tcp().close();
    watch_.cancel();
    if (gone_) std::exchange(gone_, nullptr)();
  }

  const std::shared_ptr<Shared> shared_;
  Stream stream_;
  asio::steady_timer watch_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  State state_ = State::kWaiting;
  unsigned version_ = 11;
  bool keep_alive_ = false;
  bool is_head_ = false;
  bool is_chunked_ = true;
  bool failed_ = false;
  bool is_watched_ = false;
  bool is_unread_ = false;  // the client may still send what is not read
  uint64_t reserved_ = 0;   // its part of Shared::bodies_bytes
  std::string part_;        // that is being sent
  std::unique_ptr<http::response<http::empty_body>> head_;
  std::unique_ptr<http::response_serializer<http::empty_body>>
      serializer_;  // until the head is sent
  std::function<void()> gone_;
};

Status CannotListen(const HttpServer::Options& options, const std::string& why) {
  return Unavailable("cannot listen on " + options.host + ":" + std::to_string(options.port) +
                     ": " + why);
}

// An exception ends what a connection did; nothing refers to the connection then, or its exchange
// closes it.
void Run(asio::io_context* io) {
  while (true) {
    try {
      io->run();
      return;
    } catch (...) {
    }
  }
}

}  // namespace

struct HttpServer::Parts {
  std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  asio::io_context io;
  std::optional<asio::ssl::context> tls;
  // It is closed while it accepts: all of it runs on one strand.
  tcp::acceptor acceptor{asio::make_strand(io)};
  tcp::endpoint endpoint;
  std::vector<std::thread> threads;

  Status LoadTls();
  Status Open();
  Status OpenAcceptor();
  void Accept();
  void Take(tcp::socket socket);
};

Status HttpServer::Parts::LoadTls() {
  const Options& options = shared->options;
  if (options.tls_cert_file.empty()) return Status::Ok();
  tls.emplace(asio::ssl::context::tls_server);
  Error error;
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_tlsv1 |
                       asio::ssl::context::no_tlsv1_1,
                   error);
  if (!error) tls->use_certificate_chain_file(options.tls_cert_file, error);
  if (error) {
    return InvalidArgument("cannot read the certificate in \"" + options.tls_cert_file +
                           "\": " + error.message());
  }
  tls->use_private_key_file(options.tls_key_file, asio::ssl::context::pem, error);
  if (error) {
    return InvalidArgument("cannot use the private key in \"" + options.tls_key_file +
                           "\": " + error.message());
  }
  // OpenSSL resumes no session of a client with a certificate where the server has no context.
  static constexpr unsigned char kSessions[] = "tamis";
  SSL_CTX_set_session_id_context(tls->native_handle(), kSessions, sizeof kSessions - 1);
  if (options.tls_client_ca_file.empty()) return Status::Ok();
  tls->load_verify_file(options.tls_client_ca_file, error);
  if (!error) {
    tls->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert, error);
  }
  if (error) {
    return InvalidArgument("cannot read the authorities of clients in \"" +
                           options.tls_client_ca_file + "\": " + error.message());
  }
  return Status::Ok();
}

Status HttpServer::Parts::Open() {
  TAMIS_RETURN_IF_ERROR(OpenAcceptor());
  Error ignored;
  endpoint = acceptor.local_endpoint(ignored);
  return Status::Ok();
}

Status HttpServer::Parts::OpenAcceptor() {
  const Options& options = shared->options;
  Error error;
  if (options.socket >= 0) {
    acceptor.assign(options.host.find(':') == std::string::npos ? tcp::v4() : tcp::v6(),
                    options.socket, error);
    return error ? Unavailable("cannot listen on the socket of the service manager: " +
                               error.message())
                 : Status::Ok();
  }
  const auto address = asio::ip::make_address(options.host, error);
  if (error) return CannotListen(options, "it is no address; give one, such as 127.0.0.1 or ::");
  const tcp::endpoint wanted(address, options.port);
  acceptor.open(wanted.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(wanted, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error ? CannotListen(options, error.message()) : Status::Ok();
}

void HttpServer::Parts::Accept() {
  acceptor.async_accept(asio::make_strand(io), [this](const Error& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted || shared->draining) return;
    if (error) {
      // No file descriptor is free, for one: try again when a connection may have ended.
      auto timer = std::make_shared<asio::steady_timer>(acceptor.get_executor(),
                                                        std::chrono::milliseconds(100));
      timer->async_wait([this, timer](const Error&) { Accept(); });
      return;
    }
    Take(std::move(socket));
    Accept();
  });
}

void HttpServer::Parts::Take(tcp::socket socket) {
  {
    std::lock_guard lock(shared->mutex);
    if (shared->connections.size() >= shared->options.max_connections) return;  // closes it
  }
  Error ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  if (tls) {
    std::make_shared<HttpConnection<beast::ssl_stream<beast::tcp_stream>>>(shared,
                                                                           std::move(socket), *tls)
        ->Run();
  } else {
    std::make_shared<HttpConnection<beast::tcp_stream>>(shared, std::move(socket))->Run();
  }
}

Result<std::unique_ptr<HttpServer>> HttpServer::Listen(const Options& options) {
  auto parts = std::make_unique<Parts>();
  parts->shared->options = options;
  TAMIS_RETURN_IF_ERROR(parts->LoadTls());
  TAMIS_RETURN_IF_ERROR(parts->Open());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(parts)));
}

HttpServer::HttpServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

HttpServer::~HttpServer() { Close(); }

void HttpServer::Serve(Handler handler, Admit admit) {
  parts_->shared->admit = std::move(admit);
  parts_->shared->handler = std::move(handler);
  parts_->Accept();
  for (int i = 0; i < std::max(1, parts_->shared->options.threads); ++i) {
    parts_->threads.emplace_back([io = &parts_->io] { Run(io); });
  }
}

void HttpServer::Close() {
  Drain(std::chrono::milliseconds(0));
  for (const auto& connection : parts_->shared->All()) connection->Close();
  // They end when the acceptor and all connections are closed and have called back.
  for (std::thread& thread : parts_->threads) thread.join();
  parts_->threads.clear();
}

std::string HttpServer::host() const { return parts_->endpoint.address().to_string(); }

uint16_t HttpServer::port() const { return parts_->endpoint.port(); }

uint64_t HttpServer::connections() const {
  std::lock_guard lock(parts_->shared->mutex);
  return parts_->shared->connections.size();
}

bool HttpServer::Drain(std::chrono::milliseconds patience) {
  Shared& shared = *parts_->shared;
  if (!shared.draining.exchange(true)) {
    asio::dispatch(parts_->acceptor.get_executor(), [this] {
      Error ignored;
      parts_->acceptor.close(ignored);
    });
  }
  for (const auto& connection : shared.All()) connection->Drain();
  std::unique_lock lock(shared.mutex);
  return shared.ended.wait_for(lock, patience, [&] { return shared.connections.empty(); });
}

}  // namespace tamis::server
