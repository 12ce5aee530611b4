// IndexCounters: one generation of an index filter: a counter for each position; or, where memory
// is short, only one bit for each position, which says that the counter would be above 0. Bits are
// never cleared; a removal that leaves them set is counted as ignored.
//
// Both are layers of the same geometry with the same rule for where a hash goes
// (scalable_split_counting_bloom_filter.h), so coordinators see no difference.
//
// Threads: as a value.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "tamis/filter/scalable_split_counting_bloom_filter.h"

namespace tamis {

// The layers of a scalable split counting Bloom filter, a bit for each counter.
class BitLayers {
 public:
  explicit BitLayers(SplitGeometry geometry) : geometry_(geometry) { AddLayer(); }

  // Calls on_flip(layer, position, true) for each bit that was not set.
  template <class OnFlip>
  void Insert(uint64_t hash, OnFlip&& on_flip) {
    const uint32_t layer = LayerFor(hash);
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      const uint64_t position = geometry_.Position(hash, s);
      uint64_t& word = layers_[layer].words[position / 64];
      const uint64_t bit = uint64_t{1} << (position % 64);
      if ((word & bit) != 0) continue;
      word |= bit;
      ++layers_[layer].ones;
      on_flip(layer, position, true);
    }
    ++count_;
  }
  // Leaves the bits set, since other hashes may need them; counts the removal as ignored.
  template <class OnFlip>
  void Erase(uint64_t hash, OnFlip&& on_flip) {
    count_ -= count_ > 0;
    ++ignored_;
    const std::optional<uint32_t> layer = FindLayer(hash);
    if (!erase_bits_ || !layer) return;
    for (uint32_t s = 0; s < geometry_.slices; ++s) {
      const uint64_t position = geometry_.Position(hash, s);
      layers_[*layer].words[position / 64] &= ~(uint64_t{1} << (position % 64));
      on_flip(*layer, position, false);
    }
  }
  std::optional<uint32_t> FindLayer(uint64_t hash) const;

  uint32_t layers() const { return static_cast<uint32_t>(layers_.size()); }
  double Fill(uint32_t layer) const {
    return static_cast<double>(layers_[layer].ones) / static_cast<double>(geometry_.positions());
  }
  const std::vector<uint64_t>& Projection(uint32_t layer) const { return layers_[layer].words; }
  const SplitGeometry& geometry() const { return geometry_; }
  size_t SizeBytes() const { return layers_.size() * LayerWords() * sizeof(uint64_t); }
  uint64_t Count() const { return count_; }  // inserted less erased
  uint64_t ignored() const { return ignored_; }

  // A fault for tests that want to see a value lost.
  void set_erase_bits_for_test(bool on) { erase_bits_ = on; }

 private:
  struct Layer {
    std::vector<uint64_t> words;
    uint64_t ones = 0;
  };

  size_t LayerWords() const { return (geometry_.positions() + 63) / 64; }
  void AddLayer() { layers_.push_back({std::vector<uint64_t>(LayerWords())}); }
  uint32_t LayerFor(uint64_t hash);

  SplitGeometry geometry_;
  uint64_t count_ = 0;
  uint64_t ignored_ = 0;
  bool erase_bits_ = false;
  std::vector<Layer> layers_;
};

class IndexCounters {
 public:
  explicit IndexCounters(ScalableSplitCountingBloomFilter counters) : form_(std::move(counters)) {}
  explicit IndexCounters(BitLayers bits) : form_(std::move(bits)) {}

  bool bits_only() const { return std::holds_alternative<BitLayers>(form_); }
  // nullptr when only bits are kept.
  const ScalableSplitCountingBloomFilter* counters() const {
    return std::get_if<ScalableSplitCountingBloomFilter>(&form_);
  }
  static size_t CounterBytes(SplitGeometry geometry) {
    return ScalableSplitCountingBloomFilter::LayerBytes(geometry);
  }

  // Calls on_flip(layer, position, set) for each bit that changes.
  template <class OnFlip>
  void Insert(uint64_t hash, OnFlip&& on_flip) {
    std::visit([&](auto& form) { form.Insert(hash, on_flip); }, form_);
  }
  template <class OnFlip>
  void Erase(uint64_t hash, OnFlip&& on_flip) {
    std::visit([&](auto& form) { form.Erase(hash, on_flip); }, form_);
  }

  // The first layer that holds the hash.
  std::optional<uint32_t> FindLayer(uint64_t hash) const {
    return std::visit([&](const auto& form) { return form.FindLayer(hash); }, form_);
  }
  // An upper bound for how often the hash was inserted and not erased; nullopt when the counters do
  // not give one, or only bits are kept.
  std::optional<uint64_t> CountBound(uint64_t hash) const;

  const SplitGeometry& geometry() const {
    return std::visit([](const auto& form) -> const SplitGeometry& { return form.geometry(); },
                      form_);
  }
  uint32_t layers() const {
    return std::visit([](const auto& form) { return form.layers(); }, form_);
  }
  double Fill(uint32_t layer) const;  // share of its positions that are in use
  // Distinct hashes, estimated from how full the layers are.
  uint64_t Distinct() const;
  std::vector<uint64_t> Projection(uint32_t layer) const {
    return std::visit(
        [&](const auto& form) -> std::vector<uint64_t> { return form.Projection(layer); }, form_);
  }
  size_t SizeBytes() const {
    return std::visit([](const auto& form) { return form.SizeBytes(); }, form_);
  }
  uint64_t Count() const;  // inserted less erased, whatever the erases could lower
  // Erases that left all bits of their hash where a recount would clear them.
  uint64_t Ignored() const;

 private:
  std::variant<ScalableSplitCountingBloomFilter, BitLayers> form_;
};

}  // namespace tamis
