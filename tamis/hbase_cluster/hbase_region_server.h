// HBaseRegionServer: the stub of one HBase server. The coprocessor registers a service on each
// region of an indexed table, and that service answers for the whole server. So a message is sent
// to any such region that is known on this server, and to the next one if that region has moved or
// its table has been detached. A message never follows a region to another server. If no region is
// left, the server has no indexed regions and there is nothing to poll.
//
// Threads: safe. Callbacks run on the executor.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/region_server.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase_cluster/known_regions.h"

namespace tamis {

// State that the stubs of a cluster share. It outlives the stubs; `client` may be destroyed before
// them, which ends their calls.
struct ServerLink {
  hbase::Client* client = nullptr;
  Executor* executor = nullptr;
  KnownRegions regions;
  // Called with a region that is no longer at its known server.
  std::function<void(const hbase::RegionPtr&)> on_gone;
};

class HBaseRegionServer : public RegionServer {
 public:
  // `name` is "HOST:PORT".
  HBaseRegionServer(std::string name, std::shared_ptr<ServerLink> link)
      : name_(std::move(name)), link_(std::move(link)) {}

  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override;
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override;
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override;

  // For administration.
  void GetStatus(const pb::StatusRequest& request, Callback<pb::StatusReply> done);
  void StartJob(const pb::StartJobRequest& request, Callback<pb::StartJobReply> done);
  // `regions` are those of the job.
  void GetJob(const pb::GetJobRequest& request, const std::vector<RegionId>& regions,
              Callback<pb::GetJobReply> done);

 private:
  const std::string name_;
  const std::shared_ptr<ServerLink> link_;
};

}  // namespace tamis
