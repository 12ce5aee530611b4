#include "tamis/filter/cuckoo_table.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <vector>

namespace tamis {
namespace {

constexpr uint32_t kCodes = 3876;  // multisets of four out of sixteen: C(19, 4)
constexpr uint32_t kCodeBits = 12;

// Four low parts in ascending order, the first in the lowest bits, and their numbers.
struct LowParts {
  std::array<uint16_t, 1 << kCodeBits> parts{};  // of a code; unknown codes read as zeros
  std::vector<uint16_t> code = std::vector<uint16_t>(1 << 16);

  LowParts() {
    uint16_t next = 0;
    for (uint32_t a = 0; a < 16; ++a) {
      for (uint32_t b = a; b < 16; ++b) {
        for (uint32_t c = b; c < 16; ++c) {
          for (uint32_t d = c; d < 16; ++d) {
            const uint32_t packed = a | b << 4 | c << 8 | d << 12;
            parts[next] = static_cast<uint16_t>(packed);
            code[packed] = next++;
          }
        }
      }
    }
    assert(next == kCodes);
  }
};

const LowParts& Low() {
  static const LowParts low;
  return low;
}

uint64_t MaskOf(uint32_t bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; }

// By low part first; within it by the rest, so that equal buckets have equal bytes.
bool SemiSortedLess(uint32_t a, uint32_t b) {
  return std::pair(a & 15, a >> 4) < std::pair(b & 15, b >> 4);
}

}  // namespace

CuckooTable::CuckooTable(uint64_t buckets, uint32_t tag_bits, bool semi_sorted, WordArray words)
    : buckets_(buckets),
      tag_bits_(tag_bits),
      bucket_bits_(kSlots * (tag_bits - semi_sorted)),
      semi_sorted_(semi_sorted),
      words_(std::move(words)) {
  assert(IsValid(tag_bits, semi_sorted));
  assert(words_.size() == WordsFor(buckets, tag_bits, semi_sorted));
  for (uint32_t slot = 0; slot < kSlots && tag_bits <= 16; ++slot) {
    field_ones_ |= uint64_t{1} << (slot * tag_bits);
  }
}

CuckooTable::Tags CuckooTable::Read(uint64_t bucket) const {
  Tags tags;
  if (semi_sorted_) {
    const uint64_t word = Load(bucket * bucket_bits_);
    const uint32_t low = Low().parts[word & MaskOf(kCodeBits)];
    const uint32_t rest_bits = tag_bits_ - 4;
    for (uint32_t i = 0; i < kSlots; ++i) {
      const uint64_t rest = word >> (kCodeBits + i * rest_bits) & MaskOf(rest_bits);
      tags[i] = static_cast<uint32_t>(rest << 4) | (low >> (4 * i) & 15);
    }
  } else {
    for (uint32_t i = 0; i < kSlots; ++i) {
      tags[i] =
          static_cast<uint32_t>(Load(bucket * bucket_bits_ + uint64_t{i} * tag_bits_) & MaskOf(tag_bits_));
    }
  }
  return tags;
}

uint32_t CuckooTable::Find(uint64_t bucket, uint32_t tag) const {
  if (HasSimplePlainBucket()) {
    const uint64_t zeros = ZeroFields(Load(bucket * bucket_bits_), tag);
    return zeros == 0 ? kSlots : std::countr_zero(zeros) / tag_bits_;
  }
  const Tags tags = Read(bucket);
  return static_cast<uint32_t>(std::find(tags.begin(), tags.end(), tag) - tags.begin());
}

void CuckooTable::Store(uint64_t bit, uint64_t mask, uint64_t value) {
  char* at = reinterpret_cast<char*>(words_.MutableData()) + bit / 8;
  uint64_t word;
  std::memcpy(&word, at, sizeof(word));
  word = (word & ~(mask << (bit % 8))) | value << (bit % 8);
  std::memcpy(at, &word, sizeof(word));
}

uint32_t CuckooTable::Set(uint64_t bucket, uint32_t slot, uint32_t tag) {
  if (!semi_sorted_) {
    Store(bucket * bucket_bits_ + uint64_t{slot} * tag_bits_, MaskOf(tag_bits_), tag);
    return slot;
  }
  Tags tags = Read(bucket);
  tags[slot] = tag;
  std::sort(tags.begin(), tags.end(), SemiSortedLess);
  uint32_t low = 0;
  uint64_t word = 0;
  for (uint32_t i = 0; i < kSlots; ++i) {
    low |= (tags[i] & 15) << (4 * i);
    word |= uint64_t{tags[i] >> 4} << (kCodeBits + i * (tag_bits_ - 4));
  }
  word |= Low().code[low];
  Store(bucket * bucket_bits_, MaskOf(bucket_bits_), word);
  return static_cast<uint32_t>(std::find(tags.begin(), tags.end(), tag) - tags.begin());
}

uint64_t CuckooTable::CountTags() const {
  uint64_t count = 0;
  for (uint64_t bucket = 0; bucket < buckets_; ++bucket) {
    for (const uint32_t tag : Read(bucket)) count += tag != 0;
  }
  return count;
}

bool CuckooTable::IsConsistent() const {
  const uint64_t bits = buckets_ * bucket_bits_;
  for (uint64_t word = bits / 64; word < words_.size(); ++word) {
    if (words_[word] >> (word == bits / 64 ? bits % 64 : 0) != 0) return false;
  }
  for (uint64_t bucket = 0; semi_sorted_ && bucket < buckets_; ++bucket) {
    if ((Load(bucket * bucket_bits_) & MaskOf(kCodeBits)) >= kCodes) return false;
    const Tags tags = Read(bucket);
    if (!std::is_sorted(tags.begin(), tags.end(), SemiSortedLess)) return false;
  }
  return true;
}

}  // namespace tamis
