// RegionServer: the interface of what writes, searches and feeds the filters of the regions that it
// holds; the messages are those of cluster.proto. Apart from cluster.h, which is shown to programs
// that know nothing of protobuf.
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
