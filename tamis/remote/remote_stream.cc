#include "tamis/remote/remote_stream.h"

#include <utility>

#include "tamis/remote/remote_answer.h"

namespace tamis {
namespace {

// The server ends a search when its time is over, and says why.
constexpr Duration kStreamMargin = std::chrono::seconds(2);

}  // namespace

RemoteStream::RemoteStream(std::shared_ptr<HttpClient> client, Executor* executor, Options options)
    : client_(std::move(client)),
      executor_(executor),
      options_(std::move(options)),
      deadline_(executor->Now() + options_.timeout) {}

void RemoteStream::Begin() {
  parts_ = {};
  answers_.emplace(executor_);
  auto to = answers_->To(0);
  transfer_ = client_->Post({.path = options_.path,
                             .content_type = std::string(kRemoteContentType),
                             .body = options_.body(deadline_ - executor_->Now()),
                             .bytes = [to](std::string bytes) { to(std::move(bytes)); }},
                            [to](HttpClient::Answer answer) { to(std::move(answer)); });
}

// Takes in more of the answer.
Status RemoteStream::Receive() {
  if (transfer_ == nullptr) Begin();
  const Wait wait{.deadline = deadline_ + kStreamMargin, .cancelled = options_.cancelled};
  auto answer = answers_->Next(wait);
  if (!answer.has_value()) return wait.Failure();
  if (const auto* bytes = std::get_if<std::string>(&answer->value)) {
    parts_.Append(*bytes);
    transfer_->Taken(bytes->size());
    return Status::Ok();
  }
  const Status status =
      StatusOf(*client_, std::get<HttpClient::Answer>(answer->value), /*changes=*/false);
  return Failed(status.ok() ? Unavailable("the answer of " + client_->url() + " was cut") : status);
}

// Ok: the request is sent again.
Status RemoteStream::Failed(const Status& status) {
  transfer_.reset();
  const bool mends =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kBusy;
  if (mends && used_) {
    return status.WithContext("the answer ended before all rows had come; run it again");
  }
  const Time next = executor_->Now() + pauses_.Next();
  if (!mends || next >= deadline_) return status;
  const Wait wait{.deadline = next, .cancelled = options_.cancelled};
  Answers<Status>(executor_).Next(wait);
  return wait.IsCancelled() ? wait.Failure() : Status::Ok();
}

}  // namespace tamis
