#include "tamis/hbase/registry.h"

#include <algorithm>
#include <memory>

#include "tamis/hbase/preamble.h"
#include "tamis/hbase/region.h"
#include "tamis/hbase/session.h"
#include "tamis/hbase/visit.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

// The time limit for one server; another server may answer faster.
constexpr std::chrono::milliseconds kOneTry(2000);
constexpr size_t kMostAddresses = 32;

}  // namespace

Registry::Registry(Session& session)
    : session_(session),
      addresses_(session.options.zookeeper ? std::vector<Address>()
                                           : *ParseAddresses(session.options.addresses)),
      configured_(addresses_.size()) {
  if (session.options.zookeeper) {
    zookeeper_.emplace(session.io, session.timers, *session.options.zookeeper);
  }
}

Task<Status> Registry::Ask(std::string method, google::protobuf::MessageLite* answer,
                           Deadline deadline) {
  std::string reasons;
  size_t final_failures = 0;
  const size_t count = addresses_.size();
  const size_t first = next_;  // other operations change it meanwhile
  for (size_t i = 0; i < count && Clock::now() < deadline && !session_.closed(); ++i) {
    const size_t at = (first + i) % count;
    const Address address = addresses_[at];
    Call call{.method = method,
              // the requests of all these methods are empty
              .parameter = std::make_shared<pb::GetClusterIdRequest>(),
              .cells = {},
              .deadline = std::min(deadline, Clock::now() + kOneTry)};
    const Reply reply =
        co_await session_.Send(session_.channels.To(address, "ClientMetaService"), std::move(call));
    answered_ |=
        reply.outcome == Reply::Outcome::kAnswer || reply.outcome == Reply::Outcome::kException;
    Status status = reply.ToStatus();
    if (status.ok()) {
      if (answer->ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size()))) {
        next_ = at;
        co_return Status();
      }
      status = DataLoss(address.ToString() + ": an answer that cannot be read");
    }
    if (status.code() == StatusCode::kFailedPrecondition || (reply.no_server && !answered_)) {
      ++final_failures;
    }
    reasons += (reasons.empty() ? "" : "; ") + status.message();
    next_ = (at + 1) % count;
  }
  co_return Status(
      final_failures == count ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable,
      "no server answers " + method + ": " + (reasons.empty() ? "no time left" : reasons));
}

Task<void> Registry::Learn(Deadline deadline) {
  if (learned_) co_return;
  learned_ = true;
  pb::GetBootstrapNodesResponse nodes;
  const Status asked = co_await Ask("GetBootstrapNodes", &nodes, deadline);
  if (!asked.ok()) co_return;  // bootstrap nodes are optional
  for (const pb::ServerName& node : nodes.server_name()) {
    const Address address = FromProto(node).address;
    if (addresses_.size() < std::max(kMostAddresses, configured_) &&
        std::ranges::find(addresses_, address) == addresses_.end()) {
      addresses_.push_back(address);
    }
  }
}

Task<Result<ServerName>> Registry::MetaServer(Deadline deadline) {
  if (zookeeper_) co_return co_await zookeeper_->MetaServer(deadline);
  pb::GetMetaRegionLocationsResponse locations;
  const Status asked = co_await Ask("GetMetaRegionLocations", &locations, deadline);
  if (!asked.ok()) co_return asked;
  co_await Learn(deadline);
  for (const pb::RegionLocation& location : locations.meta_locations()) {
    if (location.has_server_name() && location.region_info().replica_id() == 0) {
      co_return FromProto(location.server_name());
    }
  }
  TryNext();
  co_return Unavailable("hbase:meta is open nowhere");
}

Task<Result<ServerName>> Registry::ActiveMaster(Deadline deadline) {
  if (zookeeper_) co_return co_await zookeeper_->ActiveMaster(deadline);
  pb::GetActiveMasterResponse master;
  const Status asked = co_await Ask("GetActiveMaster", &master, deadline);
  if (!asked.ok()) co_return asked;
  if (!master.has_server_name()) {
    TryNext();
    co_return Unavailable("no master is active");
  }
  co_return FromProto(master.server_name());
}

Task<Result<std::string>> Registry::ClusterId(Deadline deadline) {
  if (zookeeper_) co_return co_await zookeeper_->ClusterId(deadline);
  std::string reasons;
  const std::vector<Address> addresses = addresses_;
  for (size_t i = 0; i < addresses.size() && Clock::now() < deadline; ++i) {
    const Address& address = addresses[(next_ + i) % addresses.size()];
    auto id = co_await AskClusterId(address, std::min(deadline, Clock::now() + kOneTry));
    if (id.ok()) co_return id;
    reasons += (reasons.empty() ? "" : "; ") + address.ToString() + ": " + id.status().message();
  }
  co_return Unavailable("no server tells the id of its cluster: " +
                        (reasons.empty() ? "no time left" : reasons));
}

Task<Result<std::string>> Registry::AskClusterId(Address address, Deadline deadline) {
  Visit visit(session_.io, session_.timers, deadline, session_.tls);
  const Address way = session_.options.way ? session_.options.way(address) : address;
  TAMIS_CO_RETURN_IF_ERROR(co_await visit.Connect(way, address.host));
  Task<PreambleQuestion::Answer> asked = Suspended<PreambleQuestion::Answer>(
      [&visit](std::function<void(PreambleQuestion::Answer)> resume) {
        std::make_shared<PreambleQuestion>(*visit.transport(), visit.transport())
            ->Ask(Question::kClusterId, std::move(resume));
      });
  PreambleQuestion::Answer answer = co_await std::move(asked);
  if (!answer.status.ok()) co_return answer.status;
  co_return std::move(answer.text);
}

}  // namespace tamis::hbase
