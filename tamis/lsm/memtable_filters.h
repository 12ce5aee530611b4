// MemtableFilter: a filter of the keys of one memtable, from the making of the memtable until its
// keys are counted as those of a file. Insert-only. Any number of threads insert and ask at the
// same time.
//
//   Layout   lines of 64 bytes; a key sets three bits in each of two words of one line. A layer has
//            16 bits a key; when it has its keys, a layer four times as large is put before it
//   FP rate  about 0.2 % a layer
//   Size     for a quarter more keys than the last memtables held, or the first ones are to hold
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/lsm/grace_period.h"

namespace tamis::lsm {

class MemtableFilter {
 public:
  explicit MemtableFilter(uint64_t expected_keys);
  ~MemtableFilter();
  MemtableFilter(const MemtableFilter&) = delete;
  MemtableFilter& operator=(const MemtableFilter&) = delete;

  // The key is found from the return of this call on. When memory does not suffice to grow, the
  // filter becomes fuller than it should, and its rate higher.
  void Add(uint64_t hash) { AddAs<true>(hash); }
  // The same without a locked instruction. REQUIRES: no other thread adds at the same time.
  void AddAlone(uint64_t hash) { AddAs<false>(hash); }
  bool MayContain(uint64_t hash) const {
    for (const Layer* layer = newest_.load(std::memory_order_acquire); layer != nullptr;
         layer = layer->older) {
      const Place place = PlaceOf(hash, layer->lines);
      const uint64_t* const words = layer->words;
      if ((Load(words + place.word[0]) & place.bits[0]) == place.bits[0] &&
          (Load(words + place.word[1]) & place.bits[1]) == place.bits[1]) {
        return true;
      }
    }
    return false;
  }
  void Prefetch(uint64_t hash) const {
    const Layer* const layer = newest_.load(std::memory_order_acquire);
    __builtin_prefetch(layer->words + FastRange(hash, layer->lines) * kLineWords);
  }

  uint64_t keys() const;  // an estimate; a key that was added twice counts twice
  uint64_t size_bytes() const;

 private:
  // Memory of zeros whose pages stay untouched until used: with many families most memtables stay
  // empty.
  struct Layer {
    Layer(uint64_t lines, Layer* older);
    ~Layer();
    const uint64_t lines;
    void* const zeros;
    uint64_t* const words;  // in these, aligned
    Layer* const older;
    std::atomic<uint64_t> sampled{0};  // added keys; one of kSample is counted
  };
  struct Place {
    uint64_t word[2];
    uint64_t bits[2];
  };

  static constexpr uint64_t kSample = 16;
  static constexpr uint64_t kKeysPerLine = 32;

  static constexpr uint64_t kLineWords = 8;

  static uint64_t Load(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
  // The line is taken from the upper bits of the hash, the rest from both halves of a product, in
  // which each bit of the hash has its part.
  static Place PlaceOf(uint64_t hash, uint64_t lines) {
    const uint64_t line = FastRange(hash, lines) * kLineWords;
    const auto product = static_cast<unsigned __int128>(hash) * 0x9e3779b97f4a7c15u;
    const uint64_t x = static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
    const uint64_t first = x % kLineWords;
    const uint64_t second = first ^ (1 + ((x >> 3 & 0xffff) * 7 >> 16));
    const auto bits = [](uint64_t from) {
      return uint64_t{1} << (from & 63) | uint64_t{1} << (from >> 6 & 63) |
             uint64_t{1} << (from >> 12 & 63);
    };
    return {{line + first, line + second}, {bits(x >> 19), bits(x >> 37)}};
  }
  template <bool kBesideOthers>
  void AddAs(uint64_t hash) noexcept;
  void AddLayer(Layer* full) noexcept;

  friend class MemtableFilters;
  bool has_ended_ = false;  // by MemtableFilters, under its mutex
  std::atomic<Layer*> newest_;
  std::mutex growing_;
};

// The filters of the memtables of one column family.
class MemtableFilters {
 public:
  // Memory that readers may still use is handed to `grace`.
  explicit MemtableFilters(GracePeriod* grace);
  ~MemtableFilters();

  // Makes the filter of a new memtable. `guess`: how many keys it will hold; used only as long as
  // no memtable of the family has ended, else the filter is sized like the last ones.
  std::shared_ptr<MemtableFilter> Begin(uint64_t guess);
  // Readers do not ask the filter any more; when memory does not suffice, from the next Begin or
  // End on. A second call does nothing.
  void End(const MemtableFilter* filter) noexcept;

  // REQUIRES: a guard of `grace` is held.
  bool MayContain(uint64_t hash) const {
    for (const auto& filter : *filters_.load(std::memory_order_seq_cst)) {
      if (filter->MayContain(hash)) return true;
    }
    return false;
  }
  void Prefetch(uint64_t hash) const {
    for (const auto& filter : *filters_.load(std::memory_order_seq_cst)) filter->Prefetch(hash);
  }
  uint64_t size_bytes() const;
  uint64_t Count() const;  // the number of those that have not ended

 private:
  using List = std::vector<std::shared_ptr<MemtableFilter>>;

  List NotEnded() const;
  void Publish(List list);

  GracePeriod* const grace_;
  std::atomic<const List*> filters_;
  mutable std::mutex mutex_;
  std::shared_ptr<const List> current_;
  std::array<uint64_t, 4> held_{};  // by the last memtables, or guessed
  uint64_t ended_ = 0;
};

}  // namespace tamis::lsm
