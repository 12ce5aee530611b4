#include "tamis/hbase_cluster/hbase_region_server.h"

#include "tamis/hbase/missing_right.h"
#include "tamis/hbase_cluster/payload.pb.h"

namespace tamis {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;

// Limits the tries for a server that has lost all of its regions at once.
constexpr size_t kMostTries = 8;
constexpr milliseconds kNoTimeout(10'000);
// Time for the network, beyond the server's own time limit.
constexpr milliseconds kOnTheWay(1'000);
// Polls have priority, so that they are not queued after puts that wait for them.
constexpr uint32_t kPollPriority = 100;

// One message, and the regions to send it through, one after the other.
struct Message {
  std::string server;
  std::shared_ptr<ServerLink> link;
  std::vector<hbase::RegionPtr> regions;
  size_t next = 0;
  hbase::ServiceCall call;
  std::function<void(hbase::ServiceReply)> done;  // on the executor
};

void Deliver(const std::shared_ptr<Message>& message, hbase::ServiceReply reply) {
  message->link->executor->Post(
      [message, reply = std::move(reply)]() mutable { message->done(std::move(reply)); });
}

void Send(const std::shared_ptr<Message>& message) {
  if (message->next == message->regions.size()) {
    return Deliver(message, {.answer = Unavailable("no region of an indexed table is known to be "
                                                   "at region server " +
                                                   message->server)});
  }
  const hbase::RegionPtr region = message->regions[message->next++];
  message->link->client->ExecAt(*region, message->call,
                                [message, region](hbase::ServiceReply reply) {
                                  if (!reply.not_here && !reply.no_service)
                                    return Deliver(message, std::move(reply));
                                  // If the table was detached, the region's new server does not
                                  // matter.
                                  if (message->link->regions.Forget(region) && reply.not_here)
                                    message->link->on_gone(region);
                                  Send(message);
                                });
}

// The jar passes on refusals of HBase as they are.
void Explain(pb::Error* error) {
  if (error->code() == pb::Error::FAILED_PRECONDITION) {
    error->set_message(hbase::ExplainMissingRight(error->message()));
  }
}

void Explain(pb::MutateReply* reply) {
  for (pb::RegionMutateResult& region : *reply->mutable_regions()) {
    if (region.has_error()) {
      Explain(region.mutable_error());
      // No condition was judged: FAILED_PRECONDITION would stand for a row that is another one now.
      if (region.error().code() == pb::Error::FAILED_PRECONDITION) {
        region.mutable_error()->set_code(pb::Error::INVALID_ARGUMENT);
      }
    }
    for (pb::Error& result : *region.mutable_results()) Explain(&result);
  }
}
void Explain(pb::SearchReply* reply) {
  for (pb::RangeResult& range : *reply->mutable_results()) {
    if (range.has_error()) Explain(range.mutable_error());
  }
}
void Explain(pb::StartJobReply* reply) {
  if (reply->has_error()) Explain(reply->mutable_error());
}
void Explain(pb::GetJobReply* reply) {
  for (pb::RegionJobResult& region : *reply->mutable_results()) {
    if (region.has_error()) Explain(region.mutable_error());
  }
}
void Explain(pb::PollReply* /*reply*/) {}
void Explain(pb::StatusReply* /*reply*/) {}

template <class Reply>
Result<Reply> Parse(const std::string& server, Result<std::string> bytes) {
  if (!bytes.ok()) return bytes.status();
  pb::Payload payload;
  Reply reply;
  if (!payload.ParseFromString(*bytes) || !reply.ParseFromString(payload.bytes())) {
    return DataLoss("region server " + server + " sent an answer that cannot be read");
  }
  Explain(&reply);
  return reply;
}

std::string InPayload(const google::protobuf::MessageLite& request) {
  pb::Payload payload;
  request.SerializeToString(payload.mutable_bytes());
  return payload.SerializeAsString();
}

milliseconds TimeoutOf(uint64_t timeout_ns) {
  if (timeout_ns == 0) return kNoTimeout;
  return kOnTheWay + duration_cast<milliseconds>(SentDuration(timeout_ns));
}

template <class Ranges>
std::vector<RegionId> IdsOf(const Ranges& ranges) {
  std::vector<RegionId> ids;
  for (const auto& range : ranges) {
    if (RegionId::IsValid(range.region_id())) ids.emplace_back(range.region_id());
  }
  return ids;
}

std::shared_ptr<Message> NewMessage(const std::string& server,
                                    const std::shared_ptr<ServerLink>& link,
                                    const std::vector<RegionId>& first, const char* method,
                                    const google::protobuf::MessageLite& request,
                                    milliseconds timeout) {
  auto message = std::make_shared<Message>();
  message->server = server;
  message->link = link;
  message->regions = link->regions.At(server, first, kMostTries);
  message->call = {.service = "tamis.pb.RegionServer",
                   .method = method,
                   .request = InPayload(request),
                   .timeout = timeout};
  return message;
}

// By the names of the standard's HTTP headers, as HBase's servers look for them.
template <class Request>
std::map<std::string, std::string> TraceOf(const Request& request) {
  std::map<std::string, std::string> headers;
  if (!request.trace().parent().empty()) headers["traceparent"] = request.trace().parent();
  if (!request.trace().state().empty()) headers["tracestate"] = request.trace().state();
  return headers;
}

template <class Reply>
void Ask(std::shared_ptr<Message> message, Callback<Reply> done) {
  message->done = [server = message->server, done = std::move(done)](hbase::ServiceReply reply) {
    done(Parse<Reply>(server, std::move(reply.answer)));
  };
  Send(message);
}

}  // namespace

void HBaseRegionServer::Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) {
  auto message = NewMessage(name_, link_, IdsOf(request.regions()), "Mutate", request,
                            TimeoutOf(request.timeout_ns()));
  message->call.trace = TraceOf(request);
  message->done = [server = name_, done = std::move(done)](hbase::ServiceReply answered) {
    // Either the failure does not prove that nothing was committed, or the write succeeded and its
    // reply cannot be parsed.
    const bool may_stand = answered.may_have_run || answered.answer.ok();
    auto reply = Parse<pb::MutateReply>(server, std::move(answered.answer));
    if (!reply.ok() && may_stand) return done(DeadlineExceeded(reply.status().message()));
    done(std::move(reply));
  };
  Send(message);
}

void HBaseRegionServer::Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
  auto message = NewMessage(name_, link_, IdsOf(request.ranges()), "Search", request,
                            TimeoutOf(request.timeout_ns()));
  message->call.trace = TraceOf(request);
  Ask(std::move(message), std::move(done));
}

void HBaseRegionServer::Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) {
  auto message = NewMessage(name_, link_, {}, "Poll", request, TimeoutOf(request.wait_ns()));
  message->call.priority = kPollPriority;
  message->call.waits = true;
  Ask(std::move(message), std::move(done));
}

void HBaseRegionServer::GetStatus(const pb::StatusRequest& request,
                                  Callback<pb::StatusReply> done) {
  Ask(NewMessage(name_, link_, {}, "Status", request, kNoTimeout), std::move(done));
}

void HBaseRegionServer::StartJob(const pb::StartJobRequest& request,
                                 Callback<pb::StartJobReply> done) {
  std::vector<RegionId> ids;
  for (const uint64_t id : request.region_ids()) ids.emplace_back(id);
  Ask(NewMessage(name_, link_, ids, "StartJob", request, kNoTimeout), std::move(done));
}

void HBaseRegionServer::GetJob(const pb::GetJobRequest& request,
                               const std::vector<RegionId>& regions,
                               Callback<pb::GetJobReply> done) {
  Ask(NewMessage(name_, link_, regions, "GetJob", request, kNoTimeout), std::move(done));
}

}  // namespace tamis
