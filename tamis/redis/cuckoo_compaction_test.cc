#include "tamis/redis/cuckoo_compaction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/testing/cuckoo_chains.h"
#include "tamis/redis/testing/cuckoo_model.h"

namespace tamis::redis {
namespace {

// A random chain of several tables, and copies of the items that must be found in it.
struct Filled {
  CuckooChain chain;
  std::map<std::string, uint64_t> copies;
};

void Change(Random& random, uint64_t eager, Filled* filled) {
  const std::string item = std::to_string(random.Uniform(3000));
  const auto it = filled->copies.find(item);
  if (random.Uniform(10) < eager) {
    if (filled->chain.Insert(item, kDefault) == Inserted::kYes) ++filled->copies[item];
  } else if (it != filled->copies.end()) {
    ASSERT_TRUE(filled->chain.Erase(item));
    if (--it->second == 0) filled->copies.erase(it);
  }
}

// The first item that must be found and is not.
std::string Refused(const Filled& filled) {
  for (const auto& [item, count] : filled.copies) {
    if (!filled.chain.MayContain(item) || filled.chain.Count(item) < count) return item;
  }
  return "";
}

Filled Fill(Random& random) {
  const uint64_t bucket_size = 1 + random.Uniform(6);
  const uint64_t capacity = bucket_size * 2 + random.Uniform(400);
  Filled filled{Make({.capacity = capacity,
                      .bucket_size = static_cast<uint16_t>(bucket_size),
                      .max_iterations = static_cast<uint16_t>(1 + random.Uniform(30)),
                      .expansion = static_cast<uint16_t>(uint64_t{1} << random.Uniform(2))}),
                {}};
  for (int i = 0; i < 4000; ++i) Change(random, 8, &filled);
  return filled;
}

TEST(CuckooCompaction, CompactionInPiecesEqualsAWholeOne) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    const uint64_t bucket_size = 1 + random.Uniform(6);
    const uint64_t capacity = bucket_size * 2 + random.Uniform(400);
    const uint64_t expansion = uint64_t{1} << random.Uniform(3);
    CuckooChain chain = Make({.capacity = capacity,
                              .bucket_size = static_cast<uint16_t>(bucket_size),
                              .expansion = static_cast<uint16_t>(expansion)});
    CuckooModel model(capacity, bucket_size, 20, expansion);
    for (int i = 0; i < 3000; ++i) {
      const std::string item = std::to_string(i);
      ASSERT_EQ(chain.Insert(item, kDefault), model.Insert(item, kDefault.tables));
    }
    Filled holes{std::move(chain), {}};
    const uint64_t kept = random.Uniform(10);
    for (int i = 0; i < 3000; ++i) {
      if (random.Uniform(10) < kept) continue;
      (void)holes.chain.Erase(std::to_string(i));
      (void)model.Erase(std::to_string(i));
    }
    CuckooChain whole = std::move(*holes.chain.Copy());
    ASSERT_TRUE(AllBytes(whole) == model.AllBytes());
    EXPECT_EQ(whole.Compact(0, kNoLimit, true).next, 0u);
    model.Compact(true);
    ASSERT_TRUE(AllBytes(whole) == model.AllBytes());
    ASSERT_EQ(whole.tables().size(), model.tables());
    uint64_t at = 0;
    uint64_t pieces = 0;
    do {
      at = holes.chain.Compact(at, 1 + random.Uniform(3000), true).next;
      ASSERT_LT(++pieces, 100'000u);
    } while (at != 0);
    EXPECT_TRUE(AllBytes(holes.chain) == AllBytes(whole));
    EXPECT_EQ(holes.chain.Header(), whole.Header());
  }
}

// Counted in the bytes before and after: each tag that moved or stayed was looked for a place.
TEST(CuckooCompaction, PieceOfACompactionIsBounded) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  uint64_t pieces = 0, moved_alone = 0;
  for (int round = 0; round < 50; ++round) {
    Filled filled = Fill(random);
    CuckooChain& chain = filled.chain;
    const uint64_t slots = 1 + random.Uniform(5000);
    for (uint64_t at = 0;;) {
      const std::string before = AllBytes(chain);
      const std::string header = chain.Header();
      const size_t tables = chain.tables().size();
      const auto [next, changed] = chain.Compact(at, slots, true);
      const std::string after = AllBytes(chain);
      EXPECT_EQ(changed, header != chain.Header() || before != after);
      ++pieces;
      // The tags that the piece passed, by the table that they lay in.
      uint64_t work = 0;
      uint64_t begin = before.size();
      for (size_t i = tables; i-- > 1;) {
        const uint64_t size = chain.Buckets(i) * chain.bucket_size();
        begin -= size;
        if (at != 0 && at < before.size() && at < begin) continue;  // newer than the piece
        const uint64_t first = at > begin && at < begin + size ? at - begin : 0;
        const bool stopped_here = next >= begin && next < begin + size;
        for (uint64_t j = first; j < (stopped_here ? next - begin : size); ++j) {
          if (before[begin + j] == 0) continue;
          const bool moved = begin + j >= after.size() || after[begin + j] == 0;
          work += 1 + kLookSlots * (moved ? 1 : 2 * i);
        }
        if (stopped_here) break;
      }
      // The last tag is not left half done.
      EXPECT_LE(work, slots + 1 + kLookSlots * 2 * tables);
      if (next == 0) break;
      ASSERT_NE(next, at);
      if (at != 0 && at < before.size() && next > at) {
        EXPECT_LE(next - at, slots);
      }
      at = next;
    }
    EXPECT_EQ(chain.deletes(), 0u);
    EXPECT_EQ(Refused(filled), "");
    // Tags that come into the newest table move into free places of older ones, and none is
    // dropped.
    for (int i = 0; i < 20; ++i) Change(random, 10, &filled);
    const std::string before = AllBytes(chain);
    const std::string header = chain.Header();
    const bool changed = chain.Compact(0, kNoLimit, true).changed;
    EXPECT_EQ(changed, header != chain.Header() || before != AllBytes(chain));
    moved_alone += changed && before.size() == AllBytes(chain).size();
  }
  EXPECT_GT(pieces, 1000u);
  EXPECT_GT(moved_alone, 0u);
}

