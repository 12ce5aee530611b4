#include "tamis/filter/quotient_filter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tamis/filter/fpr.h"
#include "tamis/filter/internal/batch.h"

namespace tamis {
namespace {

constexpr double kCapacityLoad = 0.85;
constexpr double kMaxLoad = 0.95;  // beyond, stretches become too long
constexpr uint32_t kMinRemainderBits = 1;
constexpr uint32_t kMaxRemainderBits = 48;

constexpr uint64_t kOccupied = 1;
constexpr uint64_t kContinued = 2;
constexpr uint64_t kShifted = 4;

uint32_t RemainderBitsFor(double fpr) {
  return static_cast<uint32_t>(
      std::max<double>(kMinRemainderBits, std::ceil(std::log2(kCapacityLoad / fpr))));
}

}  // namespace

Result<QuotientFilter> QuotientFilter::Create(const Options& options) {
  TAMIS_RETURN_IF_ERROR(options.Validate());
  const auto slots =
      static_cast<uint64_t>(std::ceil(static_cast<double>(options.capacity) / kCapacityLoad));
  return QuotientFilter(options.seed, slots, RemainderBitsFor(options.fpr));
}

QuotientFilter::Fingerprint QuotientFilter::Find(uint64_t hash) const {
  const auto product = static_cast<unsigned __int128>(hash) * slots_;
  return {static_cast<uint64_t>(product >> 64),
          static_cast<uint64_t>(product) >> (64 - remainder_bits_)};
}

// A slot has 51 bits at most, so that it lies in eight bytes whatever bit it begins with.
uint64_t QuotientFilter::Load(uint64_t slot) const {
  const uint64_t bit = slot * (remainder_bits_ + 3);
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const char*>(words_.data()) + bit / 8, sizeof(word));
  return word >> (bit % 8) & ((uint64_t{1} << (remainder_bits_ + 3)) - 1);
}

void QuotientFilter::Store(uint64_t slot, uint64_t value) {
  const uint64_t bit = slot * (remainder_bits_ + 3);
  char* at = reinterpret_cast<char*>(words_.MutableData()) + bit / 8;
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  const uint64_t mask = ((uint64_t{1} << (remainder_bits_ + 3)) - 1) << (bit % 8);
  word = (word & ~mask) | value << (bit % 8);
  std::memcpy(at, &word, sizeof(word));
}

// Every loop is bounded by the slots, for bytes that were never checked.
uint32_t QuotientFilter::CopiesOf(const Fingerprint& fingerprint, uint32_t enough) const {
  if ((Load(fingerprint.quotient) & kOccupied) == 0) return 0;
  const uint64_t begin = BeginOfStretch(fingerprint.quotient);
  // Passes as many runs as there are occupied quotients before this one.
  uint64_t slot = begin;
  for (uint64_t quotient = begin; quotient < fingerprint.quotient; ++quotient) {
    if ((Load(quotient) & kOccupied) == 0) continue;
    do ++slot;
    while (slot < TotalSlots() && (Load(slot) & kContinued) != 0);
  }
  uint32_t copies = 0;
  for (bool first = true; slot < TotalSlots() && copies < enough; ++slot, first = false) {
    const uint64_t here = Load(slot);
    if (!first && (here & kContinued) == 0) break;
    if (here >> 3 > fingerprint.remainder) break;
    copies += here >> 3 == fingerprint.remainder;
  }
  return copies;
}

uint64_t QuotientFilter::BeginOfStretch(uint64_t slot) const {
  while (slot > 0 && (Load(slot) & kShifted) != 0) --slot;
  return slot;
}

QuotientFilter::Stretch QuotientFilter::Read(uint64_t begin) const {
  Stretch stretch;
  stretch.begin = begin;
  uint64_t quotient = stretch.begin;
  uint64_t at = stretch.begin;
  for (; at < TotalSlots(); ++at) {
    const uint64_t here = Load(at);
    if ((here & 7) == 0) break;
    if ((here & kShifted) == 0) {
      quotient = at;
    } else if ((here & kContinued) == 0) {
      do ++quotient;
      while (quotient < at && (Load(quotient) & kOccupied) == 0);
    }
    // Unchecked bytes may count quotients after the last one.
    stretch.fingerprints.push_back({std::min(quotient, slots_ - 1), here >> 3});
  }
  stretch.end = at;
  return stretch;
}

