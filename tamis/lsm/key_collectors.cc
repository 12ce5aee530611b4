#include "tamis/lsm/key_collectors.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace tamis::lsm {
namespace {

// A little memory for collectors where there is no other, since RocksDB takes no refusal. More of
// them than there are places are never being filled at the same time.
class SparePlaces {
 public:
  static constexpr size_t kPlaces = 64;
  static constexpr size_t kSize = 128;

  static void* Take() {
    for (size_t i = 0; i < kPlaces; ++i) {
      if (!taken_[i].exchange(true)) return places_[i];
    }
    throw std::bad_alloc();
  }
  // False: it is none of these.
  static bool GiveBack(void* place) noexcept {
    const auto at = static_cast<const char*>(place) - places_[0];
    if (at < 0 || at >= static_cast<std::ptrdiff_t>(kPlaces * kSize)) return false;
    taken_[static_cast<size_t>(at) / kSize] = false;
    return true;
  }

 private:
  alignas(std::max_align_t) static inline char places_[kPlaces][kSize];
  static inline std::atomic<bool> taken_[kPlaces];
};

class Collector : public rocksdb::TablePropertiesCollector {
 public:
  Collector(std::shared_ptr<HookState> state, uint32_t family)
      : state_(std::move(state)), family_(family), collects_(family != HookState::kNoFamily) {}

  static void* operator new(size_t size) {
    static_assert(sizeof(Collector) <= SparePlaces::kSize);
    void* const place = ::operator new(size, std::nothrow);
    return place != nullptr ? place : SparePlaces::Take();
  }
  static void operator delete(void* place) noexcept {
    if (!SparePlaces::GiveBack(place)) ::operator delete(place);
  }

  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice&,
                             rocksdb::EntryType type, rocksdb::SequenceNumber, uint64_t) override {
    if (!collects_ || lacks_keys_ || type == rocksdb::kEntryRangeDeletion) {
      return rocksdb::Status::OK();
    }
    lacks_keys_ = !Guarded(state_.get(), family_, [&] {
      const uint64_t hash = state_->tree().HashOf(family_, key.ToStringView());
      if (hashes_.empty() || hashes_.back() != hash) hashes_.push_back(hash);
    });
    if (lacks_keys_) std::vector<uint64_t>().swap(hashes_);
    return rocksdb::Status::OK();
  }

  // Is called more than once.
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    // Without some of them no key file may be written, which a later opening would believe.
    if (!collects_ || lacks_keys_) return rocksdb::Status::OK();
    Guarded(state_.get(), family_, [&] {
      static std::atomic<uint64_t> next{1};
      if (collection_ == 0) {
        collection_ = next.fetch_add(1);
        state_->collected().Add(collection_, family_, std::move(hashes_));
      }
      (*properties)[HookState::kCollection] = std::to_string(collection_);
    });
    return rocksdb::Status::OK();
  }

  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
  const char* Name() const override { return HookState::kHookName; }

 private:
  const std::shared_ptr<HookState> state_;
  const uint32_t family_;
  const bool collects_;
  uint64_t collection_ = 0;
  bool lacks_keys_ = false;
  std::vector<uint64_t> hashes_;
};

}  // namespace

rocksdb::TablePropertiesCollector* KeyCollectors::CreateTablePropertiesCollector(Context context) {
  // A file that an SstFileWriter writes has no level and causes no event. Its keys are read when
  // it is ingested.
  const bool is_of_database = context.level_at_creation != Context::kUnknownLevelAtCreation;
  return new Collector(state_, is_of_database ? context.column_family_id : HookState::kNoFamily);
}

}  // namespace tamis::lsm
