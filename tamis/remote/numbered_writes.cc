#include "tamis/remote/numbered_writes.h"

#include <utility>

#include "tamis/base/backoff.h"
#include "tamis/base/random.h"
#include "tamis/remote/messages.h"
#include "tamis/remote/remote_answer.h"

namespace tamis {
namespace {

// The server has as much time as its client, and then some for its answer.
constexpr Duration kMargin = std::chrono::seconds(2);
// A balancer between ten servers misses one of them so many times in one of 70 cases.
constexpr int kMostWithdrawals = 40;

bool IsTransient(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kBusy;
}

}  // namespace

// The attempts at one request.
class NumberedWrites::Request {
 public:
  Request(NumberedWrites* owner, const std::string& path, pb::TableWrites* writes, const Wait& wait)
      : owner_(owner), path_(path), writes_(writes), wait_(wait) {}

  Result<pb::TableWriteResults> Run() {
    writes_->set_client(owner_->client_number_);
    Renumber(owner_->process());
    while (true) {
      if (wait_.IsCancelled()) return NotTaken(Cancelled("cancelled before the write was taken"));
      auto results = Attempt();
      if (results.ok() || results.status().code() == StatusCode::kDeadlineExceeded) return results;
      const Time next = owner_->executor_->Now() + (again_at_once_ ? Duration(0) : pauses_.Next());
      if (!IsTransient(results.status()) || next >= wait_.deadline) {
        return NotTaken(results.status());
      }
      if (!std::exchange(again_at_once_, false)) Pause(next);
    }
  }

 private:
  void Renumber(uint64_t process) {
    writes_->set_number(owner_->next_number_++);
    writes_->set_process(process);
    may_be_known_ = false;
  }

  // kDeadlineExceeded: the writes may stand. After another failure, no server has begun them unless
  // a proxy has repeated the request.
  Result<pb::TableWriteResults> Attempt() {
    bool may_connect = may_be_known_ || std::exchange(process_has_answered_, false);
    if (writes_->process() == 0) {
      TAMIS_ASSIGN_OR_RETURN(const pb::WriteNumberState state, Withdraw());
      owner_->SetProcess(state.process());
      writes_->set_process(state.process());
      may_connect = true;
    }
    const auto answer = Post(path_, *writes_, {.repeatable = false, .may_connect = may_connect});
    if (!answer) {
      return DeadlineExceeded(std::string(wait_.IsCancelled() ? "cancelled" : "out of time") +
                              " before the server answered; the write may have been carried out");
    }
    if (!answer->failure.ok() && !answer->was_sent) {
      if (!may_be_known_) writes_->set_process(0);
      again_at_once_ = !may_connect;
      return answer->failure;
    }
    may_be_known_ = true;
    const auto refusing = RefusingProcessOf(*answer);
    if (refusing == writes_->process()) {
      Renumber(0);  // the number is used up
    } else if (refusing || (answer->failure.ok() && answer->status == 421)) {
      return Redirect(refusing.value_or(0));
    }
    TAMIS_RETURN_IF_ERROR(StatusOf(*owner_->client_, *answer, /*changes=*/true));
    pb::TableWriteResults results;
    if (!results.ParseFromString(answer->body) ||
        results.results_size() != writes_->mutations_size()) {
      return DeadlineExceeded(
          "the server's answer is damaged; the write may have been carried out");
    }
    return results;
  }

  // The writes are for another process from now on; 0: one that is not known.
  Status Redirect(uint64_t process) {
    if (!IsWithdrawn()) {
      return DeadlineExceeded(
          "another server answered than the one that the write was for, and that one cannot be "
          "reached or has the write already; it may have been carried out");
    }
    owner_->SetProcess(process);
    Renumber(process);
    process_has_answered_ = true;
    again_at_once_ = true;
    return Unavailable("the servers behind " + owner_->client_->url() +
                       " take turns, so that none of them took the write");
  }

  // The failure, if it is certain that no server has carried out the writes.
  Status NotTaken(const Status& status) {
    const bool is_refused = !IsTransient(status) && status.code() != StatusCode::kCancelled;
    if (!may_be_known_ || is_refused || IsWithdrawn()) return status;
    return DeadlineExceeded(
        status.message() + "; a proxy may have sent the write twice: it may have been carried out");
  }

  // Whether the process that the request names has not taken it, and never will.
  bool IsWithdrawn() {
    Backoff pauses(std::chrono::milliseconds(1), std::chrono::milliseconds(50));
    for (int i = 0; i < kMostWithdrawals && !wait_.IsCancelled(); ++i) {
      const auto state = Withdraw();
      if (state.ok() && state->process() == writes_->process()) return state->withdrawn();
      Pause(owner_->executor_->Now() + pauses.Next());
    }
    return false;
  }

  Result<pb::WriteNumberState> Withdraw() {
    pb::WithdrawWrite request;
    request.set_process(writes_->process());
    request.set_client(writes_->client());
    request.set_number(writes_->number());
    const auto answer = Post("/v1/writes/withdraw", request, {});
    if (!answer) return Unavailable(owner_->client_->url() + " does not answer");
    TAMIS_RETURN_IF_ERROR(StatusOf(*owner_->client_, *answer, /*changes=*/false));
    pb::WriteNumberState state;
    if (!state.ParseFromString(answer->body) || state.process() == 0) {
      return Unavailable("the answer of " + owner_->client_->url() + " was cut");
    }
    return state;
  }

  struct PostOptions {
    bool repeatable = true;
    bool may_connect = true;
  };
  // nullopt: the wait is over.
  std::optional<HttpClient::Answer> Post(const std::string& path,
                                         const google::protobuf::MessageLite& message,
                                         const PostOptions& options) {
    Answers<HttpClient::Answer> answers(owner_->executor_);
    const auto transfer = owner_->client_->Post({.path = path,
                                                 .content_type = std::string(kRemoteContentType),
                                                 .body = message.SerializeAsString(),
                                                 .repeatable = options.repeatable,
                                                 .kept_connection_only = !options.may_connect},
                                                answers.To(0));
    auto answer =
        answers.Next({.deadline = wait_.deadline + kMargin, .cancelled = wait_.cancelled});
    if (!answer) return std::nullopt;
    return std::move(answer->value);
  }

  void Pause(Time until) {
    Answers<Status>(owner_->executor_).Next({.deadline = until, .cancelled = wait_.cancelled});
  }

  NumberedWrites* const owner_;
  const std::string& path_;
  pb::TableWrites* const writes_;
  const Wait wait_;
  Backoff pauses_{std::chrono::milliseconds(20), std::chrono::seconds(1)};
  bool may_be_known_ = false;          // a server may have the request with this number
  bool process_has_answered_ = false;  // the one that the request names, just now
  bool again_at_once_ = false;
};

NumberedWrites::NumberedWrites(std::shared_ptr<HttpClient> client, Executor* executor)
    : client_(std::move(client)), executor_(executor), client_number_(SeedFromSystem()) {}

uint64_t NumberedWrites::process() {
  const std::lock_guard lock(mutex_);
  return known_.connections == client_->connections() ? known_.process : 0;
}

void NumberedWrites::SetProcess(uint64_t process) {
  const uint64_t connections = client_->connections();
  const std::lock_guard lock(mutex_);
  known_ = {.process = process, .connections = connections};
}

Result<pb::TableWriteResults> NumberedWrites::Send(const std::string& path, pb::TableWrites* writes,
                                                   const Wait& wait) {
  return Request(this, path, writes, wait).Run();
}

}  // namespace tamis
