#include "tamis/hbase/session.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace tamis::hbase {
namespace {

std::string UserOfProcess() {
  // Hadoop's own clients use this variable, too.
  const char* named = std::getenv("HADOOP_USER_NAME");
  if (named != nullptr && *named != '\0') return named;
  char buffer[4096];
  passwd entry;
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(geteuid());
}

Channel::Options ChannelOptions(const ClientOptions& options, std::shared_ptr<TlsContext> tls,
                                std::shared_ptr<SaslLogin> login) {
  return {.connection = {.service = {},
                         .user = options.user.empty() ? UserOfProcess() : options.user,
                         .tls = std::move(tls),
                         .login = std::move(login),
                         .way = options.way,
                         .connect_timeout = options.connect_timeout,
                         .handshake_timeout = options.handshake_timeout,
                         .silence = options.call_timeout,
                         .max_frame_bytes = options.max_answer_bytes,
                         .max_request_bytes = options.max_request_bytes},
          .max_window = static_cast<double>(options.window)};
}

}  // namespace

Session::Session(boost::asio::io_context& io_context, ClientOptions client_options,
                 std::shared_ptr<TlsContext> tls_context, std::shared_ptr<SaslLogin> login)
    : io(io_context),
      options(std::move(client_options)),
      tls(std::move(tls_context)),
      random(SeedFromSystem()),
      nonce_group(random() | 1),
      timers(io),
      channels(io, timers, ChannelOptions(options, tls, std::move(login))),
      registry(*this),
      locator(*this) {}

void Session::Close() {
  closed_ = true;
  channels.Close(Cancelled("the client was closed"));
  timers.Close();
}

Task<bool> Session::SleepUntil(Deadline when) {
  return Suspended<bool>([this, when](std::function<void(bool)> resume) {
    timers.Add(when, [resume = std::move(resume)] { resume(true); });
  });
}

Task<Reply> Session::Send(Channel& channel, Call call) {
  auto shared = std::make_shared<Call>(std::move(call));
  return Suspended<Reply>([&channel, shared](Connection::Done resume) {
    channel.Send(std::move(*shared), std::move(resume));
  });
}

Task<std::vector<Reply>> Session::SendAll(std::vector<std::pair<Channel*, Call>> calls) {
  struct All {
    std::vector<std::pair<Channel*, Call>> calls;
    std::vector<Reply> replies;
    size_t missing = 0;
  };
  auto all = std::make_shared<All>();
  all->missing = calls.size();
  all->replies.resize(calls.size());
  all->calls = std::move(calls);
  if (all->missing == 0) co_return std::vector<Reply>();
  // g++ 12 destroys a closure twice if it is created inside of a co_await.
  Task<bool> sent = Suspended<bool>([all](std::function<void(bool)> resume) {
    for (size_t i = 0; i < all->calls.size(); ++i) {
      all->calls[i].first->Send(std::move(all->calls[i].second), [all, i, resume](Reply reply) {
        all->replies[i] = std::move(reply);
        if (--all->missing == 0) resume(true);
      });
    }
  });
  co_await std::move(sent);
  co_return std::move(all->replies);
}

}  // namespace tamis::hbase
