#include "tamis/hbase/row_calls.h"

#include <algorithm>
#include <memory>

#include "tamis/hbase/messages.h"
#include "tamis/hbase/printable.h"
#include "tamis/hbase/session.h"

namespace tamis::hbase {
namespace {

template <class Message>
Status Read(const Reply& reply, Message* message) {
  if (message->ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size()))) {
    return {};
  }
  return DataLoss("an answer that cannot be read");
}

// The status of a change whose answer cannot be parsed.
Status Unread(const std::string& table, const std::string& row, const Status& fault) {
  return MayHaveRun("the change of row " + Printable(row) + " of table " + Printable(table), fault);
}

bool HasNonce(const Mutation& mutation) {
  return mutation.kind() == Mutation::Kind::kAppend ||
         mutation.kind() == Mutation::Kind::kIncrement;
}

Repeat RepeatOf(const WriteOptions& options, bool has_nonce) {
  if (options.condition) return Repeat::kNever;
  if (has_nonce) return Repeat::kSameServer;
  return options.repeat ? Repeat::kAlways : Repeat::kNever;
}

pb::CoprocessorServiceRequest ToProto(const ServiceCall& call, std::string_view row) {
  pb::CoprocessorServiceRequest request;
  request.mutable_call()->set_row(std::string(row));
  request.mutable_call()->set_service_name(call.service);
  request.mutable_call()->set_method_name(call.method);
  request.mutable_call()->set_request(call.request);
  return request;
}

Result<std::string> ServiceAnswer(const Reply& reply) {
  pb::CoprocessorServiceResponse answer;
  TAMIS_RETURN_IF_ERROR(Read(reply, &answer));
  return answer.value().value();
}

Task<ServiceReply> ExecAt(Session& session, ServerName server, std::string method,
                          pb::CoprocessorServiceRequest request, ServiceCall call,
                          Deadline deadline) {
  Call one{.method = std::move(method),
           .parameter = std::make_shared<pb::CoprocessorServiceRequest>(std::move(request)),
           .cells = {},
           .priority = call.priority,
           .deadline = call.timeout ? std::min(deadline, Clock::now() + *call.timeout)
                                    : session.CallDeadline(deadline),
           .trace = call.trace};
  const auto lane = call.waits ? Channels::Lane::kPolls : Channels::Lane::kNormal;
  const Reply reply = co_await session.Send(
      session.channels.To(server.address, "ClientService", lane), std::move(one));
  switch (reply.outcome) {
    case Reply::Outcome::kAnswer: {
      auto answer = ServiceAnswer(reply);
      const bool unread = !answer.ok();
      co_return ServiceReply{.answer = std::move(answer), .may_have_run = unread};
    }
    case Reply::Outcome::kUnknown: {
      // The answer would exceed the limit again.
      const bool is_final = reply.status.code() == StatusCode::kResourceExhausted;
      co_return ServiceReply{
          .answer = is_final ? reply.status : DeadlineExceeded(reply.status.message()),
          .may_have_run = true};
    }
    case Reply::Outcome::kNotSent:
      break;
    case Reply::Outcome::kException:
      co_return ServiceReply{
          .answer = reply.ToStatus().WithContext(call.method + " at " + server.ToString()),
          .not_here = reply.exception.tells_region_is_not_here(),
          .no_service = reply.exception.tells_service_is_not_there(),
          .denied = reply.exception.tells_user_is_denied(),
          .may_have_run = reply.exception.may_have_run()};
  }
  co_return ServiceReply{.answer =
                             reply.status.WithContext(call.method + " at " + server.ToString())};
}

}  // namespace

