#include "tamis/hbase_cluster/region_sizes.h"

#include <atomic>
#include <memory>

namespace tamis {

void RegionSizes::Learn(std::function<void()> then) {
  bool first = false;
  bool due = false;
  {
    std::lock_guard lock(mutex_);
    const Time now = executor_->Now();
    first = !asked_.has_value();
    due = first || (!asking_ && now - *asked_ >= options_.age);
    if (due) {
      asked_ = now;
      asking_ = true;
    }
  }
  if (!due) return then();
  const auto answered = std::make_shared<std::atomic<bool>>(false);
  const auto once = [answered, then] {
    if (!answered->exchange(true)) then();
  };
  waiters_->Post([this, once] {
    const auto state = client_->Cluster();
    {
      std::lock_guard lock(mutex_);
      asking_ = false;
      if (state.ok()) {
        sizes_.clear();
        for (const auto& server : state->servers) {
          sizes_.insert(server.region_bytes.begin(), server.region_bytes.end());
        }
      }
    }
    executor_->Post(once);
  });
  if (!first) return once();
  executor_->PostAfter(options_.patience, once);
}

uint64_t RegionSizes::Of(const std::string& encoded) const {
  std::lock_guard lock(mutex_);
  const auto size = sizes_.find(encoded);
  return size == sizes_.end() ? 0 : size->second;
}

}  // namespace tamis
