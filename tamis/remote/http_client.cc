#include "tamis/remote/http_client.h"

#include <curl/curl.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace tamis {
namespace {

constexpr size_t kMostWaitingBytes = size_t{1}
                                     << 20;  // bytes of pieces that the caller has not taken
constexpr size_t kMostBodyBytes = size_t{256} << 20;  // bytes of an answer that is given whole
constexpr int kLongestPollMs = 60'000;
constexpr long kMostConnections = 64;  // that are kept

// One request. Members without a comment belong to the thread of the client.
struct State {
  HttpClient::Request request;
  HttpClient::Ended ended;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  char error[CURL_ERROR_SIZE] = {};
  std::atomic<uint64_t>* connections = nullptr;  // the client's counter
  size_t sent = 0;                               // bytes of the body, given to libcurl
  std::string body;
  bool too_long = false;
  std::atomic<size_t> waiting = 0;  // bytes that were given and not taken
  std::atomic<bool> paused = false;
  std::mutex mutex;      // held while a callback runs
  bool dropped = false;  // the caller wants nothing more; guarded by the mutex

  ~State() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
};
using StatePtr = std::shared_ptr<State>;

size_t Read(char* buffer, size_t size, size_t count, void* argument) noexcept {
  auto* const state = static_cast<State*>(argument);
  const std::string& body = state->request.body;
  const size_t length = std::min(size * count, body.size() - state->sent);
  std::memcpy(buffer, body.data() + state->sent, length);
  state->sent += length;
  return length;
}

// Sockets are opened here, and counted.
curl_socket_t OpenSocket(void* argument, curlsocktype, curl_sockaddr* address) noexcept {
  auto* const state = static_cast<State*>(argument);
  if (state->request.kept_connection_only) return CURL_SOCKET_BAD;
  ++*state->connections;
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

int StatusOf(CURL* easy) {
  long status = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

size_t TakeBytes(char* bytes, size_t size, size_t count, void* argument) noexcept {
  auto* const state = static_cast<State*>(argument);
  const size_t length = size * count;
  try {
    if (state->request.bytes && StatusOf(state->easy) == 200) {
      if (state->waiting > kMostWaitingBytes) {
        state->paused = true;
        // Bytes taken between the two lines would not wake this thread.
        if (state->waiting > kMostWaitingBytes) return CURL_WRITEFUNC_PAUSE;
        state->paused = false;
      }
      const std::lock_guard lock(state->mutex);
      if (state->dropped) return 0;
      state->waiting += length;
      state->request.bytes(std::string(bytes, length));
    } else {
      state->too_long = state->body.size() + length > kMostBodyBytes;
      if (state->too_long) return 0;
      state->body.append(bytes, length);
    }
  } catch (...) {
    return 0;  // ends the request
  }
  return length;
}

// A failure that another attempt would meet again.
bool IsLasting(CURLcode code) {
  return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
         code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
         code == CURLE_SSL_CERTPROBLEM;
}

}  // namespace

// The state that the client, its thread and the transfers share.
class HttpClient::Core : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(Options options) : options_(std::move(options)), multi_(curl_multi_init()) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kMostConnections);
  }
  ~Core() { curl_multi_cleanup(multi_); }

  void Start() {
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    Enqueue([this] { stopping_ = true; });
    thread_.join();
  }

  const Options& options() const { return options_; }
  uint64_t connections() const { return connections_; }

  void Enqueue(std::function<void()> command) {
    {
      const std::lock_guard lock(mutex_);
      commands_.push_back(std::move(command));
    }
    curl_multi_wakeup(multi_);
  }

  StatePtr Begin(Request request, Ended ended) {
    auto state = std::make_shared<State>();
    state->request = std::move(request);
    state->ended = std::move(ended);
    Enqueue([this, state] { Add(state); });
    return state;
  }

  void Add(const StatePtr& state) {
    if (stopping_) return;
    Prepare(state.get());
    running_.insert(state);
    curl_multi_add_handle(multi_, state->easy);
  }
  void Drop(const StatePtr& state) {
    if (running_.erase(state) == 0) return;
    curl_multi_remove_handle(multi_, state->easy);
  }
  void Resume(const StatePtr& state) {
    if (!running_.contains(state) || !state->paused.exchange(false)) return;
    curl_easy_pause(state->easy, CURLPAUSE_CONT);
  }

 private:
  void Prepare(State* state);
  void Run();
  void Finish(CURL* easy, CURLcode code);
  Answer AnswerOf(State* state, CURLcode code) const;

  const Options options_;
  CURLM* const multi_;
  std::atomic<uint64_t> connections_ = 0;  // that were begun
  std::mutex mutex_;
  std::deque<std::function<void()>> commands_;  // guarded by the mutex
  std::thread thread_;
  // These belong to the thread:
  bool stopping_ = false;
  std::set<StatePtr> running_;
};

