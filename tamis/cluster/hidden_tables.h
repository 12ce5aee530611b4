// HiddenTables: a cluster that checks rights may hide tables from a user. A Cluster that can tell
// their names implements this, too.
#pragma once

#include <string>
#include <vector>

#include "tamis/cluster/cluster.h"

namespace tamis {

class HiddenTables {
 public:
  virtual ~HiddenTables() = default;

  // The names of the tables that this user may not see. Cluster::GetTable gives the missing right.
  // A name may turn out to be no table of the store.
  virtual void ListHiddenTables(Callback<std::vector<std::string>> done) = 0;
};

}  // namespace tamis
