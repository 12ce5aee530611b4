#include "tamis/filter/internal/cuckoo_table.h"

#include <algorithm>
#include <cassert>

#include "tamis/filter/internal/batch.h"

namespace tamis {
namespace {

using Place = CuckooTable::Place;

// A table of one width.
template <class B>
struct Table {
  uint64_t buckets;

  Place PlaceOf(uint64_t hash) const { return CuckooTable::PlaceOf(hash, buckets, B::kWidth); }
  uint64_t Other(uint64_t bucket, uint32_t tag) const {
    return CuckooTable::Other(bucket, tag, buckets);
  }
  static void Prefetch(const char* bytes, uint64_t bucket) {
    __builtin_prefetch(bytes + bucket * B::kBits / 8);
  }
  Place Fetched(const char* bytes, uint64_t hash) const {
    const Place place = PlaceOf(hash);
    Prefetch(bytes, place.bucket);
    Prefetch(bytes, place.other);
    return place;
  }

  static bool Has(const char* bytes, uint64_t bucket, uint32_t tag) {
    return B::Has(B::Load(bytes, bucket), tag);
  }
  // Reads both buckets also if the first matches: half the branches would be mispredicted.
  static bool HasEither(const char* bytes, const Place& place, uint32_t tag) {
    return (int{Has(bytes, place.bucket, tag)} | int{Has(bytes, place.other, tag)}) != 0;
  }
  static bool Contains(const char* bytes, const Place& place) {
    return HasEither(bytes, place, place.tag);
  }

  static uint32_t CopiesIn(const char* bytes, uint64_t bucket, uint32_t tag) {
    const CuckooTags tags = B::Tags(B::Load(bytes, bucket));
    return static_cast<uint32_t>(std::ranges::count(tags, tag));
  }
  static uint32_t Copies(const char* bytes, const Place& place) {
    if (!Contains(bytes, place)) return 0;
    const uint32_t copies = CopiesIn(bytes, place.bucket, place.tag);
    return place.other == place.bucket ? copies : copies + CopiesIn(bytes, place.other, place.tag);
  }

  static bool Replace(char* bytes, uint64_t bucket, uint32_t old, uint32_t tag) {
    const auto word = B::Load(bytes, bucket);
    const uint32_t slot = B::Slot(word, old);
    if (slot == kCuckooSlots) return false;
    B::Store(bytes, bucket, B::With(word, slot, tag));
    return true;
  }
  // In the first of the place's buckets that has it. Which one that is is chosen without a branch.
  static bool ReplaceInEither(char* bytes, const Place& place, uint32_t old, uint32_t tag) {
    const bool first = Has(bytes, place.bucket, old);
    return Replace(bytes, first ? place.bucket : place.other, old, tag);
  }
  static bool Erase(char* bytes, const Place& place) {
    return ReplaceInEither(bytes, place, place.tag, 0);
  }

  // Where both buckets of a place are full, the tags in them may have to move: starts to load
  // where they can go.
  void PrefetchOthers(const char* bytes, const Place& place) const {
    if (HasEither(bytes, place, 0)) return;
    for (const uint64_t bucket : {place.bucket, place.other}) {
      for (const uint32_t tag : B::Tags(B::Load(bytes, bucket))) {
        Prefetch(bytes, Other(bucket, tag));
      }
    }
  }
  // Puts the tag into a full bucket if one that is there has room in its other bucket.
  bool PutWhereOneCanMove(char* bytes, uint64_t bucket, uint32_t tag) const {
    const CuckooTags tags = B::Tags(B::Load(bytes, bucket));
    for (const uint32_t there : tags) {
      if (!Replace(bytes, Other(bucket, there), 0, there)) continue;
      return Replace(bytes, bucket, there, tag);
    }
    return false;
  }

