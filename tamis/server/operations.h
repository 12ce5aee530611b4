// Operations: changes to the servers and regions of an embedded store, by HTTP: kill, pause and
// resume a server, split and move a region. A store of another kind has tools of its own for these.
//
// Threads: safe. The calls block; they run on workers.
#pragma once

#include <memory>
#include <string>

#include "tamis/server/routes.h"
#include "tamis/store/opened_store.h"

namespace tamis::server {

class Operations {
 public:
  explicit Operations(std::shared_ptr<OpenedStore> store) : store_(std::move(store)) {}

  // Whether the store has them.
  bool ArePossible() const;

  Response KillServer(const Call& call);
  Response PauseServer(const Call& call);
  Response ResumeServer(const Call& call);
  Response SplitRegion(const Call& call);  // near its middle
  Response MoveRegion(const Call& call);   // to the "server" of the body

 private:
  template <class Start>
  Response Do(Start start);

  const std::shared_ptr<OpenedStore> store_;
};

}  // namespace tamis::server
