// ClusterCalls: calls of a cluster and of its administration for programs that use this server as
// their store (tamis/remote): POST /v1/cluster.
//
// Threads: safe. Answer may wait for a table's schema; it runs on a worker. Callbacks of the store
// answer.
#pragma once

#include "tamis/server/store_calls.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

// Leaves the number, user and host of each coordinator out.
ServerStatus WithoutIdentities(ServerStatus status);

class ClusterCalls {
 public:
  // The store must outlive this object. Calls that change or load the cluster are refused unless
  // `may_administer`, and the status of servers is answered WithoutIdentities.
  ClusterCalls(OpenedStore* store, bool may_administer)
      : store_(store), may_administer_(may_administer) {}

  void Answer(const StoreCallPtr& call);

 private:
  OpenedStore* const store_;
  const bool may_administer_;
};

}  // namespace tamis::server
