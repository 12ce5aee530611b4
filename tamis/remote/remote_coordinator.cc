#include "tamis/remote/remote_coordinator.h"

#include <algorithm>
#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/remote/messages.h"
#include "tamis/remote/remote_stream.h"

namespace tamis {
namespace {

constexpr size_t kBatchBytes = size_t{4} << 20;  // bytes of one request to write

std::string PathOf(const TableSchema& schema, const std::string& operation) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string path = "/v1/tables/";
  for (const char c : schema.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      path += c;
    } else {
      path += {'%', kDigits[static_cast<unsigned char>(c) >> 4], kDigits[c & 15]};
    }
  }
  return path + "/" + operation;
}

// The request of a search or an aggregate, for the time that is left.
template <class Message>
RemoteStream::Options StreamOptions(const TableSchema& schema, const std::string& operation,
                                    Message message, Duration timeout,
                                    const std::atomic<bool>* cancelled) {
  return {.path = PathOf(schema, operation),
          .body =
              [message = std::move(message)](Duration left) mutable {
                message.set_timeout_ns(static_cast<uint64_t>(std::max<int64_t>(1, left.count())));
                return message.SerializeAsString();
              },
          .timeout = timeout,
          .cancelled = cancelled};
}

class RemoteRows final : public FoundRows {
 public:
  RemoteRows(std::shared_ptr<HttpClient> client, Executor* executor,
             std::shared_ptr<TableCache> tables, SchemaPtr schema, SearchOptions options)
      : tables_(std::move(tables)),
        schema_(std::move(schema)),
        options_(std::move(options)),
        stream_(std::move(client), executor,
                StreamOptions(*schema_, "search", ToMessage(*schema_, options_), options_.timeout,
                              options_.cancelled)) {}

  Result<std::optional<RowGroup>> Next() override {
    auto row = WithoutExceptions([this] { return NextRow(); });
    if (!row.ok() && failure_.ok()) {
      failure_ = row.status();
      return failure_;
    }
    return row;
  }
  // The server does so by itself, behind some groups.
  void StopGrouping() override {}

  const Explain& explain() override {
    // The end follows the last row at once.
    if (options_.limit > 0 && given_ >= options_.limit && !at_end_) (void)Next();
    explain_.rows_returned = given_;
    return explain_;
  }

 private:
  Result<std::optional<RowGroup>> NextRow() {
    if (!failure_.ok()) return failure_;
    while (next_ == part_.rows_size()) {
      next_ = 0;
      auto more = stream_.Next(&part_);
      if (!more.ok()) {
        part_.Clear();
        if (more.status().message().starts_with("cannot search table")) return more.status();
        return more.status().WithContext("cannot search table \"" + schema_->name + "\"");
      }
      if (!*more) {
        part_.Clear();
        at_end_ = true;
        return std::optional<RowGroup>();
      }
      if (part_.has_explain()) explain_ = FromMessage(part_.explain());
      if (part_.schema_version() > 0) tables_->Heard(schema_->id, part_.schema_version());
    }
    TAMIS_ASSIGN_OR_RETURN(RowGroup group,
                           FromMessage(*schema_, options_.totals, part_.rows(next_)));
    ++next_;
    stream_.Used();
    given_ += group.count;
    return std::optional(std::move(group));
  }

  const std::shared_ptr<TableCache> tables_;
  const SchemaPtr schema_;
  const SearchOptions options_;
  RemoteStream stream_;
  pb::TableSearchPart part_;
  int next_ = 0;  // row of the part
  uint64_t given_ = 0;
  bool at_end_ = false;
  Status failure_;
  Explain explain_;
};

}  // namespace

RemoteCoordinator::RemoteCoordinator(std::shared_ptr<HttpClient> client,
                                     std::shared_ptr<RemoteCluster> cluster, Executor* executor,
                                     Duration write_timeout)
    : client_(std::move(client)),
      cluster_(std::move(cluster)),
      executor_(executor),
      write_timeout_(write_timeout),
      tables_(std::make_shared<TableCache>(cluster_.get(), executor,
                                           TableCache::Options{.timeout = write_timeout})),
      writes_(client_, executor) {}

RemoteCoordinator::~RemoteCoordinator() { tables_->Stop(); }

std::unique_ptr<FoundRows> RemoteCoordinator::Search(SchemaPtr schema, SearchOptions options) {
  return std::make_unique<RemoteRows>(client_, executor_, tables_, std::move(schema),
                                      std::move(options));
}

