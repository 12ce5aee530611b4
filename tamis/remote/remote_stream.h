// RemoteStream: the parts of a streamed answer of a server, as messages. The request is sent again
// while nothing of the answer was used, and the failure is one that may mend.
//
// Threads: exclusive access.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "tamis/base/answers.h"
#include "tamis/query/retry_pauses.h"
#include "tamis/remote/http_client.h"
#include "tamis/remote/messages.h"

namespace tamis {

class RemoteStream {
 public:
  // `body`: makes the request, for the time that is left.
  struct Options {
    std::string path;
    std::function<std::string(Duration left)> body;
    Duration timeout{};
    const std::atomic<bool>* cancelled = nullptr;
  };
  RemoteStream(std::shared_ptr<HttpClient> client, Executor* executor, Options options);

  // Fills the next part; false after the last one. Part is TableSearchPart or TableAggregatePart.
  template <class Part>
  Result<bool> Next(Part* part);
  // Parts of the answer were used: the request is not sent again.
  void Used() { used_ = true; }

 private:
  Status Receive();
  Status Failed(const Status& status);
  void Begin();

  const std::shared_ptr<HttpClient> client_;
  Executor* const executor_;
  const Options options_;
  const Time deadline_;
  Backoff pauses_ = kRetryPauses;
  bool used_ = false;
  bool complete_ = false;
  StreamParts parts_;
  std::optional<Answers<std::variant<std::string, HttpClient::Answer>>> answers_;
  std::unique_ptr<HttpClient::Transfer> transfer_;  // null: none was begun
};

template <class Part>
Result<bool> RemoteStream::Next(Part* part) {
  while (!complete_) {
    part->Clear();
    auto is_whole = transfer_ != nullptr ? parts_.Next(part) : Result<bool>(false);
    if (!is_whole.ok()) return is_whole.status();
    if (!*is_whole) {
      TAMIS_RETURN_IF_ERROR(Receive());
      continue;
    }
    if (part->has_error()) {
      TAMIS_RETURN_IF_ERROR(Failed(FromMessage(part->error())));
      continue;
    }
    complete_ = part->complete();
    if (complete_) transfer_.reset();
    return true;
  }
  return false;
}

}  // namespace tamis
