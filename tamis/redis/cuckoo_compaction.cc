#include "tamis/redis/cuckoo_compaction.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tamis/redis/faults.h"

namespace tamis::redis {
namespace {

bool EightZeros(const uint8_t* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, 8);
  return word == 0;
}

// The tag lies in `bucket` of its table; modulo the buckets of an older one, which divide those of
// this, that is one of its buckets there.
bool CopyDown(CuckooTables* tables, size_t table, uint64_t bucket, uint8_t tag, uint64_t* slots) {
  for (size_t i = 0; i < table; ++i) {
    for (const uint64_t hash : {bucket, CuckooTables::Alternate(bucket, tag)}) {
      *slots -= std::min(*slots, kLookSlots);
      if (tables->TakeFreeSlot(i, hash, tag)) return true;
    }
  }
  return false;
}

}  // namespace

CompactedPiece CompactPiece(CuckooTables* tables, uint64_t position, uint64_t slots,
                            bool go_on_after_stuck_tag, std::vector<ByteArray>* dropped) {
  CompactedPiece piece;
  piece.changed = tables->DropEmpty(dropped);
  const auto size_of = [&](size_t table) { return tables->tables()[table].size(); };
  size_t i = tables->size() - 1;
  uint64_t begin = tables->data_bytes() - size_of(i);
  uint64_t at = 0;
  if (position != 0 && position < tables->data_bytes()) {
    while (position < begin) begin -= size_of(--i);
    at = position - begin;
  }
  for (; i > 0; begin -= size_of(--i), at = 0) {
    const uint8_t* const table = tables->tables()[i].data();
    const uint64_t size = size_of(i);
    bool left = false;  // a tag of this piece, which alone says nothing
    while (at < size && tables->Tags(i) > 0) {
      if (slots == 0) {
        piece.next = begin + at;
        return piece;
      }
      if (slots >= 8 && at + 8 <= size && EightZeros(table + at)) {
        slots -= 8;
        at += 8;
        continue;
      }
      --slots;
      if (const uint8_t tag = table[at]; tag != 0) {
        if (CopyDown(tables, i, at / tables->bucket_size(), tag, &slots)) {
          tables->EraseSlot(i, at);
          piece.changed = true;
        } else {
          left = true;
        }
      }
      ++at;
    }
    if (faults.drops_what_was_passed && !left) tables->ForgetTags(i);
    if (tables->Tags(i) > 0 && !go_on_after_stuck_tag) break;
  }
  piece.changed |= tables->DropEmpty(dropped);
  return piece;
}

}  // namespace tamis::redis
