// Spans through AnyFilter against single keys, where filters fill up and refuse.
#include "tamis/filter/any_filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <unordered_map>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

AnyFilter Make(std::string_view type, uint64_t capacity, double fpr) {
  auto filter = AnyFilter::Create(type, {.capacity = capacity, .fpr = fpr, .seed = 7});
  EXPECT_TRUE(filter.ok()) << filter.status();
  return *std::move(filter);
}

size_t InsertSingly(AnyFilter* filter, std::span<const uint64_t> hashes) {
  for (size_t i = 0; i < hashes.size(); ++i) {
    if (filter->Insert(hashes.subspan(i, 1)) == 0) return i;
  }
  return hashes.size();
}

Bitmap EraseSingly(AnyFilter* filter, std::span<const uint64_t> hashes) {
  Bitmap erased((hashes.size() + 63) / 64);
  for (size_t i = 0; i < hashes.size(); ++i) {
    erased[i / 64] |= filter->Erase(hashes.subspan(i, 1))[0] << (i % 64);
  }
  return erased;
}

// Some keys again and again, so that pieces have duplicates and are refused for them too.
std::vector<uint64_t> Piece(Random* random) {
  std::vector<uint64_t> piece(random->Uniform(random->OneIn(2) ? 6000 : 100));
  for (uint64_t& hash : piece) {
    hash = Key(1, random->OneIn(8) ? random->Uniform(100) : 1000 + random->Uniform(1 << 20));
  }
  return piece;
}

bool BoundsCopies(const FilterType& type) {
  return type.name == "blocked-quotient" || type.name == "cuckoo" || type.name == "quotient";
}

// How many copies of each key a filter holds, of which those of a key that stays do not change.
class KeptCopies {
 public:
  explicit KeptCopies(const FilterType& type)
      : bounded_(BoundsCopies(type)), most_(uint64_t{type.copies} + 1) {}

  void Insert(uint64_t hash) {
    uint64_t& copies = copies_[hash];
    if (bounded_ && copies == most_) return;
    ++copies;
    ++total_;
  }
  void Erase(uint64_t hash) {
    uint64_t& copies = copies_[hash];
    if (bounded_ && copies == most_) return;
    --copies;
    --total_;
  }
  uint64_t total() const { return total_; }
  uint64_t staying() const {
    uint64_t staying = 0;
    for (const auto& [hash, copies] : copies_) staying += copies == most_ ? copies : 0;
    return staying;
  }

 private:
  bool bounded_;
  uint64_t most_;
  uint64_t total_ = 0;
  std::unordered_map<uint64_t, uint64_t> copies_;
};

