// Operations: changes to the servers and regions of an embedded store, by HTTP: kill, pause and
// resume a server, split and move a region. A store of another kind has tools of its own for these.
//
// Threads: safe. The calls block; they run on workers, and end early when the call is cancelled.
#pragma once

#include <memory>
#include <string>

#include "tamis/server/store_calls.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class Operations {
 public:
  explicit Operations(std::shared_ptr<OpenedStore> store) : store_(std::move(store)) {}

  // Whether the store has them.
  bool ArePossible() const;

  Result<Response> KillServer(StoreCall& call);
  Result<Response> PauseServer(StoreCall& call);
  Result<Response> ResumeServer(StoreCall& call);
  Result<Response> SplitRegion(StoreCall& call);  // near its middle
  Result<Response> MoveRegion(StoreCall& call);   // to the "server" of the body

 private:
  template <class Start>
  Result<Response> Do(StoreCall& call, Start start);

  const std::shared_ptr<OpenedStore> store_;
};

}  // namespace tamis::server