// In order, each in the slot of its quotient or in the next one free. The fingerprints may be one
// more than the stretch has slots, when the slot after it is there, or fewer.
void QuotientFilter::Write(const Stretch& stretch) {
  const uint64_t end = std::min(stretch.end + 1, TotalSlots());
  for (uint64_t slot = stretch.begin; slot < end; ++slot) Store(slot, 0);
  uint64_t next = stretch.begin;
  const Fingerprint* previous = nullptr;
  for (const Fingerprint& fingerprint : stretch.fingerprints) {
    const uint64_t slot = std::max(next, fingerprint.quotient);
    uint64_t value = fingerprint.remainder << 3 | (Load(slot) & kOccupied);
    if (slot != fingerprint.quotient) value |= kShifted;
    if (previous != nullptr && previous->quotient == fingerprint.quotient) value |= kContinued;
    Store(slot, value);
    Store(fingerprint.quotient, Load(fingerprint.quotient) | kOccupied);
    next = slot + 1;
    previous = &fingerprint;
  }
}

bool QuotientFilter::IsFull() const {
  return static_cast<double>(count_) >= kMaxLoad * static_cast<double>(slots_) + 1;
}

bool QuotientFilter::Add(const Fingerprint& fingerprint) {
  if (IsFull()) return false;
  if (IsEmpty(fingerprint.quotient)) {
    Store(fingerprint.quotient, fingerprint.remainder << 3 | kOccupied);
    ++count_;
    return true;
  }
  Stretch stretch = Read(BeginOfStretch(fingerprint.quotient));
  if (stretch.end == TotalSlots()) return false;
  auto& held = stretch.fingerprints;
  const auto [first, last] = std::equal_range(held.begin(), held.end(), fingerprint);
  if (last - first >= kMaxCopies) return false;
  held.insert(last, fingerprint);
  Write(stretch);
  ++count_;
  return true;
}

bool QuotientFilter::Erase(uint64_t hash) {
  const Fingerprint fingerprint = Find(hash);
  if (IsEmpty(fingerprint.quotient)) return false;
  Stretch stretch = Read(BeginOfStretch(fingerprint.quotient));
  auto& held = stretch.fingerprints;
  const auto at = std::lower_bound(held.begin(), held.end(), fingerprint);
  if (at == held.end() || *at != fingerprint) return false;
  held.erase(at);
  Write(stretch);
  count_ -= count_ > 0;
  return true;
}

Bitmap QuotientFilter::MayContain(std::span<const uint64_t> hashes) const {
  return AnswerBatch(
      hashes,
      [this](uint64_t hash) {
        const uint64_t bit = Find(hash).quotient * (remainder_bits_ + 3);
        __builtin_prefetch(reinterpret_cast<const char*>(words_.data()) + bit / 8);
      },
      [this](uint64_t hash) { return MayContain(hash); });
}

Status QuotientFilter::Merge(const QuotientFilter& other, uint32_t most_copies) {
  if (slots_ != other.slots_ || remainder_bits_ != other.remainder_bits_ || seed_ != other.seed_) {
    return InvalidArgument("cannot merge quotient filters of different size or seed");
  }
  QuotientFilter merged = *this;
  bool fits = true;
  other.ForEach([&](const Fingerprint& fingerprint) {
    fits = fits &&
           (merged.CopiesOf(fingerprint, most_copies) >= most_copies || merged.Add(fingerprint));
  });
  if (!fits) {
    return ResourceExhausted("cannot merge quotient filters: " + std::to_string(Count()) + " and " +
                             std::to_string(other.Count()) +
                             " keys do not fit; let both grow before");
  }
  *this = std::move(merged);
  return Status::Ok();
}

Status QuotientFilter::Grow() {
  if (remainder_bits_ <= kMinRemainderBits) {
    return FailedPrecondition(
        "cannot let a quotient filter grow: its remainders have one bit; build a larger filter "
        "from the keys");
  }
  QuotientFilter grown(seed_, 2 * slots_, remainder_bits_ - 1);
  const uint32_t top = remainder_bits_ - 1;
  bool fits = true;
  ForEach([&](const Fingerprint& old) {
    fits = fits && grown.Add({2 * old.quotient + (old.remainder >> top),
                              old.remainder & ((uint64_t{1} << top) - 1)});
  });
  if (!fits) return ResourceExhausted("cannot let a quotient filter grow: its keys are uneven");
  *this = std::move(grown);
  return Status::Ok();
}

