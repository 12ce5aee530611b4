#include "tamis/hbase/region_call.h"

#include "tamis/hbase/printable.h"
#include "tamis/hbase/refusals.h"
#include "tamis/hbase/retry_pauses.h"
#include "tamis/hbase/session.h"

namespace tamis::hbase {
namespace {

std::string What(const RegionCall& call) {
  return call.method + " of row " + Printable(call.row) + " of table " + Printable(call.table);
}

}  // namespace

Status After(const Status& missing, const Status& last_call) {
  return {missing.code(), missing.message() + "; the call before: " + last_call.message()};
}

Status MayHaveRun(const std::string& what, const Status& why) {
  return DeadlineExceeded(what + " may have been carried out: " + why.message());
}

Task<Result<Reply>> CallRegion(Session& session, RegionCall call) {
  Backoff backoff = kRetryPauses;
  int unknown = 0;
  std::optional<ServerName> may_have_run;
  Refusals refusals;
  Status last = Unavailable("no time left");
  bool called = false;
  // The status of the last try does not prove that earlier tries failed.
  const auto end = [&](const Status& why) {
    return may_have_run ? MayHaveRun(What(call), why) : why.WithContext(What(call));
  };
  while (!session.closed()) {
    if (Clock::now() >= call.deadline) co_return end(last);
    RegionPtr target = session.locator.Known(call.table, call.row);
    if (!target) {
      auto region = co_await session.locator.Holding(call.table, call.row, call.deadline);
      if (!region.ok()) {
        if (may_have_run) co_return end(last);
        co_return called ? After(region.status(), last) : region.status();
      }
      target = *std::move(region);
    }
    if (may_have_run && call.repeat == Repeat::kSameServer && target->server != *may_have_run) {
      co_return DeadlineExceeded(What(call) + " may have been carried out by " +
                                 may_have_run->ToString() + ", and " + target->server.ToString() +
                                 ", which has the region now, cannot know: " + last.message());
    }
    called = true;
    Call one = call.make(*target);
    one.method = call.method;
    one.priority = call.priority;
    one.deadline = call.call_timeout ? std::min(call.deadline, Clock::now() + *call.call_timeout)
                                     : session.CallDeadline(call.deadline);
    Reply reply = co_await session.Send(
        session.channels.To(target->server.address, "ClientService", call.lane), std::move(one));
    if (reply.outcome == Reply::Outcome::kAnswer && call.inner) {
      if (auto inside = call.inner(reply)) {
        reply.outcome = Reply::Outcome::kException;
        reply.exception = std::move(*inside);
      }
    }
    switch (reply.outcome) {
      case Reply::Outcome::kAnswer:
        co_return reply;
      case Reply::Outcome::kNotSent:
        last = std::move(reply.status);
        if (last.code() == StatusCode::kInvalidArgument) co_return end(last);
        if (last.code() == StatusCode::kBusy) {
          // kBusy comes from the client's own queue for this server, not from the server.
          co_await session.SleepUntil(
              std::min(call.deadline, Clock::now() + backoff.Next(session.random)));
          continue;
        }
        if (refusals.IsFinal(target->server, last)) co_return end(last);
        session.locator.Suspect(target);
        continue;
      case Reply::Outcome::kUnknown:
        last = std::move(reply.status);
        if (call.repeat != Repeat::kReads) may_have_run = target->server;
        if (call.repeat == Repeat::kNever) co_return end(last);
        // The answer would exceed the limit again.
        if (last.code() == StatusCode::kResourceExhausted) co_return end(last);
        session.locator.Suspect(target);
        continue;
      case Reply::Outcome::kException:
        break;
    }
    last = reply.exception.ToStatus().WithContext(target->server.address.ToString());
    if (call.repeat != Repeat::kReads && reply.exception.may_have_run()) {
      may_have_run = target->server;
    }
    switch (reply.exception.retry_action()) {
      case RetryAction::kRelocate:
        session.locator.Refused(target, reply.exception);
        continue;
      case RetryAction::kElsewhere:
        if (call.repeat == Repeat::kSameServer || call.repeat == Repeat::kNever) {
          co_return end(last);
        }
        session.locator.Suspect(target);
        co_await session.SleepUntil(
            std::min(call.deadline, Clock::now() + backoff.Next(session.random)));
        continue;
      case RetryAction::kUnknown:
        if (call.repeat == Repeat::kSameServer || call.repeat == Repeat::kNever) break;
        if (++unknown == kTriesOfUnknown) break;
        [[fallthrough]];
      case RetryAction::kBackOff:
        co_await session.SleepUntil(
            std::min(call.deadline, Clock::now() + backoff.Next(session.random)));
        continue;
      case RetryAction::kReopenScanner:
      case RetryAction::kFail:
        break;
    }
    co_return end(last);
  }
  if (may_have_run) co_return end(Cancelled("closed"));
  co_return Cancelled("the client was closed");
}

}  // namespace tamis::hbase
