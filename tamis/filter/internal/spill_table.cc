#include "tamis/filter/internal/spill_table.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tamis {

SpillTable::SpillTable(uint64_t lines, uint32_t fingerprint_bits, WordArray words)
    : narrow_(fingerprint_bits <= kNarrowFingerprintBits),
      fingerprint_bits_(fingerprint_bits),
      slots_per_place_(narrow_ ? 16 : 8),
      words_(std::move(words)) {
  const uint32_t entry_bits = narrow_ ? 32 : 64;
  slots_ = words_.size() * (narrow_ ? 2 : 1);
  present_ = uint64_t{1} << (entry_bits - 1);
  line_mask_ = (uint64_t{1} << (entry_bits - 1 - fingerprint_bits)) - 1;
  fingerprint_mask_ = (uint64_t{1} << fingerprint_bits) - 1;
  distance_shift_ = 64 - (entry_bits - 1);
  // The tail is the home place of no entry. It takes entries that are pushed beyond the last home
  // place; how many that are does not depend on the size of the table.
  const uint64_t tail = std::clamp<uint64_t>(words_.size() / 4, 16, 128);
  const uint64_t places = (words_.size() - tail) / 8;
  const auto ratio = (static_cast<unsigned __int128>(places) << 64) / lines;
  ratio_ = ratio > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ratio);
}

void SpillTable::Set(uint64_t slot, uint64_t entry) {
  uint64_t* words = words_.MutableData();
  if (narrow_) {
    __atomic_store_n(reinterpret_cast<Narrow*>(words) + slot, static_cast<Narrow>(entry),
                     __ATOMIC_RELAXED);
  } else {
    __atomic_store_n(words + slot, entry, __ATOMIC_RELAXED);
  }
}

void SpillTable::Move(uint64_t at, uint64_t from, uint64_t to) {
  if (shared_) {
    if (at < from) {
      for (uint64_t slot = from; slot < to; ++slot) Set(at + slot - from, Get(slot));
    } else {
      for (uint64_t slot = to; slot > from; --slot) Set(at + slot - 1 - from, Get(slot - 1));
    }
    return;
  }
  const size_t size = narrow_ ? sizeof(Narrow) : sizeof(Wide);
  char* bytes = reinterpret_cast<char*>(words_.MutableData());
  std::memmove(bytes + at * size, bytes + from * size, (to - from) * size);
}

uint64_t SpillTable::LowerBound(uint64_t line, uint64_t fingerprint) const {
  const uint64_t wanted = Entry(line, fingerprint);
  const auto is_before = [this, wanted](uint64_t entry) -> uint64_t {
    return (entry != 0) & (Distance(entry, wanted) < 0);
  };
  uint64_t slot = Home(line);
  // A place whose last entry is before it is passed over. In the one where it is, or would be, a
  // binary search, which has nothing to mispredict.
  const bool found = WithSlots([&](const auto* slots) {
    constexpr uint32_t kPlace = 64 / sizeof(*slots);
    for (; slot + kPlace <= slots_; slot += kPlace) {
      if (is_before(Load(slots + slot + kPlace - 1)) != 0) continue;
      for (uint32_t half = kPlace / 2; half > 0; half /= 2) {
        slot += is_before(Load(slots + slot + half - 1)) * half;
      }
      return true;
    }
    return false;
  });
  if (found) return slot;
  while (is_before(Get(slot)) != 0) ++slot;
  return slot;
}

uint64_t SpillTable::FirstEmpty(uint64_t slot) const {
  return WithSlots([this, slot](const auto* slots) {
    uint64_t end = slot;
    while (end < slots_ && Load(slots + end) != 0) ++end;
    return end;
  });
}

bool SpillTable::Insert(uint64_t line, uint64_t fingerprint, uint32_t copies) {
  const uint64_t entry = Entry(line, fingerprint);
  const uint64_t at = LowerBound(line, fingerprint);
  uint64_t end = at;
  while (Get(end) == entry) ++end;
  if (end - at >= copies) return false;
  // Tags that make room for it are of its line or later ones: none of them gets farther away.
  end = FirstEmpty(end);
  if (end >= slots_ || end - Home(line) > kMaxDisplacement) return false;
  Move(at + 1, at, end);
  Set(at, entry);
  return true;
}

// Closes the gap with the entries after it, up to one that lies at its place: where a place
// begins, and nowhere else.
void SpillTable::RemoveAt(uint64_t slot, uint64_t line) {
  const uint64_t empty = FirstEmpty(slot + 1);
  uint64_t end = slot + 1;
  while (true) {
    end += -end % slots_per_place_;
    if (end >= empty) {
      end = empty;
      break;
    }
    const int64_t lines_on = Distance(Get(end), Entry(line, 0)) >> fingerprint_bits_;
    if (Home(line + static_cast<uint64_t>(lines_on)) >= end) break;
    ++end;
  }
  Move(slot, slot + 1, end);
  Set(end - 1, 0);
}

bool SpillTable::Erase(uint64_t line, uint64_t fingerprint) {
  const uint64_t slot = LowerBound(line, fingerprint);
  if (Get(slot) != Entry(line, fingerprint)) return false;
  RemoveAt(slot, line);
  return true;
}

std::optional<uint64_t> SpillTable::TakeFirst(uint64_t line, bool* has_more) {
  const uint64_t slot = LowerBound(line, 0);
  const uint64_t entry = Get(slot);
  *has_more = false;
  if (!IsOf(entry, line)) return std::nullopt;
  *has_more = IsOf(Get(slot + 1), line);
  RemoveAt(slot, line);
  return entry & fingerprint_mask_;
}

}  // namespace tamis
