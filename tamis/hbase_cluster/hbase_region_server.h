// HBaseRegionServer: the stub of one server of HBase. A message travels by the service that the
// coprocessor registers on each region of an indexed table, which answers for its whole server: so
// it is sent on any such region that the server is known to have, on the next one when that one is
// not there any more or its table has been detached, and never after a region to its new server.
// When none is left nothing of ours is there: there is nothing to poll.
//
// Threads: safe. Answers come on the executor.
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

// State that the stubs of a cluster share. It outlives them; `client` does not, and ends their
// calls.
struct ServerLink {
  hbase::Client* client = nullptr;
  Executor* executor = nullptr;
  KnownRegions regions;
  // Told of a region that is not where it was.
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

  // For those who look after the cluster.
  void GetStatus(const pb::StatusRequest& request, Callback<pb::StatusReply> done);
  void StartJob(const pb::StartJobRequest& request, Callback<pb::StartJobReply> done);
  // The regions are those of the job.
  void GetJob(const pb::GetJobRequest& request, const std::vector<RegionId>& regions,
              Callback<pb::GetJobReply> done);

 private:
  const std::string name_;
  const std::shared_ptr<ServerLink> link_;
};

}  // namespace tamis
