#include "tamis/server/operations.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "tamis/base/answers.h"
#include "tamis/server/json_body.h"

namespace tamis::server {
namespace {

constexpr Duration kOperationTime = std::chrono::seconds(60);

Result<RegionId> RegionOf(const StoreCall& call) {
  const std::string& text = call.parameters().at("region");
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("\"" + text +
                           "\" is no number of a region; GET /v1/tables/T/regions lists them");
  }
  return RegionId::Of(number);
}

Result<std::string> ServerOf(const StoreCall& call) {
  TAMIS_ASSIGN_OR_RETURN(const nlohmann::json body, ParseJsonBody(call.request().body));
  if (!body.is_object() || !body.contains("server") || !body["server"].is_string()) {
    return InvalidArgument(
        "cannot move the region: the body must name a server, such as {\"server\": \"rs1\"}");
  }
  return body["server"].get<std::string>();
}

}  // namespace

bool Operations::ArePossible() const { return store_->admin().Can(Capability::kKillServer); }

// `start` is given the ClusterAdmin and a DoneCallback; it returns why it could not start.
template <class Start>
Result<Response> Operations::Do(StoreCall& call, Start start) {
  if (!ArePossible()) {
    return FailedPrecondition(
        "this server operates embedded stores only; use the tools of the store");
  }
  call.MayChange();
  Executor* const executor = &store_->engine().executor();
  const Wait wait{.deadline = executor->Now() + kOperationTime, .cancelled = &call.cancelled()};
  TAMIS_RETURN_IF_ERROR(AwaitStatus(executor, wait, [&](auto ended) {
    const Status started = start(store_->admin(), ended);
    if (!started.ok()) ended(started);
  }));
  return Response{.body = "{\"done\":true}\n"};
}

Result<Response> Operations::KillServer(StoreCall& call) {
  return Do(call, [&](ClusterAdmin& admin, DoneCallback done) {
    admin.KillServer(call.parameters().at("server"), std::move(done));
    return Status::Ok();
  });
}

Result<Response> Operations::PauseServer(StoreCall& call) {
  return Do(call, [&](ClusterAdmin& admin, DoneCallback done) {
    admin.PauseServer(call.parameters().at("server"), std::move(done));
    return Status::Ok();
  });
}

Result<Response> Operations::ResumeServer(StoreCall& call) {
  return Do(call, [&](ClusterAdmin& admin, DoneCallback done) {
    admin.ResumeServer(call.parameters().at("server"), std::move(done));
    return Status::Ok();
  });
}

Result<Response> Operations::SplitRegion(StoreCall& call) {
  return Do(call, [&](ClusterAdmin& admin, DoneCallback done) -> Status {
    TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionOf(call));
    admin.SplitRegion(region, "", std::move(done));
    return Status::Ok();
  });
}

Result<Response> Operations::MoveRegion(StoreCall& call) {
  return Do(call, [&](ClusterAdmin& admin, DoneCallback done) -> Status {
    TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionOf(call));
    TAMIS_ASSIGN_OR_RETURN(const std::string server, ServerOf(call));
    admin.MoveRegion(region, server, std::move(done));
    return Status::Ok();
  });
}

}  // namespace tamis::server
