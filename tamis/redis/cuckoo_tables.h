// CuckooTables: the tables of a CuckooChain: buckets of one-byte tags, each table `expansion` times
// as large as the one before. Where a tag lies shows in dumps, so the order in which buckets are
// tried is part of the interface: newest table first, and of an item's two buckets first that of
// its hash. Functions that a lookup or an erasure calls are inline.
//
//   Layout      table i has buckets * expansion^i buckets of bucket_size tags; 0 = empty. h = hash,
//               tag = h % 255 + 1; an item lies in bucket h or h ^ (tag * 0x5bd1e995), modulo the
//               buckets of the table
//   Threads     const members may run concurrently; others need exclusive access
//
// Positions count bytes over all tables, oldest first. A call that returns false has changed
// nothing.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tamis/redis/byte_array.h"
#include "tamis/redis/murmur_hash.h"

namespace tamis::redis {

class CuckooTables {
 public:
  // Where an item lies: its tag in bucket `hash` or `other` of some table.
  struct Place {
    uint64_t hash;
    uint64_t other;
    uint8_t tag;
  };
  static Place PlaceOf(std::string_view item);
  // The other bucket of a tag that lies in this one.
  static uint64_t Alternate(uint64_t bucket, uint8_t tag) {
    return bucket ^ (tag * uint64_t{0x5bd1e995});
  }

  CuckooTables() = default;
  // No table yet. REQUIRES: buckets (of the first table) is a power of two, expansion one or 0.
  CuckooTables(uint64_t buckets, uint16_t bucket_size, uint16_t expansion)
      : buckets_(buckets), bucket_size_(bucket_size), expansion_(expansion) {}

  // The newest table is followed by this one. REQUIRES (both): it has the bytes of its buckets.
  void Add(ByteArray table);
  // `bytes` of zeros. False when memory does not suffice.
  bool AddEmpty(uint64_t bytes);
  // Drops the newest tables, but not the first one, while they are empty. They are added to
  // `dropped`, which has room for all; without it they are freed at once. True when there was one.
  bool DropEmpty(std::vector<ByteArray>* dropped);
  // nullopt when memory does not suffice.
  std::optional<CuckooTables> Copy() const;

  uint64_t buckets() const { return buckets_; }  // buckets of the first table
  uint16_t bucket_size() const { return bucket_size_; }
  uint16_t expansion() const { return expansion_; }
  size_t size() const { return tables_.size(); }
  uint64_t data_bytes() const { return data_bytes_; }         // sum over all tables
  uint64_t Tags(size_t table) const { return tags_[table]; }  // how many the table holds
  uint64_t Buckets(size_t table) const {
    return buckets_ << (table * static_cast<size_t>(std::countr_zero(expansion_)));
  }
  std::span<const ByteArray> tables() const { return tables_; }
  std::span<ByteArray> mutable_tables() { return tables_; }  // for the allocator that moves bytes

  // The bytes from `position` to the end of their table, at most `greatest`; none behind the end.
  std::string_view Bytes(uint64_t position, uint64_t greatest) const;
  // Overwrites the bytes from `position`. False when they are not all of one table.
  bool SetBytes(uint64_t position, std::string_view bytes);

  // Prefetches the place in the newest table, which takes items, or in all tables.
  void PrefetchNewest(const Place& place) const;
  void PrefetchAll(const Place& place) const;
  bool Contains(const Place& place) const;
  uint64_t Count(const Place& place) const;
  // False when both buckets are full in every table.
  bool TakeFreeSlot(const Place& place);
  // The same in this bucket of this table alone.
  bool TakeFreeSlot(size_t table, uint64_t hash, uint8_t tag);
  // Makes room in the newest table by moving at most `max_moves` tags to their other buckets.
  bool Kick(const Place& place, uint32_t max_moves);
  // False when no slot holds the tag.
  bool Erase(const Place& place);
  // Empties one slot. REQUIRES: it holds a tag.
  void EraseSlot(size_t table, uint64_t slot);
  // A fault, for tests: the table counts as empty.
  void ForgetTags(size_t table) { tags_[table] = 0; }

 private:
  static uint8_t* Find(uint8_t* bucket, uint8_t tag, uint32_t size);
  static bool Holds(const uint8_t* bucket, uint8_t tag, uint32_t size);
  uint8_t* Bucket(size_t table, uint64_t hash) {
    return tables_[table].data() + (hash & (Buckets(table) - 1)) * bucket_size_;
  }
  const uint8_t* Bucket(size_t table, uint64_t hash) const {
    return tables_[table].data() + (hash & (Buckets(table) - 1)) * bucket_size_;
  }

  uint64_t buckets_ = 0;
  uint16_t bucket_size_ = 0;
  uint16_t expansion_ = 0;
  uint64_t data_bytes_ = 0;
  std::vector<ByteArray> tables_;  // oldest first
  std::vector<uint64_t> tags_;     // how many each table holds
};

inline CuckooTables::Place CuckooTables::PlaceOf(std::string_view item) {
  const uint64_t hash = MurmurHash64A(item, 0);
  const auto tag = static_cast<uint8_t>(hash % 255 + 1);
  return {hash, Alternate(hash, tag), tag};
}

inline bool CuckooTables::Holds(const uint8_t* bucket, uint8_t tag, uint32_t size) {
  if (size > 8) return std::memchr(bucket, tag, size) != nullptr;
  bool found = false;
  for (uint32_t i = 0; i < size; ++i) found |= bucket[i] == tag;
  return found;
}

inline void CuckooTables::PrefetchNewest(const Place& place) const {
  __builtin_prefetch(Bucket(tables_.size() - 1, place.hash), 1);
  __builtin_prefetch(Bucket(tables_.size() - 1, place.other), 1);
}

inline void CuckooTables::PrefetchAll(const Place& place) const {
  constexpr size_t kFetched = 8;  // more would drive out one another
  for (size_t i = tables_.size(), end = i - std::min(i, kFetched); i-- > end;) {
    __builtin_prefetch(Bucket(i, place.hash));
    __builtin_prefetch(Bucket(i, place.other));
  }
}

inline bool CuckooTables::Contains(const Place& place) const {
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      if (Holds(Bucket(i, hash), place.tag, bucket_size_)) return true;
    }
  }
  return false;
}

inline bool CuckooTables::Erase(const Place& place) {
  for (size_t i = tables_.size(); i-- > 0;) {
    for (const uint64_t hash : {place.hash, place.other}) {
      void* slot = std::memchr(Bucket(i, hash), place.tag, bucket_size_);
      if (slot == nullptr) continue;
      *static_cast<uint8_t*>(slot) = 0;
      --tags_[i];
      return true;
    }
  }
  return false;
}

}  // namespace tamis::redis
