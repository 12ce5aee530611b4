#include "tamis/query/search_requests.h"

#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/region_server.h"

namespace tamis {

void SearchRequests::Send(ServerRequest request, bool here) {
  const size_t number = next_number_++;
  auto send = [context = context_, server = request.server, message = request.message,
               to = answers_.To(number)] {
    const Status sent = WithoutExceptions([&] {
      context->cluster->Server(server)->Search(
          *message, [to](Result<pb::SearchReply> reply) { to(std::move(reply)); });
      return Status::Ok();
    });
    if (!sent.ok()) to(Result<pb::SearchReply>(sent));  // it counts unless an answer came before
  };
  auto load = std::make_unique<ServerLoads::Request>(&context_->loads, request.server);
  under_way_.emplace(number, UnderWay{std::move(request), std::move(load)});
  if (here) {
    send();
  } else {
    context_->executor->Post(std::move(send));
  }
}

void SearchRequests::AskMap(const TableSchema& schema, const std::vector<KeyRange>& stale) {
  map_asked_ = true;
  context_->tables->RefreshRegions(
      schema, stale, [to = answers_.To(0)](Regions regions) { to(std::move(regions)); });
}

std::optional<std::variant<SearchRequests::Reply, SearchRequests::Regions>> SearchRequests::Next(
    const Wait& wait) {
  auto answer = answers_.Next(wait);
  if (!answer.has_value()) return std::nullopt;
  if (answer->question == 0) {
    map_asked_ = false;
    return std::get<Regions>(std::move(answer->value));
  }
  auto found = under_way_.extract(answer->question);
  if (found.empty()) return std::nullopt;
  return Reply{std::move(found.mapped().request),
               std::get<Result<pb::SearchReply>>(std::move(answer->value))};
}

std::optional<ServerRequest> SearchRequests::TakeLate(Time now) {
  if (now < NextDeadline()) return std::nullopt;
  return std::move(under_way_.extract(under_way_.begin()).mapped().request);
}

Time SearchRequests::NextDeadline() const {
  return under_way_.empty() ? Time::max() : under_way_.begin()->second.request.deadline;
}

std::vector<std::string> SearchRequests::SilentServers() const {
  std::vector<std::string> servers;
  for (const auto& [number, under_way] : under_way_) servers.push_back(under_way.request.server);
  return servers;
}

}  // namespace tamis
