// Filters of the keys in memtables: one a memtable, from its making to when what it holds has been
// counted elsewhere. Insert-only, and any number of threads insert and ask at the same time.
//
//   Layout   lines of 64 bytes; a key sets three bits in each of two words of one line. A layer has
//            16 bits a key; when it has its keys, a layer four times as large is put before it
//   FP rate  about 0.2 % a layer
//   Size     what the last memtables held, and a quarter
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "tamis/filter/word_array.h"
#include "tamis/lsm/grace_period.h"

namespace tamis::lsm {

class MemtableFilter {
 public:
  explicit MemtableFilter(uint64_t expected_keys);
  ~MemtableFilter();
  MemtableFilter(const MemtableFilter&) = delete;
  MemtableFilter& operator=(const MemtableFilter&) = delete;

  // From its return on the key is found.
  void Add(uint64_t hash);
  bool MayContain(uint64_t hash) const;
  void Prefetch(uint64_t hash) const;

  uint64_t keys() const;  // about, repeated ones again
  uint64_t size_bytes() const;

 private:
  struct Layer {
    Layer(uint64_t lines, Layer* older);
    uint64_t lines;
    WordArray words;
    Layer* older;
    std::atomic<uint64_t> sampled{0};  // of kSample keys one
  };
  struct Place {
    uint64_t word[2];
    uint64_t bits[2];
  };

  static constexpr uint64_t kSample = 16;
  static constexpr uint64_t kKeysPerLine = 32;

  static Place PlaceOf(uint64_t hash, uint64_t lines);
  void AddLayer(Layer* full);

  std::atomic<Layer*> newest_;
  std::mutex growing_;
};

// Those of one column family.
class MemtableFilters {
 public:
  // What readers may still use is handed to `grace`.
  explicit MemtableFilters(GracePeriod* grace);
  ~MemtableFilters();

  std::shared_ptr<MemtableFilter> Begin();
  // Readers do not ask it any more. Again: nothing.
  void End(const MemtableFilter* filter);

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

 private:
  using List = std::vector<std::shared_ptr<MemtableFilter>>;

  void Publish(List list);

  GracePeriod* const grace_;
  std::atomic<const List*> filters_;
  mutable std::mutex mutex_;
  std::shared_ptr<const List> current_;
  std::array<uint64_t, 4> held_{};  // by the last memtables
  uint64_t ended_ = 0;
};

}  // namespace tamis::lsm