Task<Result<Row>> GetRow(Session& session, std::string table, Get get, Deadline deadline) {
  RegionCall call{.table = NormalTableName(table),
                  .row = get.row,
                  .method = "Get",
                  .repeat = Repeat::kReads,
                  .deadline = deadline};
  call.make = [&get](const Region& region) {
    auto request = std::make_shared<pb::GetRequest>();
    ToProto(region, request->mutable_region());
    ToProto(get, request->mutable_get());
    return Call{.method = {}, .parameter = std::move(request), .cells = {}, .deadline = {}};
  };
  auto reply = co_await CallRegion(session, std::move(call));
  if (!reply.ok()) co_return reply.status();
  pb::GetResponse answer;
  TAMIS_CO_RETURN_IF_ERROR(Read(*reply, &answer));
  std::string_view cells = reply->cells;
  co_return WithKey(get.row, TakeRow(answer.result(), &cells, reply->frame));
}

Task<Result<MutateResult>> MutateRow(Session& session, std::string table, Mutation mutation,
                                     WriteOptions options, Deadline deadline) {
  TAMIS_CO_RETURN_IF_ERROR(mutation.Check());
  const bool has_nonce = HasNonce(mutation);
  const uint64_t nonce = has_nonce ? session.NextNonce() : 0;
  RegionCall call{.table = NormalTableName(table),
                  .row = mutation.row(),
                  .method = "Mutate",
                  .repeat = RepeatOf(options, has_nonce),
                  .deadline = deadline};
  call.make = [&](const Region& region) {
    auto request = std::make_shared<pb::MutateRequest>();
    Call one{.method = {}, .parameter = {}, .cells = {}, .deadline = {}};
    ToProto(region, request->mutable_region());
    ToProto(mutation, nonce, request->mutable_mutation(), &one.cells);
    if (options.condition) {
      ToProto(*options.condition, mutation.row(), request->mutable_condition());
    }
    if (has_nonce) request->set_nonce_group(session.nonce_group);
    one.parameter = std::move(request);
    return one;
  };
  auto reply = co_await CallRegion(session, std::move(call));
  if (!reply.ok()) co_return reply.status();
  pb::MutateResponse answer;
  if (const Status read = Read(*reply, &answer); !read.ok()) {
    co_return Unread(table, mutation.row(), read);
  }
  MutateResult result;
  result.applied = !options.condition || answer.processed();
  if (answer.has_result()) {
    std::string_view cells = reply->cells;
    auto row = WithKey(mutation.row(), TakeRow(answer.result(), &cells, reply->frame));
    if (!row.ok()) co_return Unread(table, mutation.row(), row.status());
    result.row = *std::move(row);
  }
  co_return result;
}