class AnyFilterTest : public testing::TestWithParam<FilterType> {};
INSTANTIATE_TEST_SUITE_P(Types, AnyFilterTest, testing::ValuesIn(AnyFilter::Types()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(AnyFilterTest, SpansDoWhatSingleKeysDoAlsoWhereAKeyIsRefused) {
  if (GetParam().fixed) {  // is given all keys at once, and none later on
    const std::vector<uint64_t> hashes = {Key(1, 0), Key(1, 1)};
    auto filter = AnyFilter::Build(GetParam().name, {.capacity = 2}, hashes);
    ASSERT_TRUE(filter.ok()) << filter.status();
    EXPECT_EQ(filter->Insert(hashes), 0u);
    return;
  }
  constexpr uint64_t kCapacity = 10000;
  // Where a tag lies in a cuckoo filter depends on the keys that came between, and so does what it
  // refuses later on: the single keys begin at the same bytes each time. In any other filter these
  // follow from the keys.
  const bool same_bytes = GetParam().name != "cuckoo";
  Random random(1);
  AnyFilter spans = Make(GetParam().name, kCapacity, 1e-6);  // no two keys are taken for one
  std::unordered_map<uint64_t, uint32_t> model;
  std::vector<uint64_t> held;
  KeptCopies kept(GetParam());
  int refused = 0;
  for (int round = 0; round < 80; ++round) {
    const std::vector<uint64_t> piece = Piece(&random);
    AnyFilter singles = *AnyFilter::Deserialize(spans.Serialize());
    const size_t inserted = spans.Insert(piece);
    ASSERT_EQ(inserted, InsertSingly(&singles, piece)) << round;
    refused += inserted < piece.size();
    held.insert(held.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(inserted));
    for (size_t i = 0; i < inserted; ++i) {
      ++model[piece[i]];
      kept.Insert(piece[i]);
    }
    ASSERT_EQ(spans.Count(), kept.total());
    ASSERT_EQ(singles.Count(), kept.total());
    if (same_bytes) {
      ASSERT_EQ(spans.Serialize(), singles.Serialize()) << round;
    }
    for (const auto& [hash, count] : model) ASSERT_TRUE(spans.MayContain(hash)) << round;
    if (held.size() < kCapacity * 9 / 10) continue;
    if (!GetParam().erases) {
      spans.Clear();
      held.clear();
      model.clear();
      kept = KeptCopies(GetParam());
      continue;
    }
    std::vector<uint64_t> leave;
    for (uint64_t n = random.Uniform(held.size() / 8); leave.size() < n; held.pop_back()) {
      std::swap(held[random.Uniform(held.size())], held.back());
      leave.push_back(held.back());
      kept.Erase(held.back());
      if (--model[held.back()] == 0) model.erase(held.back());
    }
    const uint64_t stuck = spans.StuckErases();
    const Bitmap erased = spans.Erase(leave);
    ASSERT_EQ(erased, EraseSingly(&singles, leave));
    for (size_t i = 0; i < leave.size(); ++i) {
      ASSERT_TRUE(TestBit(erased, i) || spans.StuckErases() > stuck);
    }
    if (same_bytes) {
      ASSERT_EQ(spans.Serialize(), singles.Serialize()) << round;
    }
    for (const auto& [hash, count] : model) ASSERT_TRUE(spans.MayContain(hash)) << round;
    if (spans.StuckErases() > 0) {  // they count as held
      spans.Clear();
      held.clear();
      model.clear();
      kept = KeptCopies(GetParam());
    }
  }
  const bool refuses = GetParam().name == "blocked-quotient" || GetParam().name == "cuckoo" ||
                       GetParam().name == "d-left" || GetParam().name == "quotient";
  EXPECT_EQ(refused > 5, refuses) << refused;
  // Keys that were taken back left nothing behind but the keys that stay.
  if (BoundsCopies(GetParam())) {
    spans.Erase(held);
    EXPECT_EQ(spans.Count(), kept.staying());
    EXPECT_GT(kept.staying(), 0u);
  }
}

bool Insert(AnyFilter* filter, uint64_t hash) { return filter->Insert(hash); }

// A row that is inserted and deleted again and again while its erases are skipped, or whose inserts
// are rolled back and tried again.
TEST_P(AnyFilterTest, CopiesOfOneKeyDoNotFillTheFilter) {
  if (GetParam().fixed) return;
  constexpr uint64_t kCapacity = 1000;
  AnyFilter filter = Make(GetParam().name, kCapacity, 0.01);
  const uint64_t hot = Key(3, 0);
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(Insert(&filter, hot)) << i;
  const std::vector<uint64_t> again(5000, hot);
  ASSERT_EQ(filter.Insert(again), again.size());
  for (uint64_t i = 0; i < kCapacity - 20; ++i) ASSERT_TRUE(Insert(&filter, Key(4, i))) << i;
  EXPECT_TRUE(filter.MayContain(hot));
  for (uint64_t i = 0; i < kCapacity - 20; ++i) ASSERT_TRUE(filter.MayContain(Key(4, i)));
  uint64_t false_positives = 0;
  for (uint64_t i = 0; i < 10000; ++i) false_positives += filter.MayContain(Key(5, i));
  EXPECT_LT(false_positives, 10000 * 0.01 + 5 * std::sqrt(10000 * 0.01) + 10000 * 0.01);
}

TEST_P(AnyFilterTest, HotKeysLeaveRoomForOthers) {
  if (GetParam().fixed) return;
  constexpr uint64_t kCapacity = 100'000;
  constexpr uint64_t kHot = kCapacity / 200;
  AnyFilter filter = Make(GetParam().name, kCapacity, 0.01);
  for (int round = 0; round < 40; ++round) {
    for (uint64_t i = 0; i < kHot; ++i) ASSERT_TRUE(Insert(&filter, Key(3, i)));
  }
  for (uint64_t i = 0; i < kCapacity * 85 / 100; ++i) ASSERT_TRUE(Insert(&filter, Key(4, i))) << i;
}

// The filter cannot know how often such a key was inserted, so it must keep it; and it must keep it
// without holding on to others.
TEST_P(AnyFilterTest, KeyInsertedTooOftenStaysAndOtherKeysAreErased) {
  if (!GetParam().erases) return;
  const uint64_t often = uint64_t{GetParam().copies} + 1;
  const bool stays = often < 1000;
  AnyFilter filter = Make(GetParam().name, 1000, 0.001);
  const uint64_t hot = Key(3, 0);
  for (uint64_t i = 0; i < (stays ? often : 1000); ++i) ASSERT_TRUE(Insert(&filter, hot));
  for (uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(Insert(&filter, Key(4, i)));
  const std::string saved = filter.Serialize();
  AnyFilter loaded = *AnyFilter::Deserialize(saved);
  for (AnyFilter* each : {&filter, &loaded}) {
    for (uint64_t i = 0; i < (stays ? 100 : 999); ++i) EXPECT_TRUE(each->Erase(hot));
    EXPECT_TRUE(each->MayContain(hot));
    const std::vector<uint64_t> again(100, hot);
    if (stays) {
      EXPECT_EQ(each->Erase(again), AllOnes(again.size()));
      EXPECT_TRUE(each->MayContain(hot));
    }
    uint64_t left = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(each->Erase(Key(4, i)));
      left += each->MayContain(Key(4, i));
    }
    EXPECT_LT(left, 8u);
  }
  EXPECT_EQ(filter.Serialize(), loaded.Serialize());
}

// The stated number of copies is not too many.
TEST_P(AnyFilterTest, StatedNumberOfCopiesIsErasedOneByOne) {
  if (!GetParam().erases) return;
  const uint64_t copies = std::min<uint64_t>(GetParam().copies, 1000);
  AnyFilter filter = Make(GetParam().name, 1000, 0.001);
  for (uint64_t key = 0; key < 20; ++key) {
    for (uint64_t i = 0; i < copies; ++i) ASSERT_TRUE(Insert(&filter, Key(3, key)));
    for (uint64_t i = 0; i < copies; ++i) {
      ASSERT_TRUE(filter.MayContain(Key(3, key))) << i;
      ASSERT_TRUE(filter.Erase(Key(3, key)));
    }
    EXPECT_FALSE(filter.MayContain(Key(3, key)));
  }
  EXPECT_EQ(filter.Count(), 0u);
}

TEST_P(AnyFilterTest, MergedCopiesStay) {
  if (!GetParam().erases || GetParam().copies > 1000) return;
  AnyFilter merged = Make(GetParam().name, 1000, 0.001);
  AnyFilter other = merged;
  for (uint64_t i = 0; i < GetParam().copies; ++i) {
    ASSERT_TRUE(Insert(&merged, Key(3, 0)));
    ASSERT_TRUE(Insert(&other, Key(3, 0)));
  }
  ASSERT_TRUE(merged.Merge(other).ok());
  for (uint64_t i = 0; i + 1 < 2 * uint64_t{GetParam().copies}; ++i) {
    (void)merged.Erase(Key(3, 0));
    ASSERT_TRUE(merged.MayContain(Key(3, 0))) << i;
  }
}

// The bits are those of keys that were erased; those of which several layers would do are counted.
TEST(AnyFilterEraseTest, AKeyThatCannotBeToldFromAnotherLayersIsNotErased) {
  AnyFilter filter = Make("scalable", 20, 0.3);
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 200; ++i) hashes.push_back(Key(2, i));
  ASSERT_EQ(filter.Insert(hashes), hashes.size());
  auto layers = *ScalableSplitCountingBloomFilter::Deserialize(filter.Serialize());
  ASSERT_GT(layers.layers(), 3u);
  const Bitmap erased = filter.Erase(hashes);
  uint64_t stuck = 0;
  for (size_t i = 0; i < hashes.size(); ++i) {
    const EraseOutcome outcome = layers.Erase(hashes[i]);
    EXPECT_EQ(TestBit(erased, i), outcome == EraseOutcome::kErased) << i;
    stuck += outcome == EraseOutcome::kStuck;
  }
  EXPECT_GT(stuck, 10u);
  EXPECT_EQ(filter.StuckErases(), stuck);
  EXPECT_EQ(filter.Serialize(), layers.Serialize());
}

TEST(AnyFilterEraseTest, OneLayerNeverSticks) {
  AnyFilter filter = Make("blocked-quotient", 20, 0.3);
  EXPECT_EQ(filter.StuckErases(), 0u);
}

}  // namespace
}  // namespace tamis
