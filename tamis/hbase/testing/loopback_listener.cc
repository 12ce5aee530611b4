#include "tamis/hbase/testing/loopback_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace tamis::hbase {

LoopbackListener::LoopbackListener(std::function<void(int socket)> serve)
    : serve_(std::move(serve)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(where);
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&where), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&where), &size) != 0) {
    std::abort();
  }
  address_ = {"127.0.0.1", ntohs(where.sin_port)};
  thread_ = std::thread([this] {
    while (true) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      serve_(socket);
    }
  });
}

LoopbackListener::~LoopbackListener() {
  ::shutdown(listener_, SHUT_RDWR);
  thread_.join();
  ::close(listener_);
}

}  // namespace tamis::hbase
