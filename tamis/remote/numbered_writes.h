// NumberedWrites: sends requests to write so that at most one server carries out each, and once,
// although a proxy may repeat any of them to the same server or to another one.
//
// A request has a number and names the server process that it is for. That process takes or refuses
// a number once; other processes refuse the request. A refusal by another process does not tell
// whether the named one has carried the request out, since a proxy may have sent it to both. So the
// client withdraws the number at the named process first, and then sends the writes under a new
// number to the process that answered. Requests that withdraw a number may be repeated.
//
// The client assumes that all kept connections lead to the process that answered last. It asks for
// the process again when a connection was begun since, so that a server that was restarted refuses
// nothing.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "tamis/base/answers.h"
#include "tamis/remote/http_client.h"
#include "tamis/remote/remote.pb.h"

namespace tamis {

class NumberedWrites {
 public:
  NumberedWrites(std::shared_ptr<HttpClient> client, Executor* executor);

  // Sends the writes to `path` until a server has taken or refused them, and returns one result for
  // each. Fills in their number and process. Blocks.
  //
  // kDeadlineExceeded: the writes may have been carried out. Any other failure: they were not.
  Result<pb::TableWriteResults> Send(const std::string& path, pb::TableWrites* writes,
                                     const Wait& wait);

 private:
  class Request;
  struct Known {
    uint64_t process = 0;      // the one that answered last; 0: not known
    uint64_t connections = 0;  // that the client had begun then
  };
  // 0 when a connection may lead to another process.
  uint64_t process();
  void SetProcess(uint64_t process);

  const std::shared_ptr<HttpClient> client_;
  Executor* const executor_;
  const uint64_t client_number_;
  std::atomic<uint64_t> next_number_ = 1;
  std::mutex mutex_;
  Known known_;
};

}  // namespace tamis
