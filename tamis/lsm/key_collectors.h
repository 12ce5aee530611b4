// KeyCollectors: makes a collector of the keys of each SST file that RocksDB writes. The keys are
// complete in HookState::collected() before the file is announced; where memory does not suffice,
// the family of the file passes through.
//
// Threads: safe.
#pragma once

#include <rocksdb/table_properties.h>

#include <memory>
#include <utility>

#include "tamis/lsm/hook_state.h"

namespace tamis::lsm {

class KeyCollectors : public rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit KeyCollectors(std::shared_ptr<HookState> state) : state_(std::move(state)) {}
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context context) override;
  const char* Name() const override { return HookState::kHookName; }
  bool IsOf(const HookState* state) const { return state_.get() == state; }

 private:
  const std::shared_ptr<HookState> state_;
};

}  // namespace tamis::lsm
