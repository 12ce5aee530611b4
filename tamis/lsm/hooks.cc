#include "tamis/lsm/hooks.h"

#include <rocksdb/db.h>
#include <rocksdb/listener.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/lsm/key_collectors.h"
#include "tamis/lsm/rocksdb_version.h"
#include "tamis/lsm/watched_memtables.h"

namespace tamis::lsm {
namespace {

// How many keys the first memtables hold is guessed; a filter that is filled beyond has to ask one
// line more.
constexpr uint64_t kBytesOfKey = 256;
constexpr uint64_t kMostGuessed = 1 << 20;

class Listener : public rocksdb::EventListener {
 public:
  explicit Listener(std::shared_ptr<HookState> state) : state_(std::move(state)) {}
  const char* Name() const override { return HookState::kHookName; }

  void OnTableFileCreated(const rocksdb::TableFileCreationInfo& info) noexcept override {
    if (Attempt([&] { state_->OnCreated(info); }) || !info.status.ok()) return;
    if (const auto family = state_->FamilyOf(info))
      state_->tree().families().AddBypassReasons(*family, kNoMemory);
  }
  // A deletion that cannot be noted leaves the copies of its keys, as false positives.
  void OnTableFileDeleted(const rocksdb::TableFileDeletionInfo& info) noexcept override {
    Attempt([&] { state_->OnDeleted(info.db_name, info.file_path); });
  }
  // The memtable's filter was retired. While no file is deleted, only this wakes the thread that
  // frees it.
  void OnFlushCompleted(rocksdb::DB* db, const rocksdb::FlushJobInfo& info) noexcept override {
    Attempt([&] { state_->OnFlushed(db->GetName(), info.file_path); });
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
    if (!state_->IsOurs(db->GetName())) return;
    Attempt([&] {
      if (const auto family = state_->FamilyNamed(info.cf_name)) {
        state_->bypassed().OnFlushed(*family);
      }
    });
#endif
  }
#if TAMIS_ROCKSDB_BYPASSES_MEMTABLES
  void OnMemTableSealed(const rocksdb::MemTableInfo& info) noexcept override {
    const auto family = state_->FamilyNamed(info.cf_name);
    if (!family.has_value()) return;
    Guarded(state_.get(), family, [&] { state_->bypassed().OnSealed(*family); });
  }
  void OnColumnFamilyHandleDeletionStarted(rocksdb::ColumnFamilyHandle* handle) override {
    state_->bypassed().Forget(handle);
  }
#endif
  // A compaction that cannot be noted has unknown inputs, like a compaction that was not announced.
  void OnCompactionBegin(rocksdb::DB* db,
                         const rocksdb::CompactionJobInfo& info) noexcept override {
    if (!state_->IsOurs(db->GetName())) return;
    Attempt([&] {
      std::vector<TreeFilter::FileNumber> inputs;
      for (const rocksdb::CompactionFileInfo& file : info.input_file_infos) {
        inputs.push_back(file.file_number);
      }
      state_->tree().CompactionBegan(info.job_id, std::move(inputs));
    });
  }
  void OnCompactionCompleted(rocksdb::DB* db,
                             const rocksdb::CompactionJobInfo& info) noexcept override {
    if (!state_->IsOurs(db->GetName())) return;
    state_->tree().CompactionEnded(info.job_id);
  }
  void OnExternalFileIngested(rocksdb::DB* db,
                              const rocksdb::ExternalFileIngestionInfo& info) noexcept override {
    if (!state_->IsOurs(db->GetName())) return;
    Guarded(state_.get(), state_->FamilyNamed(info.cf_name), [&] { state_->OnIngested(info); });
  }

  bool IsOf(const HookState* state) const { return state_.get() == state; }

 private:
  const std::shared_ptr<HookState> state_;
};

}  // namespace

bool HasListener(const HookState* state, const rocksdb::DBOptions& options) {
  return std::ranges::any_of(options.listeners, [&](const auto& listener) {
    return std::string_view(listener->Name()) == HookState::kHookName &&
           static_cast<const Listener&>(*listener).IsOf(state);
  });
}

bool HasCollector(const HookState* state, const rocksdb::ColumnFamilyOptions& options) {
  return std::ranges::any_of(options.table_properties_collector_factories, [&](const auto& one) {
    return std::string_view(one->Name()) == HookState::kHookName &&
           static_cast<const KeyCollectors&>(*one).IsOf(state);
  });
}

bool HasWatchedMemtables(const HookState* state, const rocksdb::ColumnFamilyOptions& options) {
  return options.memtable_factory != nullptr &&
         WatchedMemtables::AreOf(state, *options.memtable_factory);
}

// Does nothing if the options have the hook, as those of an open database do.
void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::DBOptions* options) {
  if (!HasListener(state.get(), *options))
    options->listeners.push_back(std::make_shared<Listener>(state));
}

void AttachTo(const std::shared_ptr<HookState>& state, rocksdb::ColumnFamilyOptions* options) {
  if (!HasCollector(state.get(), *options))
    options->table_properties_collector_factories.push_back(std::make_shared<KeyCollectors>(state));
  // With other memtables the handles are not keys that could be read.
  const auto& memtables = options->memtable_factory;
  if (memtables != nullptr && !WatchedMemtables::AreOf(state.get(), *memtables) &&
      std::string_view(memtables->Name()) == rocksdb::SkipListFactory::kClassName()) {
    const uint64_t guess = std::min(options->write_buffer_size / kBytesOfKey, kMostGuessed);
    options->memtable_factory = std::make_shared<WatchedMemtables>(memtables, state, guess);
  }
}

}  // namespace tamis::lsm
