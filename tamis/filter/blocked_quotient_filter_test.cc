#include "tamis/filter/blocked_quotient_filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"
#include "tamis/filter/testing/targets.h"

namespace tamis {
namespace {

// --- lines -------------------------------------------------------------------------------------

// Against std::multiset, for every processor's code.
TEST(QuotientLineTest, EveryTargetIsAMultisetOfFingerprints) {
  using Placed = QuotientLineFunctions::Placed;
  using Found = QuotientLineFunctions::Found;
  Random random(1);
  ForEachTarget([&] {
    for (const QuotientLineShape& shape : kQuotientLineShapes) {
      const auto functions = QuotientLineFunctions::For(shape);
      alignas(64) uint64_t line[kQuotientLineWords] = {};
      std::multiset<uint64_t> model;
      // Few values, many equal tags in different groups, extreme ones.
      const auto draw = [&] {
        const uint64_t tag_mask = (uint64_t{1} << shape.tag_bits) - 1;
        const uint64_t group =
            random.OneIn(4) ? shape.groups() - 1 : random.Uniform(shape.groups());
        const uint64_t tag = random.OneIn(3) ? random.Uniform(2) * tag_mask : random() & tag_mask;
        return group << shape.tag_bits | tag;
      };
      for (int step = 0; step < 30000; ++step) {
        const bool grow = step / 500 % 2 == 0;
        const uint64_t drawn = draw();
        if (random.Uniform(10) < (grow ? 7u : 3u)) {
          const Placed placed = functions.insert(line, drawn, 3);
          const bool full = model.size() == shape.slots;
          ASSERT_EQ(placed, full                      ? Placed::kFull
                            : model.count(drawn) >= 3 ? Placed::kTooManyCopies
                                                      : Placed::kDone);
          if (placed == Placed::kDone) model.insert(drawn);
        } else {
          const uint64_t victim =
              model.empty() || random.OneIn(3)
                  ? drawn
                  : *std::next(model.begin(), static_cast<long>(random.Uniform(model.size())));
          const auto at = model.find(victim);
          ASSERT_EQ(functions.erase(line, victim), at != model.end());
          if (at != model.end()) model.erase(at);
        }
        const QuotientLineView view(shape, line);
        ASSERT_EQ(functions.find(line, drawn),
                  model.contains(drawn) ? Found::kHere : Found::kAbsent);
        ASSERT_EQ(view.Count(), model.size());
        if (step % 16 == 0) {
          ASSERT_EQ(view.Fingerprints(), std::vector<uint64_t>(model.begin(), model.end()));
        }
        if (view.IsFull()) {
          ASSERT_EQ(view.Last(), *model.rbegin());
          ASSERT_EQ(view.CopiesOfLast(), model.count(*model.rbegin()));
          QuotientLineView::SetSpilled(shape, line, true);
          const uint64_t group = drawn >> shape.tag_bits;
          const Found otherwise =
              group >= *model.rbegin() >> shape.tag_bits ? Found::kPerhapsSpilled : Found::kAbsent;
          ASSERT_EQ(functions.find(line, drawn), model.contains(drawn) ? Found::kHere : otherwise);
          QuotientLineView::SetSpilled(shape, line, false);
        }
      }
      for (const uint64_t fingerprint : model) ASSERT_TRUE(functions.erase(line, fingerprint));
      for (const uint64_t word : line) EXPECT_EQ(word, 0u);
    }
  });
}

// --- the table of spilled fingerprints ---------------------------------------------------------

TEST(SpillTableTest, IsAnOrderedMultisetWhoseBytesFollowFromItsContents) {
  for (const uint32_t bits : {14u, 21u}) {
    Random random(2);
    constexpr uint64_t kLines = 300;
    const auto make = [&] {
      return SpillTable(kLines, bits, WordArray(SpillTable::WordsFor(160, bits)));
    };
    SpillTable table = make();
    std::multiset<std::pair<uint64_t, uint64_t>> model;
    int refused = 0;
    for (int step = 0; step < 40000; ++step) {
      const std::pair<uint64_t, uint64_t> entry{random.Uniform(kLines / 10) * 10,
                                                random.Uniform(4)};
      const auto at = model.find(entry);
      const uint64_t choice = random.Uniform(step / 1000 % 2 == 0 ? 10 : 30);
      if (choice < 6) {
        constexpr uint32_t kCopies = 5;
        if (model.count(entry) == kCopies) {
          ASSERT_FALSE(table.Insert(entry.first, entry.second, kCopies));
        } else if (table.Insert(entry.first, entry.second, kCopies)) {
          model.insert(entry);
        } else {
          ++refused;
        }
      } else if (choice % 2 == 0) {
        ASSERT_EQ(table.Erase(entry.first, entry.second), at != model.end());
        if (at != model.end()) model.erase(at);
      } else {
        const auto first = model.lower_bound({entry.first, 0});
        const bool any = first != model.end() && first->first == entry.first;
        bool has_more = false;
        const auto taken = table.TakeFirst(entry.first, &has_more);
        ASSERT_EQ(taken.has_value(), any);
        if (any) {
          ASSERT_EQ(*taken, first->second);
          model.erase(first);
        }
        ASSERT_EQ(has_more, table.ContainsLine(entry.first));
      }
      ASSERT_EQ(table.Contains(entry.first, entry.second), model.contains(entry));
      if (step % 100 == 0) {
        SpillTable fresh = make();
        for (const auto& [line, fingerprint] : model)
          ASSERT_TRUE(fresh.Insert(line, fingerprint, 5));
        ASSERT_TRUE(std::ranges::equal(fresh.words().words(), table.words().words()));
      }
    }
    EXPECT_GT(refused, 0);
  }
}

// An attacker chooses tens of thousands of keys of one line, then other keys come. Entries of 32
// bits have few bits of the line's number.
TEST(SpillTableTest, RefusesWhatWouldLieTooFarAway) {
  constexpr uint64_t kLines = 200'000;
  SpillTable table(kLines, 14, WordArray(SpillTable::WordsFor(2 * kLines, 14)));
  uint64_t held = 0;
  for (uint64_t i = 0; i < 16 * 16384; ++i) {
    held += table.Insert(5, i % 16384, 16);
  }
  EXPECT_GT(held, SpillTable::kMaxDisplacement / 2);
  EXPECT_LE(held, SpillTable::kMaxDisplacement + 1);
  for (uint64_t line = 6; line < kLines; line += 7) {
    if (table.Insert(line, 3, 1)) {
      ASSERT_TRUE(table.Contains(line, 3)) << line;
    }
  }
  for (uint64_t i = 0; i < 16384; ++i) ASSERT_TRUE(table.Contains(5, i)) << i;
  for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(table.Erase(5, i % 16384)) << i;
  EXPECT_FALSE(table.ContainsLine(5));
}

// --- the filter --------------------------------------------------------------------------------

BlockedQuotientFilter Make(uint64_t capacity, double fpr = 0.003) {
  return *BlockedQuotientFilter::Create({.capacity = capacity, .fpr = fpr, .seed = 7});
}

TEST(BlockedQuotientFilterTest, RefusesFromALoadOf94PercentOnAndLosesNothing) {
  BlockedQuotientFilter filter = Make(500'000);
  uint64_t held = 0;
  while (filter.Insert(Key(1, held))) ++held;
  EXPECT_GE(filter.Fill(), 0.94);
  const std::string before = filter.Serialize();
  EXPECT_FALSE(filter.Insert(Key(1, held)));
  EXPECT_EQ(filter.Serialize(), before);
  for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(filter.MayContain(Key(1, i)));
  for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(filter.Erase(Key(1, i)));
  EXPECT_EQ(filter.Serialize(), Make(500'000).Serialize());
}

// Ten times the capacity comes and goes; the bytes are then those of a filter that never saw it.
TEST(BlockedQuotientFilterTest, BytesDoNotDependOnErasedKeys) {
  for (const double fpr : {0.003, 1e-4, 1e-9}) {
    constexpr uint64_t kKeys = 30000;
    BlockedQuotientFilter filter = Make(kKeys, fpr);
    for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(filter.Insert(Key(2, i)));
    for (uint64_t i = 0; i < 10 * kKeys; ++i) {
      ASSERT_TRUE(filter.Erase(Key(2, i)));
      ASSERT_TRUE(filter.Insert(Key(2, kKeys + i)));
    }
    BlockedQuotientFilter fresh = Make(kKeys, fpr);
    for (uint64_t i = 11 * kKeys; i-- > 10 * kKeys;) ASSERT_TRUE(fresh.Insert(Key(2, i)));
    EXPECT_EQ(filter.Serialize(), fresh.Serialize());
    EXPECT_GT(filter.Spilled(), 0u);
  }
}

TEST(BlockedQuotientFilterTest, FewKeysLieOutsideTheirLineAtCapacity) {
  constexpr uint64_t kKeys = 1'000'000;
  BlockedQuotientFilter filter = Make(kKeys);
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(filter.Insert(Key(3, i)));
  EXPECT_LT(filter.Spilled(), 0.03 * kKeys);
  EXPECT_LE(8.0 * static_cast<double>(filter.SizeBytes()) / kKeys, 13);
}

TEST(BlockedQuotientFilterTest, AKeyInsertedSixteenTimesSurvivesFifteenErases) {
  BlockedQuotientFilter filter = Make(100);
  for (uint32_t i = 0; i < BlockedQuotientFilter::kMaxCopies; ++i) {
    ASSERT_TRUE(filter.Insert(Key(4, 0)));
  }
  EXPECT_FALSE(filter.Insert(Key(4, 0)));
  for (uint32_t i = 0; i < BlockedQuotientFilter::kMaxCopies; ++i) {
    EXPECT_TRUE(filter.MayContain(Key(4, 0)));
    EXPECT_TRUE(filter.Erase(Key(4, 0)));
  }
  EXPECT_FALSE(filter.MayContain(Key(4, 0)));
  EXPECT_FALSE(filter.Erase(Key(4, 0)));
}

// In a full line the copies are partly in the line and partly in the table.
TEST(BlockedQuotientFilterTest, CopiesAreCountedAcrossLineAndTable) {
  BlockedQuotientFilter filter = Make(40);
  std::map<uint64_t, uint32_t> held;
  for (uint64_t key = 0; key < 6; ++key) {
    while (filter.Insert(Key(5, key))) ++held[key];
    EXPECT_LE(held[key], BlockedQuotientFilter::kMaxCopies);
  }
  EXPECT_GT(filter.Spilled(), 0u);
  for (uint64_t key = 0; key < 6; ++key) {
    for (uint32_t i = 0; i < held[key]; ++i) {
      ASSERT_TRUE(filter.MayContain(Key(5, key)));
      ASSERT_TRUE(filter.Erase(Key(5, key)));
    }
  }
  EXPECT_EQ(filter.Count(), 0u);
  EXPECT_EQ(filter.Serialize(), Make(40).Serialize());
}

TEST(BlockedQuotientFilterTest, GrowsWithoutItsKeysAtTwiceTheRateEachTime) {
  constexpr uint64_t kKeys = 20000;
  BlockedQuotientFilter filter = Make(kKeys);
  uint64_t held = 0;
  for (uint32_t doubling = 0; doubling < 4; ++doubling) {
    for (; held < kKeys << doubling; ++held) ASSERT_TRUE(filter.Insert(Key(6, held)));
    for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(filter.MayContain(Key(6, i)));
    uint64_t hits = 0;
    constexpr uint64_t kAsked = 1 << 18;
    for (uint64_t i = 0; i < kAsked; ++i) hits += filter.MayContain(Key(7, i));
    const double expected = 0.0027 * (1 << doubling);
    EXPECT_NEAR(filter.ExpectedFpr(), expected, expected * 0.03);
    EXPECT_NEAR(static_cast<double>(hits) / kAsked, expected,
                5 * std::sqrt(expected / kAsked) + expected * 0.03);
    ASSERT_TRUE(filter.Grow().ok());
    // A filter of that size made of the keys has the same bytes but for the bits that are lost.
    const auto read = BlockedQuotientFilter::Deserialize(filter.Serialize());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Serialize(), filter.Serialize());
  }
  for (uint64_t i = 0; i < held; ++i) ASSERT_TRUE(filter.Erase(Key(6, i)));
  EXPECT_EQ(filter.Count(), 0u);
  EXPECT_EQ(filter.Fill(), 0.0);
  while (filter.Grow().ok()) {
  }
  EXPECT_EQ(filter.Grow().code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(filter.Insert(Key(6, 0)));
  EXPECT_TRUE(filter.MayContain(Key(6, 0)));
}

// Few lines, filled until they refuse and emptied again, with repeated keys and absent ones in a
// batch.
TEST(BlockedQuotientFilterTest, BatchesInsertAndEraseAsSingleKeysDo) {
  for (const double fpr : {0.003, 1e-4, 1e-9}) {
    Random random(9);
    BlockedQuotientFilter one = Make(400, fpr);
    BlockedQuotientFilter batch = Make(400, fpr);
    uint64_t refused = 0;
    uint64_t most_spilled = 0;
    for (int step = 0; step < 400; ++step) {
      const bool insert = random.Uniform(10) < (step / 20 % 2 == 0 ? 9u : 1u);
      std::vector<uint64_t> keys(random.Uniform(300));
      for (uint64_t& key : keys) key = Key(8, random.Uniform(random.OneIn(3) ? 10 : 600));
      const std::span<const uint64_t> span(keys);
      const Bitmap answers = insert ? batch.Insert(span) : batch.Erase(span);
      for (size_t i = 0; i < keys.size(); ++i) {
        const bool answer = insert ? one.Insert(keys[i]) : one.Erase(keys[i]);
        ASSERT_EQ(TestBit(answers, i), answer) << "step " << step << ", key " << i;
        refused += insert && !answer;
      }
      ASSERT_EQ(one.Serialize(), batch.Serialize()) << "step " << step;
      most_spilled = std::max(most_spilled, one.Spilled());
    }
    EXPECT_GT(refused, 0u);
    EXPECT_GT(most_spilled, 5u);
  }
}

TEST(BlockedQuotientFilterTest, MergeThatDoesNotFitChangesNothing) {
  BlockedQuotientFilter a = Make(5000);
  BlockedQuotientFilter b = Make(5000);
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(a.Insert(Key(9, i)));
    ASSERT_TRUE(b.Insert(Key(10, i)));
  }
  const std::string before = a.Serialize();
  EXPECT_EQ(a.Merge(b).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(a.Serialize(), before);
  ASSERT_TRUE(a.Grow().ok());
  ASSERT_TRUE(b.Grow().ok());
  ASSERT_TRUE(a.Merge(b).ok());
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_TRUE(a.MayContain(Key(9, i)));
    ASSERT_TRUE(a.MayContain(Key(10, i)));
  }
}

TEST(BlockedQuotientFilterTest, TheStoredBytesAreThoseOfVersion1) {
  const auto stored = [](double fpr) {
    BlockedQuotientFilter filter = Make(100, fpr);
    for (uint64_t i = 0; i < 120; ++i) EXPECT_TRUE(filter.Insert(Mix(i)));
    return Hash(filter.Serialize(), 0);
  };
  EXPECT_EQ(stored(0.003), 6020939961736815873u) << "bytes changed";
  EXPECT_EQ(stored(1e-4), 15429555732424799182u) << "bytes changed";
  EXPECT_EQ(stored(1e-9), 12832587661892902414u) << "bytes changed";
}

// --- one writer beside readers -----------------------------------------------------------------

TEST(BlockedQuotientFilterTest, WritingBesideReadersMakesTheSameBytes) {
  for (const double fpr : {0.003, 1e-4, 1e-9}) {
    constexpr uint64_t kKeys = 3000;
    BlockedQuotientFilter alone = Make(kKeys, fpr);
    BlockedQuotientFilter shared = Make(kKeys, fpr);
    LineVersions versions(shared.LineCount());
    Random random(11);
    std::vector<uint64_t> held;
    for (int step = 0; step < 30000; ++step) {
      const bool grow = held.size() < kKeys && (step / 4000 % 2 == 0 || random.OneIn(3));
      if (grow) {
        // Some keys many times, up to the limit of copies.
        const uint64_t key = Key(8, random.OneIn(20) ? random.Uniform(5) : random());
        const bool inserted = alone.Insert(key);
        ASSERT_EQ(shared.InsertWhileRead(key, &versions), inserted);
        if (inserted) held.push_back(key);
        if (!inserted) {
          ASSERT_EQ(shared.CopiesOf(key), BlockedQuotientFilter::kMaxCopies);
        }
      } else {
        const bool absent = held.empty() || random.OneIn(10);
        const size_t at = absent ? 0 : random.Uniform(held.size());
        const uint64_t key = absent ? Key(9, random()) : held[at];
        if (absent && alone.MayContain(key)) continue;  // would take another key's copy away
        const bool erased = alone.Erase(key);
        ASSERT_EQ(shared.EraseWhileRead(key, &versions), erased);
        ASSERT_TRUE(erased || absent);
        if (!absent) {
          held[at] = held.back();
          held.pop_back();
        }
      }
      if (step % 1000 == 0) {
        ASSERT_EQ(alone.Serialize(), shared.Serialize());
      }
      const uint64_t asked = Key(10, random());
      ASSERT_EQ(shared.MayContainWhileWritten(asked, versions),
                alone.MayContain(asked) ? BlockedQuotientFilter::Answer::kPerhaps
                                        : BlockedQuotientFilter::Answer::kNo);
    }
    EXPECT_EQ(alone.Serialize(), shared.Serialize());
    EXPECT_GT(alone.Spilled(), 0u);
  }
}

// Few lines, all of them full, so that most changes move keys to the table and back.
TEST(BlockedQuotientFilterTest, ReadersFindWhatStaysWhileAWriterChangesTheRest) {
  constexpr uint64_t kStay = 600;
  constexpr uint64_t kCome = 500;
  BlockedQuotientFilter filter = Make(kStay + kCome);
  LineVersions versions(filter.LineCount());
  for (uint64_t i = 0; i < kStay; ++i) ASSERT_TRUE(filter.Insert(Key(12, i)));
  std::atomic<bool> done = false;
  std::atomic<uint64_t> rounds = 0;
  std::atomic<uint64_t> lost = 0;
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!done.load()) {
        for (uint64_t i = 0; i < kStay; ++i) {
          lost += filter.MayContainWhileWritten(Key(12, i), versions) ==
                  BlockedQuotientFilter::Answer::kNo;
        }
        ++rounds;
      }
    });
  }
  for (uint64_t round = 0; round < 50 || rounds.load() < 50; ++round) {
    for (uint64_t i = 0; i < kCome; ++i) {
      ASSERT_TRUE(filter.InsertWhileRead(Key(13 + round, i), &versions));
    }
    for (uint64_t i = 0; i < kCome; ++i) {
      ASSERT_TRUE(filter.EraseWhileRead(Key(13 + round, i), &versions));
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost, 0u);
}

}  // namespace
}  // namespace tamis