Task<Result<MutateResult>> MutateRowTogether(Session& session, std::string table,
                                             std::vector<Mutation> mutations, WriteOptions options,
                                             Deadline deadline) {
  if (mutations.empty()) co_return InvalidArgument("no change given for a row");
  bool has_nonce = false;
  for (const Mutation& mutation : mutations) {
    TAMIS_CO_RETURN_IF_ERROR(mutation.Check());
    if (mutation.row() != mutations.front().row()) {
      co_return InvalidArgument("changes that are made together are of one row, not of " +
                                Printable(mutations.front().row()) + " and " +
                                Printable(mutation.row()));
    }
    has_nonce |= HasNonce(mutation);
  }
  // One nonce identifies all mutations of the call.
  const uint64_t nonce = has_nonce ? session.NextNonce() : 0;
  RegionCall call{.table = NormalTableName(table),
                  .row = mutations.front().row(),
                  .method = "Multi",
                  .repeat = RepeatOf(options, has_nonce),
                  .deadline = deadline};
  call.make = [&](const Region& region) {
    auto request = std::make_shared<pb::MultiRequest>();
    Call one{.method = {}, .parameter = {}, .cells = {}, .deadline = {}};
    pb::RegionAction& actions = *request->add_regionaction();
    ToProto(region, actions.mutable_region());
    actions.set_atomic(true);
    for (size_t i = 0; i < mutations.size(); ++i) {
      pb::Action& action = *actions.add_action();
      action.set_index(static_cast<uint32_t>(i));
      ToProto(mutations[i], nonce, action.mutable_mutation(), &one.cells);
    }
    if (options.condition) {
      ToProto(*options.condition, mutations.front().row(), actions.mutable_condition());
    }
    if (has_nonce) request->set_noncegroup(session.nonce_group);
    one.parameter = std::move(request);
    return one;
  };
  call.inner = [](const Reply& reply) -> std::optional<Exception> {
    pb::MultiResponse answer;
    if (!Read(reply, &answer).ok() || answer.regionactionresult_size() == 0) return {};
    const pb::RegionActionResult& result = answer.regionactionresult(0);
    if (result.has_exception()) return ExceptionOf(result.exception());
    for (const pb::ResultOrException& one : result.resultorexception()) {
      if (one.has_exception()) return ExceptionOf(one.exception());
    }
    return {};
  };
  auto reply = co_await CallRegion(session, std::move(call));
  if (!reply.ok()) co_return reply.status();
  pb::MultiResponse answer;
  const std::string& row_key = mutations.front().row();
  if (const Status read = Read(*reply, &answer); !read.ok()) {
    co_return Unread(table, row_key, read);
  }
  if (answer.regionactionresult_size() != 1) {
    co_return Unread(
        table, row_key,
        DataLoss("an answer that tells of " + std::to_string(answer.regionactionresult_size()) +
                 " regions instead of one"));
  }
  const pb::RegionActionResult& of_region = answer.regionactionresult(0);
  MutateResult result;
  result.applied = !options.condition || of_region.processed();
  std::string_view cells = reply->cells;
  for (const pb::ResultOrException& one : of_region.resultorexception()) {
    auto row = WithKey(row_key, TakeRow(one.result(), &cells, reply->frame));
    if (!row.ok()) co_return Unread(table, row_key, row.status());
    if (!row->empty()) result.row = *std::move(row);
  }
  co_return result;
}

Task<Result<std::string>> ExecService(Session& session, std::string table, std::string row,
                                      ServiceCall call, Deadline deadline) {
  RegionCall region_call{.table = NormalTableName(table),
                         .row = row,
                         .method = "ExecService",
                         .repeat = call.repeat ? Repeat::kAlways : Repeat::kNever,
                         .priority = call.priority,
                         .lane = call.waits ? Channels::Lane::kPolls : Channels::Lane::kNormal,
                         .deadline = deadline,
                         .call_timeout = call.timeout};
  region_call.make = [&](const Region& region) {
    auto request = std::make_shared<pb::CoprocessorServiceRequest>(ToProto(call, row));
    ToProto(region, request->mutable_region());
    return Call{.method = {},
                .parameter = std::move(request),
                .cells = {},
                .deadline = {},
                .trace = call.trace};
  };
  auto reply = co_await CallRegion(session, std::move(region_call));
  if (!reply.ok()) co_return reply.status();
  co_return ServiceAnswer(*reply);
}

Task<ServiceReply> ExecServiceAt(Session& session, ServerName server, std::string region_name,
                                 ServiceCall call, Deadline deadline) {
  pb::CoprocessorServiceRequest request = ToProto(call, {});
  request.mutable_region()->set_type(pb::RegionSpecifier::REGION_NAME);
  request.mutable_region()->set_value(region_name);
  return ExecAt(session, std::move(server), "ExecService", std::move(request), std::move(call),
                deadline);
}

Task<ServiceReply> ExecRegionServerService(Session& session, ServerName server, ServiceCall call,
                                           Deadline deadline) {
  pb::CoprocessorServiceRequest request = ToProto(call, {});
  request.mutable_region()->set_type(pb::RegionSpecifier::REGION_NAME);
  request.mutable_region()->set_value("");
  return ExecAt(session, std::move(server), "ExecRegionServerService", std::move(request),
                std::move(call), deadline);
}

}  // namespace tamis::hbase