std::optional<Result<Aggregates>> RemoteCoordinator::Aggregate(const SchemaPtr& schema,
                                                               const AggregateOptions& options) {
  return WithoutExceptions([&]() -> Result<Aggregates> {
    RemoteStream stream(client_, executor_,
                        StreamOptions(*schema, "aggregate", ToMessage(*schema, options),
                                      options.timeout, options.cancelled));
    Aggregates found;
    pb::TableAggregatePart part;
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const bool more, stream.Next(&part));
      if (!more) return found;
      stream.Used();
      for (const pb::FoundGroup& group : part.groups()) {
        TAMIS_ASSIGN_OR_RETURN(AggregateGroup one, FromMessage(*schema, options, group));
        found.groups.push_back(std::move(one));
      }
      if (part.has_explain()) found.explain = FromMessage(part.explain());
    }
  });
}

// ---- Writes

// Writes that travel together.
struct RemoteCoordinator::Batch {
  pb::TableWrites message;
  std::vector<size_t> writes;  // the write of each mutation
  size_t bytes = 0;
};

std::vector<Status> RemoteCoordinator::Apply(SchemaPtr schema, const std::vector<Write>& writes,
                                             const std::atomic<bool>* cancelled) {
  std::vector<Status> results(writes.size());
  const Time deadline = executor_->Now() + write_timeout_;
  Batch batch;
  const auto send = [&] {
    if (!batch.writes.empty()) Send(*schema, &batch, deadline, cancelled, &results);
    batch = {};
  };
  for (size_t i = 0; i < writes.size(); ++i) {
    pb::Mutation mutation;
    results[i] = WithoutExceptions([&] { return ToMessage(*schema, writes[i], &mutation); });
    if (!results[i].ok()) {
      results[i] = results[i].WithContext("cannot write to table \"" + schema->name + "\"");
      continue;
    }
    const size_t bytes = mutation.ByteSizeLong();
    if (batch.bytes + bytes > kBatchBytes) send();
    batch.bytes += bytes;
    batch.writes.push_back(i);
    *batch.message.add_mutations() = std::move(mutation);
  }
  send();
  return results;
}

void RemoteCoordinator::Send(const TableSchema& schema, Batch* batch, Time deadline,
                             const std::atomic<bool>* cancelled, std::vector<Status>* results) {
  const auto fail = [&](const Status& status) {
    for (const size_t write : batch->writes) {
      (*results)[write] = status.WithContext("cannot write to table \"" + schema.name + "\"");
    }
  };
  batch->message.set_table_id(schema.id);
  batch->message.set_schema_version(schema.version);
  const auto done = WithoutExceptions([&] {
    return writes_.Send(PathOf(schema, "write"), &batch->message,
                        {.deadline = deadline, .cancelled = cancelled});
  });
  if (!done.ok()) return fail(done.status());
  for (size_t i = 0; i < batch->writes.size(); ++i) {
    (*results)[batch->writes[i]] = FromMessage(done->results(static_cast<int>(i)));
  }
}

// ---- What the server knows

bool RemoteCoordinator::WaitUntilRouted(const TableSchema& schema, Duration timeout) {
  const Time deadline = executor_->Now() + timeout;
  while (true) {
    const Time now = executor_->Now();
    pb::ClusterCall call;
    call.mutable_await_routed()->set_table(schema.name);
    call.mutable_await_routed()->set_timeout_ns(
        static_cast<uint64_t>(std::max<Duration>(deadline - now, Duration(0)).count()));
    const auto answer = cluster_->Ask(call);
    if (!answer.ok()) return false;
    if (answer->routed()) return true;
    if (executor_->Now() >= deadline) return false;
  }
}

Engine::Knowledge RemoteCoordinator::knowledge() {
  pb::ClusterCall call;
  call.mutable_knowledge();
  const auto answer = cluster_->Ask(call);
  if (!answer.ok()) return {};
  const pb::ClusterAnswer::Knowledge& known = answer->knowledge();
  return {.servers = known.servers(),
          .regions = known.regions(),
          .indexes_missing = known.indexes_missing(),
          .indexes_left_out = known.indexes_left_out(),
          .filters_coarse = known.filters_coarse(),
          .filter_bytes = known.filter_bytes(),
          .max_filter_bytes = known.max_filter_bytes(),
          .servers_without_lease = known.servers_without_lease()};
}

}  // namespace tamis
