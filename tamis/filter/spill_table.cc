#include "tamis/filter/spill_table.h"

#include <algorithm>

namespace tamis {

SpillTable::SpillTable(uint64_t lines, uint32_t fingerprint_bits, WordArray words)
    : narrow_(fingerprint_bits <= kNarrowFingerprintBits),
      fingerprint_bits_(fingerprint_bits),
      slots_per_line_(narrow_ ? 16 : 8),
      words_(std::move(words)) {
  const uint32_t entry_bits = narrow_ ? 32 : 64;
  slots_ = words_.size() * (narrow_ ? 2 : 1);
  present_ = uint64_t{1} << (entry_bits - 1);
  line_mask_ = (uint64_t{1} << (entry_bits - 1 - fingerprint_bits)) - 1;
  fingerprint_mask_ = (uint64_t{1} << fingerprint_bits) - 1;
  distance_shift_ = 64 - (entry_bits - 1);
  // The tail is nobody's place: room for what the last ones push on, which does not grow with the
  // table.
  const uint64_t tail = std::clamp<uint64_t>(words_.size() / 4, 16, 128);
  const uint64_t places = (words_.size() - tail) / 8;
  const auto ratio = (static_cast<unsigned __int128>(places) << 64) / lines;
  ratio_ = ratio > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ratio);
}

void SpillTable::Set(uint64_t slot, uint64_t entry) {
  uint64_t* words = words_.MutableData();
  if (!narrow_) {
    words[slot] = entry;
    return;
  }
  const uint32_t shift = slot % 2 * 32;
  uint64_t& word = words[slot / 2];
  word = (word & ~(uint64_t{0xffffffff} << shift)) | entry << shift;
}

uint64_t SpillTable::LowerBound(uint64_t line, uint64_t fingerprint) const {
  const uint64_t wanted = Entry(line, fingerprint);
  uint64_t slot = Home(line);
  for (uint64_t entry = Get(slot); entry != 0 && Distance(entry, wanted) < 0; entry = Get(slot)) {
    ++slot;
  }
  return slot;
}

bool SpillTable::Insert(uint64_t line, uint64_t fingerprint) {
  const uint64_t at = LowerBound(line, fingerprint);
  uint64_t end = at;
  while (Get(end) != 0) ++end;
  if (end >= slots_) return false;
  for (uint64_t slot = end; slot > at; --slot) Set(slot, Get(slot - 1));
  Set(at, Entry(line, fingerprint));
  return true;
}

// Closes the gap with the entries behind that do not lie at their places; `line` is that of the
// entry that leaves.
void SpillTable::RemoveAt(uint64_t slot, uint64_t line) {
  while (true) {
    const uint64_t next = Get(slot + 1);
    if (next == 0) break;
    line += static_cast<uint64_t>(Distance(next, Entry(line, 0)) >> fingerprint_bits_);
    if (Home(line) > slot) break;
    Set(slot, next);
    ++slot;
  }
  Set(slot, 0);
}

bool SpillTable::Erase(uint64_t line, uint64_t fingerprint) {
  const uint64_t slot = LowerBound(line, fingerprint);
  if (Get(slot) != Entry(line, fingerprint)) return false;
  RemoveAt(slot, line);
  return true;
}

std::optional<uint64_t> SpillTable::TakeFirst(uint64_t line) {
  const uint64_t slot = LowerBound(line, 0);
  const uint64_t entry = Get(slot);
  if (!IsOf(entry, line)) return std::nullopt;
  RemoveAt(slot, line);
  return entry & fingerprint_mask_;
}

uint32_t SpillTable::Copies(uint64_t line, uint64_t fingerprint) const {
  uint32_t copies = 0;
  const uint64_t wanted = Entry(line, fingerprint);
  for (uint64_t slot = LowerBound(line, fingerprint); Get(slot) == wanted; ++slot) ++copies;
  return copies;
}

}  // namespace tamis