Status QuotientFilter::Shrink() {
  if (slots_ % 2 != 0 || remainder_bits_ >= kMaxRemainderBits) {
    return FailedPrecondition("cannot halve a quotient filter of " + std::to_string(slots_) +
                              " slots and remainders of " + std::to_string(remainder_bits_) +
                              " bits");
  }
  QuotientFilter shrunk(seed_, slots_ / 2, remainder_bits_ + 1);
  bool fits = true;
  ForEach([&](const Fingerprint& old) {
    fits = fits &&
           shrunk.Add({old.quotient / 2, (old.quotient & 1) << remainder_bits_ | old.remainder});
  });
  if (!fits) {
    return ResourceExhausted("cannot halve a quotient filter: " + std::to_string(count_) +
                             " keys do not fit " + std::to_string(slots_ / 2) + " slots");
  }
  *this = std::move(shrunk);
  return Status::Ok();
}

void QuotientFilter::Clear() { *this = QuotientFilter(seed_, slots_, remainder_bits_); }

double QuotientFilter::ExpectedFpr() const {
  return fpr::Fingerprints(static_cast<double>(count_), static_cast<double>(slots_),
                           remainder_bits_);
}

uint64_t QuotientFilter::CapacityFor(size_t size_bytes, double fpr) {
  return static_cast<uint64_t>(static_cast<double>(size_bytes) * 8 * kCapacityLoad /
                               (RemainderBitsFor(fpr) + 3));
}

double QuotientFilter::FprFor(size_t size_bytes, uint64_t capacity) {
  const double slot_bits =
      static_cast<double>(size_bytes) * 8 * kCapacityLoad / static_cast<double>(capacity);
  const double remainder_bits = std::floor(slot_bits) - 3;
  if (remainder_bits < kMinRemainderBits) return 1;
  return kCapacityLoad * std::exp2(-std::min<double>(remainder_bits, kMaxRemainderBits));
}

std::string QuotientFilter::Serialize() const {
  return SealFilter({.kind = kKind, .seed = seed_, .parameters = {slots_, remainder_bits_, count_}},
                    words_.words());
}

Result<QuotientFilter> QuotientFilter::Deserialize(std::string_view bytes, OpenMode mode) {
  TAMIS_ASSIGN_OR_RETURN(OpenedFilter opened, OpenFilter(bytes, kKind, 3, mode));
  const auto& p = opened.header.parameters;
  const uint64_t words = opened.payload.size();
  if (p[1] < kMinRemainderBits || p[1] > kMaxRemainderBits) {
    return FilterDataLoss(kKind, "impossible remainders");
  }
  // The first comparison keeps the product of the second from overflowing.
  const auto remainder_bits = static_cast<uint32_t>(p[1]);
  if (p[0] < 1 || p[0] > words * 64 || WordsFor(p[0], remainder_bits) != words) {
    return FilterDataLoss(kKind, "its slots do not fit the payload");
  }
  QuotientFilter filter(opened.header.seed, p[0], remainder_bits, opened.Take(0, words));
  filter.count_ = p[2];
  if (mode == OpenMode::kCopy && !filter.IsConsistent()) {
    return FilterDataLoss(kKind, "its slots do not add up");
  }
  return filter;
}

// Equal multisets are equal bytes: they must be what their own fingerprints make. Stretch by
// stretch, so that the time does not depend on how long they are.
bool QuotientFilter::IsConsistent() const {
  QuotientFilter made(seed_, slots_, remainder_bits_);
  const bool stretches_are_right = ForEachStretch([&](const Stretch& stretch) {
    const auto& held = stretch.fingerprints;
    for (size_t i = 0; i < held.size(); ++i) {
      // None before the slot of its quotient, which also keeps Write inside of the stretch.
      if (held[i].quotient >= slots_ || held[i].quotient > stretch.begin + i || made.IsFull()) {
        return false;
      }
      if (i > 0 && held[i] < held[i - 1]) return false;
      if (i >= kMaxCopies && held[i] == held[i - kMaxCopies]) return false;
      ++made.count_;
    }
    made.Write(stretch);
    return true;
  });
  return stretches_are_right && made.count_ == count_ &&
         std::ranges::equal(made.words_.words(), words_.words());
}

}  // namespace tamis
