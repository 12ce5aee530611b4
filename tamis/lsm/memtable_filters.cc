#include "tamis/lsm/memtable_filters.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace tamis::lsm {
namespace {

constexpr uint64_t kLeastKeys = 1 << 10;
constexpr uint64_t kLineBytes = 64;

// The first line that begins there or after it.
uint64_t* FirstLine(void* bytes) {
  const uintptr_t into_line = reinterpret_cast<uintptr_t>(bytes) % kLineBytes;
  return reinterpret_cast<uint64_t*>(static_cast<char*>(bytes) +
                                     (kLineBytes - into_line) % kLineBytes);
}

}  // namespace

MemtableFilter::Layer::Layer(uint64_t lines, Layer* older)
    : lines(lines),
      zeros(std::calloc(lines + 1, kLineBytes)),
      words(FirstLine(zeros)),
      older(older) {
  if (zeros == nullptr) throw std::bad_alloc();
}

MemtableFilter::Layer::~Layer() { std::free(zeros); }

MemtableFilter::MemtableFilter(uint64_t expected_keys)
    : newest_(new Layer(expected_keys / kKeysPerLine + 1, nullptr)) {}

MemtableFilter::~MemtableFilter() {
  for (const Layer* layer = newest_.load(); layer != nullptr;) {
    const std::unique_ptr<const Layer> owned(layer);
    layer = layer->older;
  }
}

template <bool kBesideOthers>
void MemtableFilter::AddAs(uint64_t hash) noexcept {
  Layer* const layer = newest_.load(std::memory_order_acquire);
  const Place place = PlaceOf(hash, layer->lines);
  uint64_t* const words = layer->words;
  for (int i = 0; i < 2; ++i) {
    uint64_t* const word = words + place.word[i];
    const uint64_t old = Load(word);
    if ((old & place.bits[i]) == place.bits[i]) continue;
    if (kBesideOthers) {
      __atomic_fetch_or(word, place.bits[i], __ATOMIC_SEQ_CST);
    } else {
      __atomic_store_n(word, old | place.bits[i], __ATOMIC_RELEASE);
    }
  }
  // Other bits than those that tell the line.
  if ((hash >> 20) % kSample != 0) return;
  const uint64_t sampled = layer->sampled.fetch_add(1, std::memory_order_relaxed) + 1;
  if (sampled * kSample > layer->lines * kKeysPerLine) AddLayer(layer);
}

template void MemtableFilter::AddAs<true>(uint64_t hash) noexcept;
template void MemtableFilter::AddAs<false>(uint64_t hash) noexcept;

void MemtableFilter::AddLayer(Layer* full) noexcept {
  const std::lock_guard lock(growing_);
  if (newest_.load(std::memory_order_relaxed) != full) return;
  try {
    newest_.store(new Layer(4 * full->lines, full), std::memory_order_release);
  } catch (const std::bad_alloc&) {  // tried again with the next key that is sampled
  }
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
    size += layer->lines * kLineBytes;
  }
  return size;
}

MemtableFilters::MemtableFilters(GracePeriod* grace)
    : grace_(grace), current_(std::make_shared<const List>()) {
  filters_ = current_.get();
}

MemtableFilters::~MemtableFilters() = default;

MemtableFilters::List MemtableFilters::NotEnded() const {
  List list;
  list.reserve(current_->size() + 1);
  for (const auto& filter : *current_) {
    if (!filter->has_ended_) list.push_back(filter);
  }
  return list;
}

void MemtableFilters::Publish(List list) {
  auto next = std::make_shared<const List>(std::move(list));
  filters_.store(next.get(), std::memory_order_seq_cst);
  grace_->Retire(std::exchange(current_, std::move(next)));
}

std::shared_ptr<MemtableFilter> MemtableFilters::Begin(uint64_t guess) {
  const std::lock_guard lock(mutex_);
  if (ended_ == 0) held_.fill(guess);
  const uint64_t most = *std::ranges::max_element(held_);
  auto filter = std::make_shared<MemtableFilter>(std::max(kLeastKeys, most + most / 4));
  List list = NotEnded();
  list.push_back(filter);
  Publish(std::move(list));
  return filter;
}

void MemtableFilters::End(const MemtableFilter* filter) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = std::ranges::find_if(
      *current_, [&](const auto& one) { return one.get() == filter && !one->has_ended_; });
  if (at == current_->end()) return;
  (*at)->has_ended_ = true;
  held_[ended_++ % held_.size()] = filter->keys();
  try {
    Publish(NotEnded());
  } catch (const std::bad_alloc&) {  // its keys are false positives until the next list
  }
}

uint64_t MemtableFilters::Count() const {
  const std::lock_guard lock(mutex_);
  return static_cast<uint64_t>(
      std::ranges::count_if(*current_, [](const auto& one) { return !one->has_ended_; }));
}

uint64_t MemtableFilters::size_bytes() const {
  const std::lock_guard lock(mutex_);
  uint64_t size = 0;
  for (const auto& filter : *current_) size += filter->size_bytes();
  return size;
}

}  // namespace tamis::lsm
