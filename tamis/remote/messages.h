// The calls of an engine and of a cluster as messages (remote.proto), and back. A message is
// checked against the schema: one that does not fit is an error.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/query/engine.h"
#include "tamis/remote/remote.pb.h"

namespace tamis {

// The type of the bodies of requests and answers.
inline constexpr std::string_view kRemoteContentType = "application/x-protobuf";

// The number of mutations that a request to write may have; the smallest ones fill 4 MiB.
inline constexpr int kMostMutations = 300'000;

void ToMessage(const Status& status, pb::Outcome* message);
Status FromMessage(const pb::Outcome& message);

pb::TableSearch ToMessage(const TableSchema& schema, const SearchOptions& options);
Result<SearchOptions> FromMessage(const TableSchema& schema, const pb::TableSearch& message);

pb::TableAggregate ToMessage(const TableSchema& schema, const AggregateOptions& options);
Result<AggregateOptions> FromMessage(const TableSchema& schema, const pb::TableAggregate& message);

void ToMessage(const Explain& explain, pb::SearchExplain* message);
Explain FromMessage(const pb::SearchExplain& message);

// kInvalidArgument where a value has no place in the key of the table.
Status ToMessage(const TableSchema& schema, const RowGroup& group, pb::FoundRow* message);
// `totals`: SearchOptions::totals.
Result<RowGroup> FromMessage(const TableSchema& schema, const std::vector<uint32_t>& totals,
                             const pb::FoundRow& message);

void ToMessage(const AggregateGroup& group, pb::FoundGroup* message);
Result<AggregateGroup> FromMessage(const TableSchema& schema, const AggregateOptions& options,
                                   const pb::FoundGroup& message);

Status ToMessage(const TableSchema& schema, const Write& write, pb::Mutation* message);
Result<Write> FromMessage(const TableSchema& schema, const pb::Mutation& message);

void ToMessage(const RegionInfo& region, pb::RegionState* message);
Result<RegionInfo> FromMessage(const pb::RegionState& message);
void ToMessage(const ServerStatus& server, pb::ServerState* message);
ServerStatus FromMessage(const pb::ServerState& message);
void ToMessage(const IndexProgress& progress, pb::ClusterAnswer::Progress* message);
Result<IndexProgress> FromMessage(const pb::ClusterAnswer::Progress& message);
void ToMessage(const JobSpec& job, pb::Job* message);
Result<JobSpec> FromMessage(const pb::Job& message);
void ToMessage(const JobInfo& job, pb::JobState* message);
Result<JobInfo> FromMessage(const pb::JobState& message);

// Appends the message after its length, as a part of a stream.
void AppendPart(const google::protobuf::MessageLite& message, std::string* stream);

// Takes a stream apart.
class StreamParts {
 public:
  // A longer message is refused.
  static constexpr size_t kMaxPartBytes = size_t{64} << 20;

  void Append(std::string_view bytes);
  // Fills the next message; false: the stream has no whole one yet.
  Result<bool> Next(google::protobuf::MessageLite* message);

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace tamis
