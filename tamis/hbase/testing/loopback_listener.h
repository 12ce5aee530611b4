// A listener on a free port of this machine.
#pragma once

#include <functional>
#include <thread>

#include "tamis/hbase/server_name.h"

namespace tamis::hbase {

class LoopbackListener {
 public:
  // `serve` gets the socket of each connection, on the listener's thread, and owns it.
  explicit LoopbackListener(std::function<void(int socket)> serve);
  // Waits for a running `serve`.
  ~LoopbackListener();
  LoopbackListener(const LoopbackListener&) = delete;
  LoopbackListener& operator=(const LoopbackListener&) = delete;

  const Address& address() const { return address_; }

 private:
  const std::function<void(int socket)> serve_;
  int listener_ = -1;
  Address address_;
  std::thread thread_;
};

}  // namespace tamis::hbase
