// RegionServer: the interface of one region server: writes and searches in the regions that it has
// open, and polls of its filter feed, by the messages of cluster.proto. It is not in cluster.h, so
// that programs that include that header need no protobuf.
//
// Threads: as cluster.h says.
#pragma once

#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster.pb.h"

namespace tamis {

class RegionServer {
 public:
  virtual ~RegionServer() = default;

  virtual void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) = 0;
  virtual void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) = 0;
  virtual void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) = 0;
};

}  // namespace tamis
