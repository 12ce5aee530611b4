#include "tamis/hbase/region_call.h"

#include "tamis/hbase/backoff.h"
#include "tamis/hbase/printable.h"
#include "tamis/hbase/refusals.h"
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

Task<Result<Reply>> CallRegion(Session& session, RegionCall call) {
  Backoff backoff;
  int unknown = 0;
  std::optional<ServerName> may_have_run;
  Refusals refusals;
  Status last = Unavailable("no time left");
  bool called = false;
  while (!session.closed()) {
    if (Clock::now() >= call.deadline) {
      if (may_have_run) {
        co_return DeadlineExceeded(What(call) + " may have been carried out: " + last.message());
      }
      co_return last.WithContext(What(call));
    }
    RegionPtr target = session.locator.Known(call.table, call.row);
    if (!target) {
      auto region = co_await session.locator.Holding(call.table, call.row, call.deadline);
      if (!region.ok()) {
        if (may_have_run) {
          co_return DeadlineExceeded(What(call) + " may have been carried out: " + last.message());
        }
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
        if (last.code() == StatusCode::kInvalidArgument) co_return last.WithContext(What(call));
        if (last.code() == StatusCode::kBusy) continue;  // it waited, and time is over
        if (refusals.IsFinal(target->server, last)) {
          if (!may_have_run) co_return last.WithContext(What(call));
          co_return DeadlineExceeded(What(call) + " may have been carried out: " + last.message());
        }
        session.locator.Suspect(target);
        continue;
      case Reply::Outcome::kUnknown:
        last = std::move(reply.status);
        if (call.repeat == Repeat::kNever) {
          co_return DeadlineExceeded(What(call) + " may have been carried out: " + last.message());
        }
        if (call.repeat == Repeat::kSameServer) may_have_run = target->server;
        session.locator.Suspect(target);
        continue;
      case Reply::Outcome::kException:
        break;
    }
    last = reply.exception.ToStatus().WithContext(target->server.address.ToString());
    switch (reply.exception.remedy()) {
      case Remedy::kRelocate:
        session.locator.Refused(target, reply.exception);
        continue;
      case Remedy::kUnknown:
        if (call.repeat != Repeat::kAlways || ++unknown == kTriesOfUnknown) break;
        [[fallthrough]];
      case Remedy::kBackOff:
        co_await session.SleepUntil(
            std::min(call.deadline, Clock::now() + backoff.Next(session.random)));
        continue;
      case Remedy::kReopenScanner:
      case Remedy::kFail:
        break;
    }
    co_return last.WithContext(What(call));
  }
  co_return may_have_run ? DeadlineExceeded(What(call) + " may have been carried out: closed")
                         : Cancelled("the client was closed");
}

}  // namespace tamis::hbase