  bool Insert(char* bytes, const Place& place) const {
    return ReplaceInEither(bytes, place, 0, place.tag) ||
           PutWhereOneCanMove(bytes, place.bucket, place.tag) ||
           PutWhereOneCanMove(bytes, place.other, place.tag) || Kick(bytes, place);
  }
  // Moves a tag to its other bucket to make room, one from there to its own, and so on, until one
  // comes where another can move.
  bool Kick(char* bytes, const Place& place) const {
    struct Step {
      uint64_t bucket;
      uint32_t slot;
      uint32_t moved;
    };
    std::array<Step, CuckooTable::kMaxKicks> steps;
    uint32_t kicks = 0;
    uint64_t bucket = place.bucket;
    uint32_t homeless = place.tag;
    uint64_t choice = place.bucket;  // the same filter and key take the same way
    while (kicks < CuckooTable::kMaxKicks) {
      const auto word = B::Load(bytes, bucket);
      const CuckooTags tags = B::Tags(word);
      // Copies of the homeless tag itself need not be moved; when there are only such, give up.
      uint32_t slot = (choice = Mix(choice + 1)) % kCuckooSlots;
      for (uint32_t i = 0; i < kCuckooSlots && tags[slot] == homeless; ++i) {
        slot = (slot + 1) % kCuckooSlots;
      }
      if (tags[slot] == homeless) break;
      const uint32_t moved = tags[slot];
      const auto put = B::With(word, slot, homeless);
      B::Store(bytes, bucket, put);
      steps[kicks++] = {bucket, B::SlotWith(put, slot, homeless), moved};
      homeless = moved;
      bucket = Other(bucket, moved);
      if (PutWhereOneCanMove(bytes, bucket, homeless)) return true;
    }
    while (kicks > 0) {
      const Step& step = steps[--kicks];
      const auto word = B::Load(bytes, step.bucket);
      B::Store(bytes, step.bucket, B::With(word, step.slot, step.moved));
    }
    return false;
  }
};

}  // namespace

CuckooTable::CuckooTable(uint64_t buckets, uint32_t tag_bits, bool semi_sorted, WordArray words)
    : buckets_(buckets), tag_bits_(tag_bits), semi_sorted_(semi_sorted), words_(std::move(words)) {
  assert(IsCuckooWidth(tag_bits, semi_sorted));
  assert(words_.size() == WordsFor(buckets, tag_bits, semi_sorted));
}

// Calls f(table of this one's width).
template <class F>
auto CuckooTable::WithWidth(F&& f) const {
  return WithCuckooBuckets(tag_bits_, semi_sorted_,
                           [&]<class B>(B) { return f(Table<B>{buckets_}); });
}

bool CuckooTable::Contains(const Place& place) const {
  return WithWidth([&](auto table) { return table.Contains(bytes(), place); });
}
uint32_t CuckooTable::Copies(const Place& place) const {
  return WithWidth([&](auto table) { return table.Copies(bytes(), place); });
}
bool CuckooTable::Insert(const Place& place) {
  char* const bytes = MutableBytes();
  return WithWidth([&](auto table) { return table.Insert(bytes, place); });
}
bool CuckooTable::Erase(const Place& place) {
  char* const bytes = MutableBytes();
  return WithWidth([&](auto table) { return table.Erase(bytes, place); });
}

Bitmap CuckooTable::Contains(std::span<const uint64_t> hashes) const {
  return WithWidth([&](auto table) {
    return AnswerBatchByPlaces(
        hashes, [table, b = bytes()](uint64_t hash) { return table.Fetched(b, hash); },
        [table, b = bytes()](const Place& place) { return table.Contains(b, place); });
  });
}
Bitmap CuckooTable::Insert(std::span<const uint64_t> hashes) {
  char* const b = MutableBytes();
  return WithWidth([&](auto table) {
    return AnswerBatchByPlaces(
        hashes, [table, b](uint64_t hash) { return table.Fetched(b, hash); },
        [table, b](const Place& place) { table.PrefetchOthers(b, place); },
        [table, b](const Place& place) { return table.Insert(b, place); });
  });
}
Bitmap CuckooTable::Erase(std::span<const uint64_t> hashes) {
  char* const b = MutableBytes();
  return WithWidth([&](auto table) {
    return AnswerBatchByPlaces(
        hashes, [table, b](uint64_t hash) { return table.Fetched(b, hash); },
        [table, b](const Place& place) { return table.Erase(b, place); });
  });
}

CuckooTags CuckooTable::Tags(uint64_t bucket) const {
  return WithCuckooBuckets(tag_bits_, semi_sorted_,
                           [&]<class B>(B) { return B::Tags(B::Load(bytes(), bucket)); });
}

uint64_t CuckooTable::CountTags() const {
  return WithCuckooBuckets(tag_bits_, semi_sorted_, [&]<class B>(B) {
    uint64_t count = 0;
    for (uint64_t bucket = 0; bucket < buckets_; ++bucket) {
      for (const uint32_t tag : B::Tags(B::Load(bytes(), bucket))) count += tag != 0;
    }
    return count;
  });
}

bool CuckooTable::IsConsistent() const {
  const uint64_t bits = buckets_ * kSlots * (tag_bits_ - semi_sorted_);
  for (uint64_t word = bits / 64; word < words_.size(); ++word) {
    if (words_[word] >> (word == bits / 64 ? bits % 64 : 0) != 0) return false;
  }
  return WithCuckooBuckets(tag_bits_, semi_sorted_, [&]<class B>(B) {
    for (uint64_t bucket = 0; bucket < buckets_; ++bucket) {
      if (!B::IsConsistent(B::Load(bytes(), bucket))) return false;
    }
    return true;
  });
}

}  // namespace tamis