// Compacts in pieces with other changes in between, and returns the first item that is refused. A
// replica has the same bytes throughout, and is copied from the start, or restarts, at any time.
std::string CompactAmongChanges(uint64_t seed, uint64_t* pieces) {
  Random random(seed);
  Filled filled = Fill(random);
  CuckooChain replica = Load(filled.chain);
  const uint64_t eager = 3 + random.Uniform(5);
  uint64_t begun = 0;
  for (int i = 0; i < 300; ++i) {
    for (uint64_t n = random.Uniform(5); n-- > 0;) {
      const std::string item = std::to_string(random.Uniform(3000));
      const auto it = filled.copies.find(item);
      if (random.Uniform(10) < eager) {
        const Inserted done = filled.chain.Insert(item, kDefault);
        if (done == Inserted::kYes) {
          ++filled.copies[item];
          EXPECT_EQ(replica.Insert(item, {.tables = kNoLimit}), done);
        }
      } else if (it != filled.copies.end()) {
        EXPECT_TRUE(filled.chain.Erase(item) && replica.Erase(item));
        if (--it->second == 0) filled.copies.erase(it);
      }
    }
    if (random.OneIn(20)) replica = Load(filled.chain);
    if (random.OneIn(50)) filled.chain = Load(filled.chain);  // it forgets how far it was
    const uint64_t at = filled.chain.next_piece();
    if (at == 0) ++begun;
    (void)filled.chain.Compact(at, 3000, true);
    (void)replica.Compact(at, 3000, true);
    ++*pieces;
    EXPECT_TRUE(AllBytes(replica) == AllBytes(filled.chain));
    EXPECT_EQ(replica.Header(), filled.chain.Header());
    if (std::string refused = Refused(filled); !refused.empty()) return refused;
  }
  EXPECT_GT(begun, 0u);
  while (filled.chain.Compact(filled.chain.next_piece(), 3000, true).next != 0) {
  }
  return Refused(filled);
}