void HttpClient::Core::Prepare(State* state) {
  CURL* const easy = state->easy = curl_easy_init();
  const std::string url = options_.url + state->request.path;
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PRIVATE, state);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, state->error);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 10L);
  curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 5L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options_.connect_timeout / std::chrono::milliseconds(1)));
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                   static_cast<long>(state->request.timeout / std::chrono::milliseconds(1)));
  if (!options_.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_file.c_str());
  if (!options_.cert_file.empty()) {
    const std::string& key = options_.key_file.empty() ? options_.cert_file : options_.key_file;
    curl_easy_setopt(easy, CURLOPT_SSLCERT, options_.cert_file.c_str());
    curl_easy_setopt(easy, CURLOPT_SSLKEY, key.c_str());
  }
  state->connections = &connections_;
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, OpenSocket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, state);
  const auto header = [state](const std::string& line) {
    state->headers = curl_slist_append(state->headers, line.c_str());
  };
  header("Content-Type: " + state->request.content_type);
  header("Expect:");  // the server need not permit the body first
  const TraceContext& trace = state->request.trace;
  if (!trace.empty()) header("traceparent: " + trace.parent);
  if (!trace.state.empty()) header("tracestate: " + trace.state);
  if (!options_.token.empty()) header("Authorization: Bearer " + options_.token);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, state->headers);
  curl_easy_setopt(easy, CURLOPT_POST, 1L);
  curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                   static_cast<curl_off_t>(state->request.body.size()));
  if (state->request.repeatable) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, state->request.body.data());
  } else {
    // Libcurl cannot go back in what a callback gave, so that it does not send any of it twice.
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, Read);
    curl_easy_setopt(easy, CURLOPT_READDATA, state);
  }
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, TakeBytes);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, state);
}

void HttpClient::Core::Run() {
  // Signals are for the threads of the program.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  while (true) {
    std::deque<std::function<void()>> commands;
    {
      const std::lock_guard lock(mutex_);
      commands.swap(commands_);
    }
    for (const auto& command : commands) command();
    commands.clear();
    if (stopping_) break;
    int running = 0;
    curl_multi_perform(multi_, &running);
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
      if (message->msg == CURLMSG_DONE) Finish(message->easy_handle, message->data.result);
    }
    curl_multi_poll(multi_, nullptr, 0, kLongestPollMs, nullptr);
  }
  while (!running_.empty()) Finish((*running_.begin())->easy, CURLE_ABORTED_BY_CALLBACK);
}

void HttpClient::Core::Finish(CURL* easy, CURLcode code) {
  State* raw = nullptr;
  curl_easy_getinfo(easy, CURLINFO_PRIVATE, &raw);
  const auto found = std::ranges::find(running_, raw, &StatePtr::get);
  if (found == running_.end()) return;
  const StatePtr state = *found;
  Answer answer = AnswerOf(state.get(), code);
  Drop(state);
  const std::lock_guard lock(state->mutex);
  if (!state->dropped) state->ended(std::move(answer));
}

HttpClient::Answer HttpClient::Core::AnswerOf(State* state, CURLcode code) const {
  Answer answer{.status = StatusOf(state->easy), .body = std::move(state->body)};
  if (code == CURLE_OK) return answer;
  curl_off_t uploaded = 0;
  curl_easy_getinfo(state->easy, CURLINFO_SIZE_UPLOAD_T, &uploaded);
  answer.was_sent = uploaded > 0 || state->sent > 0;
  const std::string why = state->too_long           ? "the answer is too long"
                          : state->error[0] != '\0' ? state->error
                                                    : curl_easy_strerror(code);
  const std::string message = "no whole answer from " + options_.url + ": " + why;
  answer.failure =
      IsLasting(code) || state->too_long ? FailedPrecondition(message) : Unavailable(message);
  return answer;
}

HttpClient::Transfer::~Transfer() {
  const auto state = std::static_pointer_cast<State>(state_);
  {
    const std::lock_guard lock(state->mutex);
    state->dropped = true;
  }
  core_->Enqueue([core = core_.get(), state] { core->Drop(state); });
}

void HttpClient::Transfer::Taken(size_t bytes) {
  const auto state = std::static_pointer_cast<State>(state_);
  state->waiting -= bytes;
  if (!state->paused || state->waiting > kMostWaitingBytes / 2) return;
  core_->Enqueue([core = core_.get(), state] { core->Resume(state); });
}

Result<std::shared_ptr<HttpClient>> HttpClient::Make(const Options& options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) return Internal(std::string("libcurl: ") + curl_easy_strerror(ready));
  auto core = std::make_shared<Core>(options);
  core->Start();
  return std::shared_ptr<HttpClient>(new HttpClient(std::move(core)));
}

HttpClient::~HttpClient() { core_->Stop(); }

uint64_t HttpClient::connections() const { return core_->connections(); }

const std::string& HttpClient::url() const { return core_->options().url; }

std::unique_ptr<HttpClient::Transfer> HttpClient::Post(Request request, Ended ended) {
  std::unique_ptr<Transfer> transfer(new Transfer);
  transfer->core_ = core_;
  transfer->state_ = core_->Begin(std::move(request), std::move(ended));
  return transfer;
}

void HttpClient::PostToTheEnd(Request request, Ended ended) {
  core_->Begin(std::move(request), std::move(ended));
}

}  // namespace tamis
