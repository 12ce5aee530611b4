// RegionSizes: the sizes of regions, as the master reports them.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tamis/base/thread_executor.h"
#include "tamis/hbase/client.h"

namespace tamis {

class RegionSizes {
 public:
  struct Options {
    Duration age;       // how long sizes are trusted
    Duration patience;  // how long a call waits for the master
  };

  // `waiters` runs the calls that wait for the master. REQUIRES: it is stopped before this object
  // is destroyed; executor and client outlive this object.
  RegionSizes(Executor* executor, ThreadExecutor* waiters, hbase::Client* client, Options options)
      : executor_(executor), waiters_(waiters), client_(client), options_(options) {}

  // Requests the sizes if they are outdated. The first time, `then` is called after the answer;
  // later, it may be called before it.
  void Learn(std::function<void()> then);
  uint64_t Of(const std::string& encoded) const;  // by the region's encoded name; 0: not known

 private:
  Executor* const executor_;
  ThreadExecutor* const waiters_;
  hbase::Client* const client_;
  const Options options_;
  mutable std::mutex mutex_;
  std::map<std::string, uint64_t> sizes_;
  std::optional<Time> asked_;
  bool asking_ = false;
};

}  // namespace tamis
