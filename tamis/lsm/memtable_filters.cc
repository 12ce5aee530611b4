#include "tamis/lsm/memtable_filters.h"

#include <algorithm>

#include "tamis/base/hash.h"

namespace tamis::lsm {
namespace {

constexpr uint64_t kFirstKeys = 1 << 15;
constexpr uint64_t kLeastKeys = 1 << 10;
constexpr uint64_t kLineWords = 8;

uint64_t Load(const uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }

}  // namespace

MemtableFilter::Layer::Layer(uint64_t lines, Layer* older)
    : lines(lines), words(lines * kLineWords), older(older) {}

MemtableFilter::MemtableFilter(uint64_t expected_keys)
    : newest_(new Layer(expected_keys / kKeysPerLine + 1, nullptr)) {}

MemtableFilter::~MemtableFilter() {
  for (const Layer* layer = newest_.load(); layer != nullptr;) {
    const std::unique_ptr<const Layer> owned(layer);
    layer = layer->older;
  }
}

MemtableFilter::Place MemtableFilter::PlaceOf(uint64_t hash, uint64_t lines) {
  const uint64_t line = FastRange(hash, lines) * kLineWords;
  const uint64_t x = hash * 0x9e3779b97f4a7c15u;  // the line is taken from the upper bits
  const uint64_t y = Mix(hash);
  const uint64_t first = x >> 61;
  const uint64_t second = (first + 1 + (x >> 40 & 0xffff) % 7) % kLineWords;
  const auto bits = [](uint64_t from) {
    return uint64_t{1} << (from & 63) | uint64_t{1} << (from >> 6 & 63) |
           uint64_t{1} << (from >> 12 & 63);
  };
  return {{line + first, line + second}, {bits(y), bits(y >> 20)}};
}

void MemtableFilter::Add(uint64_t hash) {
  Layer* const layer = newest_.load(std::memory_order_acquire);
  const Place place = PlaceOf(hash, layer->lines);
  uint64_t* const words = layer->words.MutableData();
  for (int i = 0; i < 2; ++i) {
    if ((Load(words + place.word[i]) & place.bits[i]) == place.bits[i]) continue;
    __atomic_fetch_or(words + place.word[i], place.bits[i], __ATOMIC_SEQ_CST);
  }
  // Other bits than those that tell the line.
  if ((hash >> 20) % kSample != 0) return;
  const uint64_t sampled = layer->sampled.fetch_add(1, std::memory_order_relaxed) + 1;
  if (sampled * kSample > layer->lines * kKeysPerLine) AddLayer(layer);
}

void MemtableFilter::AddLayer(Layer* full) {
  const std::lock_guard lock(growing_);
  if (newest_.load(std::memory_order_relaxed) != full) return;
  newest_.store(new Layer(4 * full->lines, full), std::memory_order_release);
}

bool MemtableFilter::MayContain(uint64_t hash) const {
  for (const Layer* layer = newest_.load(std::memory_order_acquire); layer != nullptr;
       layer = layer->older) {
    const Place place = PlaceOf(hash, layer->lines);
    const uint64_t* const words = layer->words.data();
    if ((Load(words + place.word[0]) & place.bits[0]) == place.bits[0] &&
        (Load(words + place.word[1]) & place.bits[1]) == place.bits[1]) {
      return true;
    }
  }
  return false;
}

void MemtableFilter::Prefetch(uint64_t hash) const {
  const Layer* const layer = newest_.load(std::memory_order_acquire);
  __builtin_prefetch(layer->words.data() + FastRange(hash, layer->lines) * kLineWords);
}

uint64_t MemtableFilter::keys() const {
  uint64_t sampled = 0;
  for (const Layer* layer = newest_.load(std::memory_order_acquire); layer != nullptr;
       layer = layer->older) {
    sampled += layer->sampled.load(std::memory_order_relaxed);
  }
  return sampled * kSample;
}

uint64_t MemtableFilter::size_bytes() const {
  uint64_t size = 0;
  for (const Layer* layer = newest_.load(std::memory_order_acquire); layer != nullptr;
       layer = layer->older) {
    size += layer->words.size_bytes();
  }
  return size;
}

MemtableFilters::MemtableFilters(GracePeriod* grace)
    : grace_(grace), current_(std::make_shared<const List>()) {
  filters_ = current_.get();
  held_.fill(kFirstKeys);
}

MemtableFilters::~MemtableFilters() = default;

void MemtableFilters::Publish(List list) {
  auto next = std::make_shared<const List>(std::move(list));
  filters_.store(next.get(), std::memory_order_seq_cst);
  grace_->Retire(std::exchange(current_, std::move(next)));
}

std::shared_ptr<MemtableFilter> MemtableFilters::Begin() {
  const std::lock_guard lock(mutex_);
  const uint64_t most = *std::ranges::max_element(held_);
  auto filter = std::make_shared<MemtableFilter>(std::max(kLeastKeys, most + most / 4));
  List list = *current_;
  list.push_back(filter);
  Publish(std::move(list));
  return filter;
}

void MemtableFilters::End(const MemtableFilter* filter) {
  const std::lock_guard lock(mutex_);
  List list = *current_;
  if (std::erase_if(list, [&](const auto& one) { return one.get() == filter; }) == 0) return;
  held_[ended_++ % held_.size()] = filter->keys();
  Publish(std::move(list));
}

uint64_t MemtableFilters::size_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t size = 0;
  for (const auto& filter : *current_) size += filter->size_bytes();
  return size;
}

}  // namespace tamis::lsm
