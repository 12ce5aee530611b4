// ClusterCalls: calls of a cluster and of its administration for programs that use this server as
// their store (tamis/remote): POST /v1/cluster.
//
// Threads: safe. Answer blocks for moments only; it runs on a worker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "tamis/server/routes.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class ClusterCalls {
 public:
  // The store must outlive this object. Calls that change or load the cluster are refused unless
  // `may_administer`.
  ClusterCalls(OpenedStore* store, bool may_administer)
      : store_(store), may_administer_(may_administer) {}

  void Answer(const Call& call);
  // Answers all calls whose answer the cluster owes: their outcome is not known. Answers that come
  // later are dropped.
  void Stop();

  // The exchanges that wait for an answer. A cluster may keep a callback for long after it has
  // called it, and longer than the server lives; so callbacks hold numbers.
  class Waiting {
   public:
    uint64_t Add(ExchangePtr exchange);
    void Send(uint64_t number, Response response);
    std::map<uint64_t, ExchangePtr> TakeAll();

   private:
    std::mutex mutex_;
    uint64_t last_ = 0;
    std::map<uint64_t, ExchangePtr> exchanges_;
  };

 private:
  OpenedStore* const store_;
  const bool may_administer_;
  const std::shared_ptr<Waiting> waiting_ = std::make_shared<Waiting>();
};

}  // namespace tamis::server
