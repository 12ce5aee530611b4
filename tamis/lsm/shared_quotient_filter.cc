#include "tamis/lsm/shared_quotient_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <new>
#include <numeric>
#include <string>

namespace tamis::lsm {
namespace {

constexpr uint64_t kMinCapacity = 128;
constexpr double kSpare = 0.25;
constexpr int kTries = 4;
constexpr size_t kAhead = 12;  // lines fetched ahead

// The part of the sorted hashes that lies in [first, last) of the sections.
std::span<const uint64_t> InSections(std::span<const uint64_t> hashes, uint32_t first,
                                     uint32_t last) {
  const auto begin = std::partition_point(hashes.begin(), hashes.end(), [&](uint64_t hash) {
    return SharedQuotientFilter::SectionOf(hash) < first;
  });
  const auto end = std::partition_point(begin, hashes.end(), [&](uint64_t hash) {
    return SharedQuotientFilter::SectionOf(hash) < last;
  });
  return {begin, end};
}

// How many of the sorted hashes take a slot, and how much more room they need than if no two were
// equal: copies lie in one line, so lines are filled less evenly. The mean fill m of a line of s
// slots leaves 1.2 standard deviations free, which for clumps of c are sqrt(c m).
struct Slots {
  uint64_t taken = 0;
  double stretch = 1;
};
Slots SlotsFor(std::span<const uint64_t> hashes) {
  Slots slots;
  double squares = 0;
  for (size_t i = 0; i < hashes.size();) {
    size_t end = i + 1;
    while (end < hashes.size() && hashes[end] == hashes[i]) ++end;
    const uint64_t copies = std::min<uint64_t>(end - i, BlockedQuotientFilter::kMaxCopies);
    slots.taken += copies;
    squares += static_cast<double>(copies * copies);
    i = end;
  }
  const auto fill = [](double clump) {
    constexpr double kSlots = 48;
    const double free = 1.2 * std::sqrt(clump);
    const double root = (std::sqrt(free * free + 4 * kSlots) - free) / 2;
    return root * root;
  };
  if (slots.taken > 0) slots.stretch = fill(1) / fill(squares / static_cast<double>(slots.taken));
  return slots;
}

}  // namespace

SharedQuotientFilter::Shard::Shard(BlockedQuotientFilter made, uint32_t first, uint32_t count,
                                   uint64_t capacity)
    : filter(std::move(made)),
      versions(filter.LineCount()),
      reader(filter, versions),
      shift(8 - static_cast<uint32_t>(std::countr_zero(count))),
      first(first),
      count(count),
      capacity(capacity) {}

Result<std::unique_ptr<SharedQuotientFilter>> SharedQuotientFilter::Create(double fpr,
                                                                           GracePeriod* grace,
                                                                           uint64_t shard_keys) {
  // Hashes of 48 bits are kept of each key: far lower rates would not be what they seem.
  if (!(fpr >= 1.1e-5 && fpr < 1)) {
    char rate[32];
    std::snprintf(rate, sizeof rate, "%g", fpr);
    return InvalidArgument("cannot make a filter with a false-positive rate of " +
                           std::string(rate) + ": it must lie between 0.000011 and 1");
  }
  std::unique_ptr<SharedQuotientFilter> filter(
      new SharedQuotientFilter(fpr, grace, std::max<uint64_t>(shard_keys, 1)));
  Shards first;
  first.push_back(filter->MakeShard(0, kSections, kMinCapacity, kMinCapacity));
  filter->Install(std::move(first));
  return filter;
}

SharedQuotientFilter::~SharedQuotientFilter() {
  for (uint32_t section = 0; section < kSections;) {
    const std::unique_ptr<Shard> shard(At(section));
    section += shard->count;
  }
}

template <class Visit>
void SharedQuotientFilter::ForEachShard(Visit&& visit) const {
  for (uint32_t section = 0; section < kSections;) {
    Shard* const shard = At(section);
    section += shard->count;
    visit(shard);
  }
}

bool SharedQuotientFilter::AskAgain(const Shard& shard, uint64_t hash) const {
  using Answer = BlockedQuotientFilter::Answer;
  for (int i = 1; i < kTries; ++i) {
    const Answer answer = shard.reader.MayContain(shard.HashIn(hash));
    if (answer != Answer::kDisturbed) {
      return answer == Answer::kPerhaps || shard.passing.load(std::memory_order_acquire);
    }
  }
  disturbed_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void SharedQuotientFilter::Add(Shard* shard, uint64_t hash) noexcept {
  const uint64_t inside = shard->HashIn(hash);
  if (shard->filter.InsertWhileRead(inside, &shard->versions)) return;
  bool is_counted = false;
  try {
    if (shard->filter.CopiesOf(inside) >= BlockedQuotientFilter::kMaxCopies) {
      const QuotientPlace place = shard->filter.PlaceOf(inside);
      ++shard->excess[{place.line, place.fingerprint}];
      ++shard->excess_count;
      is_counted = true;
    }
  } catch (const std::bad_alloc&) {
  }
  // Full, against all expectation, or without memory. The shard's answers are worthless until it is
  // made again.
  if (!is_counted) shard->passing.store(true, std::memory_order_seq_cst);
}

void SharedQuotientFilter::Remove(Shard* shard, uint64_t hash) noexcept {
  const uint64_t inside = shard->HashIn(hash);
  if (!shard->excess.empty()) {
    const QuotientPlace place = shard->filter.PlaceOf(inside);
    if (const auto at = shard->excess.find({place.line, place.fingerprint});
        at != shard->excess.end()) {
      if (--at->second == 0) shard->excess.erase(at);
      --shard->excess_count;
      return;
    }
  }
  const bool erased = shard->filter.EraseWhileRead(inside, &shard->versions);
  if (!erased && !shard->passing.load(std::memory_order_relaxed)) ++missed_;
}

void SharedQuotientFilter::Apply(std::span<const uint64_t> added,
                                 std::span<const uint64_t> removed) noexcept {
  size_t a = 0;
  size_t r = 0;
  const auto fetch = [this](std::span<const uint64_t> hashes, size_t i) {
    if (i < hashes.size()) Prefetch(hashes[i]);
  };
  while (a < added.size() || r < removed.size()) {
    // At one hash what comes before what goes.
    if (r == removed.size() || (a < added.size() && added[a] <= removed[r])) {
      fetch(added, a + kAhead);
      Add(At(SectionOf(added[a])), added[a]);
      ++a;
    } else {
      fetch(removed, r + kAhead);
      Remove(At(SectionOf(removed[r])), removed[r]);
      ++r;
    }
  }
}

uint64_t SharedQuotientFilter::CapacityFor(uint64_t keys, double spare) const {
  const auto n = static_cast<double>(keys);
  return std::max(kMinCapacity, static_cast<uint64_t>(std::ceil(n * (1 + spare))));
}

std::unique_ptr<SharedQuotientFilter::Shard> SharedQuotientFilter::MakeShard(
    uint32_t first, uint32_t count, uint64_t room, uint64_t capacity) const {
  auto filter = BlockedQuotientFilter::Create({.capacity = room, .fpr = fpr_, .seed = 0});
  assert(filter.ok());
  return std::make_unique<Shard>(*std::move(filter), first, count, capacity);
}

void SharedQuotientFilter::Make(uint32_t first, uint32_t count, std::span<const uint64_t> hashes,
                                const Coming& coming, double spare, Shards* made) const {
  const Slots slots = SlotsFor(hashes);
  const uint64_t capacity = CapacityFor(slots.taken + coming(first, first + count), spare);
  if (count > 1 && capacity > shard_keys_) {
    const uint32_t half = count / 2;
    const uint32_t middle = first + half;
    const uint32_t last = first + count;
    Make(first, half, InSections(hashes, first, middle), coming, spare, made);
    Make(middle, half, InSections(hashes, middle, last), coming, spare, made);
    return;
  }
  // More room should it be refused: so few lines, or so many equal places.
  const auto least = static_cast<uint64_t>(static_cast<double>(capacity) * slots.stretch);
  for (uint64_t room = least;; room += room / 4) {
    std::unique_ptr<Shard> shard = MakeShard(first, count, room, capacity);
    std::vector<uint64_t> inside(hashes.size());
    std::ranges::transform(hashes, inside.begin(),
                           [&](uint64_t hash) { return shard->HashIn(hash); });
    const Bitmap inserted = shard->filter.Insert(inside);
    for (size_t i = 0; i < hashes.size() && !shard->passing.load(); ++i) {
      if ((inserted[i / 64] >> i % 64 & 1) == 0) Add(shard.get(), hashes[i]);
    }
    if (shard->passing.load() && room < 8 * least) continue;
    made->push_back(std::move(shard));
    return;
  }
}

void SharedQuotientFilter::Install(Shards made) {
  // Nothing is allocated once the first of them is in its place.
  std::vector<std::unique_ptr<Shard>> old;
  old.reserve(kSections);
  for (std::unique_ptr<Shard>& shard : made) {
    Shard* const installed = shard.release();
    for (uint32_t i = 0; i < installed->count; ++i) {
      Shard* const before = shards_[installed->first + i].exchange(installed);
      const bool seen = std::ranges::any_of(
          old, [&](const std::unique_ptr<Shard>& one) { return one.get() == before; });
      if (before != nullptr && !seen) old.emplace_back(before);
    }
  }
  if (old.empty() || grace_->Wait()) return;
  for (std::unique_ptr<Shard>& shard : old) (void)shard.release();
}

bool SharedQuotientFilter::MakeAnew(uint32_t first, uint32_t count, const Keys& keys,
                                    const Coming& coming) {
  std::vector<uint64_t> hashes;
  if (!keys(first, first + count, &hashes)) return false;
  Shards made;
  Make(first, count, hashes, coming, kSpare, &made);
  rebuilt_ += made.size();
  Install(std::move(made));
  return true;
}

bool SharedQuotientFilter::Double(Shard* shard) {
  BlockedQuotientFilter grown = shard->filter;
  if (shard->passing.load() || !grown.Grow().ok()) return false;
  auto doubled =
      std::make_unique<Shard>(std::move(grown), shard->first, shard->count, 2 * shard->capacity);
  for (const auto& [place, copies] : shard->excess) {
    const QuotientPlace to = shard->filter.GrownPlace({place.first, place.second});
    doubled->excess[{to.line, to.fingerprint}] = copies;
  }
  doubled->excess_count = shard->excess_count;
  Shards made;
  made.push_back(std::move(doubled));
  Install(std::move(made));
  ++doubled_;
  return true;
}

void SharedQuotientFilter::Reserve(std::span<const uint64_t> added, const Keys& keys) {
  ReserveFor([=](uint32_t first, uint32_t last) { return InSections(added, first, last).size(); },
             keys);
}

void SharedQuotientFilter::ReserveAll(std::span<const std::vector<uint64_t>> added,
                                      const Keys& keys) {
  ReserveFor(
      [=](uint32_t first, uint32_t last) {
        uint64_t size = 0;
        for (const auto& hashes : added) size += InSections(hashes, first, last).size();
        return size;
      },
      keys);
}

void SharedQuotientFilter::ReserveFor(const Coming& coming, const Keys& keys) {
  for (uint32_t section = 0; section < kSections;) {
    Shard* const shard = At(section);
    const uint32_t first = shard->first;
    const uint32_t last = first + shard->count;
    const uint64_t added = coming(first, last);
    const bool is_full = added > 0 && shard->filter.Count() + added > shard->capacity;
    if ((is_full || shard->passing.load()) && !MakeAnew(first, shard->count, keys, coming)) {
      while (At(first)->filter.Count() + added > At(first)->capacity && Double(At(first))) {
      }
    }
    section = last;
  }
}

void SharedQuotientFilter::Trim(const Keys& keys) {
  for (uint32_t section = 0; section < kSections;) {
    const Shard* const shard = At(section);
    const uint32_t last = shard->first + shard->count;
    const bool half_empty =
        shard->capacity > kMinCapacity && shard->filter.Count() < shard->capacity / 2;
    section = half_empty || shard->passing.load() ? Renew(section, keys).value_or(last) : last;
  }
}

std::optional<uint32_t> SharedQuotientFilter::Renew(uint32_t section, const Keys& keys) {
  const Shard* const shard = At(section);
  // With its other half, when both are small.
  uint32_t first = shard->first;
  uint32_t count = shard->count;
  uint64_t together = shard->filter.Count();
  while (count < kSections) {
    const uint32_t other = first ^ count;
    const Shard* const buddy = At(other);
    if (buddy->first != other || buddy->count != count) break;
    together += buddy->filter.Count();
    if (CapacityFor(together, 2 * kSpare) > shard_keys_) break;
    first &= ~count;
    count *= 2;
  }
  if (!MakeAnew(first, count, keys, [](uint32_t, uint32_t) { return 0; })) return std::nullopt;
  return first + count;
}

bool SharedQuotientFilter::MakeRoom(const Counts& coming, const Keys& keys, double spare) {
  std::vector<uint64_t> hashes;
  if (!keys(0, kSections, &hashes)) return false;
  const auto in_sections = [&](uint32_t first, uint32_t last) {
    return std::accumulate(coming.begin() + first, coming.begin() + last, uint64_t{0});
  };
  Shards made;
  Make(0, kSections, hashes, in_sections, spare, &made);
  rebuilt_ += made.size();
  Install(std::move(made));
  return true;
}

SharedQuotientFilter::Figures SharedQuotientFilter::figures() const {
  Figures figures{.rebuilt = rebuilt_, .doubled = doubled_, .missed = missed_};
  ForEachShard([&](const Shard* shard) {
    const bool passing = shard->passing.load();
    figures.keys += shard->Count();
    figures.excess += shard->excess_count;
    figures.shards += 1;
    figures.passing += passing;
    figures.size_bytes += sizeof(Shard) + shard->filter.SizeBytes() + shard->versions.size_bytes();
    figures.expected_fpr +=
        (passing ? 1 : shard->filter.ExpectedFpr()) * static_cast<double>(shard->count) / kSections;
  });
  return figures;
}

bool SharedQuotientFilter::IsExactly(const Keys& keys) const {
  bool exact = true;
  ForEachShard([&](const Shard* shard) {
    std::vector<uint64_t> hashes;
    if (!exact || shard->passing.load() ||
        !keys(shard->first, shard->first + shard->count, &hashes)) {
      exact = false;
      return;
    }
    BlockedQuotientFilter empty = shard->filter;
    empty.Clear();
    Shard made(std::move(empty), shard->first, shard->count, shard->capacity);
    for (const uint64_t hash : hashes) Add(&made, hash);
    exact = made.filter.Serialize() == shard->filter.Serialize() && made.excess == shard->excess;
  });
  return exact;
}

}  // namespace tamis::lsm