TEST(CuckooCompaction, PiecesAmongChangesRefuseNothingAndReplicasAreEqual) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  uint64_t pieces = 0;
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(CompactAmongChanges(seed + i, &pieces), "");
  EXPECT_EQ(pieces, 10u * 300);
}

TEST(CuckooCompaction, ItemIsRefusedWhenATableIsDroppedThatWasFoundEmptyBefore) {
  CuckooChain chain = Make({.capacity = 1 << 10});
  for (int i = 0; i < 3000; ++i)
    ASSERT_EQ(chain.Insert(std::to_string(i), kDefault), Inserted::kYes);
  ASSERT_GT(chain.tables().size(), 2u);
  const auto one_that_is_refused = [&]() -> bool {
    CuckooChain copy = std::move(*chain.Copy());
    uint64_t at = 0;
    do {
      at = copy.Compact(at, 1000, true).next;
    } while (at != 0);
    for (int i = 0; i < 3000; ++i) {
      if (!copy.MayContain(std::to_string(i))) return true;
    }
    return false;
  };
  EXPECT_FALSE(one_that_is_refused());
  faults.drops_what_was_passed = true;
  EXPECT_TRUE(one_that_is_refused());
  faults.drops_what_was_passed = false;
}

TEST(CuckooCompaction, TagsOfLoadedTablesAreCounted) {
  const std::string full(1024, '\7');
  CuckooChain::Parts parts = {
      .buckets = 512, .bucket_size = 2, .max_iterations = 20, .expansion = 1, .tables = {}};
  parts.tables.push_back(TableOf(full));
  parts.tables.push_back(TableOf(full));
  auto saved = CuckooChain::FromParts(std::move(parts), 0);
  ASSERT_TRUE(saved.ok()) << saved.status();
  CuckooChain in_chunks = Load(*saved);
  for (CuckooChain* chain : {&*saved, &in_chunks}) {
    const auto dropped = [&] {
      return chain->Compact(0, kNoLimit, true).changed && chain->tables().size() == 1;
    };
    EXPECT_FALSE(dropped());
    // Chunks are also taken again.
    EXPECT_TRUE(chain->LoadChunk(0, std::string(1024, '\0')));
    EXPECT_TRUE(chain->LoadChunk(1024, std::string(1000, '\0')));
    EXPECT_TRUE(chain->LoadChunk(2047, "\7"));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(std::ranges::count(AllBytes(*chain), '\7'), 24);
  }
}

TEST(CuckooCompaction, EmptyTablesAreDroppedWithoutPassingThem) {
  CuckooChain chain = Make({.capacity = 1 << 22});
  std::vector<std::string> items;
  for (int i = 0; chain.tables().size() < 2; ++i) {
    items.push_back(std::to_string(i));
    ASSERT_EQ(chain.Insert(items.back(), kDefault), Inserted::kYes);
  }
  ASSERT_TRUE(chain.Erase(items.back()));  // newest tables first
  items.pop_back();
  std::vector<ByteArray> dropped;
  dropped.reserve(2);
  const CompactedPiece piece = chain.Compact(0, 0, true, &dropped);
  EXPECT_EQ(piece.next, 0u);
  EXPECT_TRUE(piece.changed);
  EXPECT_EQ(dropped.size(), 1u);
  EXPECT_EQ(chain.tables().size(), 1u);
  for (const std::string& item : items) ASSERT_TRUE(chain.MayContain(item));
}

}  // namespace
}  // namespace tamis::redis
