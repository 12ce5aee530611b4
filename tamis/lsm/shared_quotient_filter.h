// A blocked quotient filter that one thread changes while any number of others ask it.
//
// It is the exact multiset of the hashes that were added and not removed; of each hash it keeps a
// place and a fingerprint. Readers neither lock nor wait: a reader that the writer disturbs asks
// again, and after a few times answers "perhaps".
//
//   Layout      sections by the hash's first byte; a shard is a BlockedQuotientFilter of 1, 2, 4
//               ... or all 256 sections, with LineVersions. Small filters have one shard
//   Copies      beyond the filter's 16 are counted beside it, by place and fingerprint: keys that
//               share these share their 16 copies, so a count by hash could lose one of them
//   Growth      a shard that is going to be full, or is half empty, is made again from its keys, a
//               quarter larger than they need; when its keys are not known, it is doubled (Grow)
//   Failure     a shard that can neither be made again nor doubled says "perhaps" to all. A lack of
//               memory is thrown by Reserve, Trim, Renew and MakeRoom, and leaves a filter with the
//               same keys; Apply throws nothing
//   Threads     MayContain: any. All others: one at a time
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/filter/blocked_quotient_filter.h"
#include "tamis/lsm/grace_period.h"

namespace tamis::lsm {

class SharedQuotientFilter {
 public:
  static constexpr uint32_t kSections = 256;
  static uint32_t SectionOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 56); }

  // Gives the hashes of all keys in the filter that lie in [first, last) of the sections, in order,
  // with all copies; false when they are not known.
  using Keys = std::function<bool(uint32_t first, uint32_t last, std::vector<uint64_t>* hashes)>;

  // `shard_keys`: a shard with more keys is split when it is made again; only tests use less than
  // the default. Readers hold a guard of `grace`, which must outlive the filter.
  static Result<std::unique_ptr<SharedQuotientFilter>> Create(double fpr, GracePeriod* grace,
                                                              uint64_t shard_keys = 1 << 16);
  ~SharedQuotientFilter();

  // REQUIRES: a guard of the grace period is held.
  bool MayContain(uint64_t hash) const {
    using Answer = BlockedQuotientFilter::Answer;
    const Shard& shard = *At(SectionOf(hash));
    const Answer answer = shard.reader.MayContain(shard.HashIn(hash));
    if (answer == Answer::kDisturbed) [[unlikely]]
      return AskAgain(shard, hash);
    // Looked at after the lines: it is set before a key is left out.
    return answer == Answer::kPerhaps || shard.passing.load(std::memory_order_acquire);
  }
  void Prefetch(uint64_t hash) const {
    const Shard& shard = *At(SectionOf(hash));
    shard.reader.Prefetch(shard.HashIn(hash));
  }

  // Changes the filter; hashes are sorted. Call in this order: Reserve (with the keys before the
  // change), Apply, Trim (with the keys after it); or ReserveAll, then Apply for each, then Trim.
  void Reserve(std::span<const uint64_t> added, const Keys& keys);
  void ReserveAll(std::span<const std::vector<uint64_t>> added, const Keys& keys);
  void Apply(std::span<const uint64_t> added, std::span<const uint64_t> removed) noexcept;
  void Trim(const Keys& keys);
  // Makes the whole filter again, with room for so many more keys in each section, and for `spare`
  // (0.25: a quarter) more than that. False, and nothing has changed, when the keys are not known.
  using Counts = std::array<uint64_t, kSections>;
  bool MakeRoom(const Counts& coming, const Keys& keys, double spare);
  // Makes the shard at `section` again, with its neighbours when they are small. Returns the
  // section behind them; nullopt when the keys are not known.
  std::optional<uint32_t> Renew(uint32_t section, const Keys& keys);

  struct Figures {
    uint64_t keys = 0;    // copies
    uint64_t excess = 0;  // the sum of their excess beyond 16
    uint64_t shards = 0;
    uint64_t size_bytes = 0;
    uint64_t rebuilt = 0;  // shards
    uint64_t doubled = 0;
    uint64_t passing = 0;  // shards that say "perhaps" to all
    uint64_t missed = 0;   // removals of what was not there: a bug of the caller
    double expected_fpr = 0;
  };
  Figures figures() const;
  // Questions that the writer disturbed too often; any thread.
  uint64_t disturbed() const { return disturbed_.load(std::memory_order_relaxed); }
  // Whether each shard is, byte by byte, what these keys make.
  bool IsExactly(const Keys& keys) const;

 private:
  struct Shard {
    Shard(BlockedQuotientFilter made, uint32_t first, uint32_t count, uint64_t capacity);

    uint64_t HashIn(uint64_t hash) const { return hash << shift; }
    uint64_t Count() const { return filter.Count() + excess_count; }

    BlockedQuotientFilter filter;
    LineVersions versions;
    // All that most lookups read of a shard, in one line.
    alignas(64) const BlockedQuotientFilter::Reader reader;
    const uint32_t shift;  // the bits of a hash that are the same in the whole shard
    std::atomic<bool> passing = false;
    const uint32_t first;     // section
    const uint32_t count;     // the number of sections
    const uint64_t capacity;  // in copies that take a slot
    uint64_t excess_count = 0;
    std::map<std::pair<uint64_t, uint64_t>, uint64_t> excess;  // (line, fingerprint) -> copies
  };
  using Shards = std::vector<std::unique_ptr<Shard>>;

  SharedQuotientFilter(double fpr, GracePeriod* grace, uint64_t shard_keys)
      : fpr_(fpr), grace_(grace), shard_keys_(shard_keys) {}

  Shard* At(uint32_t section) const { return shards_[section].load(std::memory_order_seq_cst); }
  bool AskAgain(const Shard& shard, uint64_t hash) const;
  static void Add(Shard* shard, uint64_t hash) noexcept;
  void Remove(Shard* shard, uint64_t hash) noexcept;
  uint64_t CapacityFor(uint64_t keys, double spare) const;
  // `room`: the slots' worth of keys; `capacity`: of keys as they are, with their copies.
  std::unique_ptr<Shard> MakeShard(uint32_t first, uint32_t count, uint64_t room,
                                   uint64_t capacity) const;
  // Shards for these sections, which hold these hashes and have room for so many more in
  // [first, last) of the sections.
  using Coming = std::function<uint64_t(uint32_t first, uint32_t last)>;
  void Make(uint32_t first, uint32_t count, std::span<const uint64_t> hashes, const Coming& coming,
            double spare, Shards* made) const;
  void ReserveFor(const Coming& coming, const Keys& keys);
  // Puts them in the place of those that are there.
  void Install(Shards made);
  bool MakeAnew(uint32_t first, uint32_t count, const Keys& keys, const Coming& coming);
  bool Double(Shard* shard);
  template <class Visit>
  void ForEachShard(Visit&& visit) const;

  const double fpr_;
  GracePeriod* const grace_;
  const uint64_t shard_keys_;
  std::array<std::atomic<Shard*>, kSections> shards_{};
  mutable std::atomic<uint64_t> disturbed_{0};
  uint64_t rebuilt_ = 0;
  uint64_t doubled_ = 0;
  uint64_t missed_ = 0;
};

}  // namespace tamis::lsm
