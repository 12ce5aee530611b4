#include "tamis/routing/value_ranges.h"

#include <algorithm>
#include <bit>

#include "tamis/routing/within.h"

namespace tamis {
namespace {

size_t CommonPrefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

void ValueRanges::Reserve(Slot slot) {
  if (slot < ranges_.size()) return;
  ranges_.resize(slot + 1);
  const size_t whole_words = (slot + 64) / 64 * 64;
  min_prefix_.resize(whole_words, Prefixes().min);
  max_prefix_.resize(whole_words, Prefixes().max);
}

bool ValueRanges::Set(Slot slot, bool known, std::string_view min, std::string_view max) {
  ranges_[slot] = {known, std::string(min), std::string(max)};
  if (known) {
    const size_t shared = has_common_
                              ? std::min(CommonPrefix(common_, min), CommonPrefix(common_, max))
                              : CommonPrefix(min, max);
    if (!has_common_ || shared < common_.size()) {
      // Happens a few times, until what really is common is found.
      common_ = min.substr(0, shared);
      has_common_ = true;
      for (Slot other = 0; other < ranges_.size(); ++other) PlacePrefixes(other);
      return true;
    }
  }
  PlacePrefixes(slot);
  return false;
}

void ValueRanges::Clear(Slot slot) {
  ranges_[slot] = {};
  PlacePrefixes(slot);
}

void ValueRanges::PlacePrefixes(Slot slot) {
  const ValueRange& range = ranges_[slot];
  min_prefix_[slot] = range.known ? Prefix(range.min) : Prefixes().min;
  max_prefix_[slot] = range.known ? Prefix(range.max) : Prefixes().max;
}

std::optional<std::string> ValueRanges::EndOf(Slot slot, bool largest) const {
  if (slot >= ranges_.size() || !ranges_[slot].known) return std::nullopt;
  return largest ? ranges_[slot].max : ranges_[slot].min;
}

uint64_t ValueRanges::Prefix(std::string_view value) const {
  if (!value.starts_with(common_)) return value < std::string_view(common_) ? 0 : ~uint64_t{0};
  value.remove_prefix(common_.size());
  uint64_t prefix = 0;
  for (size_t i = 0; i < 8; ++i) {
    prefix = prefix << 8 | (i < value.size() ? static_cast<unsigned char>(value[i]) : 0);
  }
  return prefix;
}

void ValueRanges::AddThoseThatCover(std::string_view value, RegionBits* may) const {
  const uint64_t prefix = Prefix(value);
  for (Slot slot = 0; slot < ranges_.size() && slot < may->size(); ++slot) {
    if (may->Get(slot)) continue;
    if (Covers(slot, prefixes(slot), value, prefix)) may->Set(slot);
  }
}

void ValueRanges::AddThoseWithin(std::string_view low, std::string_view high,
                                 const RegionBits& among, RegionBits* may) const {
  const size_t words = std::min(among.words(), may->words());
  const uint64_t low_prefix = Prefix(low);
  const uint64_t high_prefix = high.empty() ? ~uint64_t{0} : Prefix(high);
  std::vector<uint64_t> inside(words), edge(words);
  FindWithin(min_prefix_.data(), max_prefix_.data(), words, low_prefix, high_prefix, inside.data(),
             edge.data());
  for (size_t word = 0; word < words; ++word) {
    uint64_t sure = inside[word];
    for (uint64_t bits = edge[word] & among.Word(word); bits != 0; bits &= bits - 1) {
      const int bit = std::countr_zero(bits);
      const ValueRange& range = ranges_[word * 64 + static_cast<size_t>(bit)];
      if (range.known && range.max >= low && (high.empty() || range.min < high)) {
        sure |= uint64_t{1} << bit;
      }
    }
    may->SetWord(word, may->Word(word) | sure);
  }
}

}  // namespace tamis
