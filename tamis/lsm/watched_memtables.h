// WatchedMemtables: a factory that makes the memtables of another one, and shows the filter each
// key before the memtable takes it.
//
// It keeps the name of the other factory, so that the OPTIONS file stays readable without us. Where
// memory does not suffice, the memtable is not watched, and its family passes
// through.
//
// Threads: as rocksdb::MemTableRepFactory.
#pragma once

#include <rocksdb/memtablerep.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "tamis/lsm/hook_state.h"

namespace tamis::lsm {

class WatchedMemtables : public rocksdb::MemTableRepFactory {
 public:
  WatchedMemtables(std::shared_ptr<rocksdb::MemTableRepFactory> memtables,
                   std::shared_ptr<HookState> state, uint64_t guess)
      : memtables_(std::move(memtables)), state_(std::move(state)), guess_(guess) {}

  // Whether the factory is one of these for this filter, or wraps one of them and says so.
  static bool AreOf(const HookState* state, const rocksdb::MemTableRepFactory& memtables) {
    return memtables.IsInstanceOf(InstanceName(state));
  }

  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger) override {
    // RocksDB does not say here which family the memtable belongs to, so it is not watched.
    return memtables_->CreateMemTableRep(comparator, allocator, transform, logger);
  }
  rocksdb::MemTableRep* CreateMemTableRep(const rocksdb::MemTableRep::KeyComparator& comparator,
                                          rocksdb::Allocator* allocator,
                                          const rocksdb::SliceTransform* transform,
                                          rocksdb::Logger* logger, uint32_t family) override;
  const char* Name() const override { return memtables_->Name(); }
  std::string GetId() const override { return memtables_->GetId(); }
  bool IsInstanceOf(const std::string& name) const override {
    return name == InstanceName(state_.get()) || memtables_->IsInstanceOf(name);
  }
  bool IsInsertConcurrentlySupported() const override {
    return memtables_->IsInsertConcurrentlySupported();
  }
  bool CanHandleDuplicatedKey() const override { return memtables_->CanHandleDuplicatedKey(); }

 private:
  // A name that no other factory has, since there is no type information to ask in all builds.
  static std::string InstanceName(const HookState* state) {
    return std::string(HookState::kHookName) + ".memtables." +
           std::to_string(reinterpret_cast<uintptr_t>(state));
  }

  const std::shared_ptr<rocksdb::MemTableRepFactory> memtables_;
  const std::shared_ptr<HookState> state_;
  const uint64_t guess_;  // how many keys one holds
};

}  // namespace tamis::lsm
