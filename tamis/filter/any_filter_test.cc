// Spans through AnyFilter against single keys, where filters fill up and refuse.
#include "tamis/filter/any_filter.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "tamis/base/random.h"
#include "tamis/filter/filters_for_test.h"

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
  AnyFilter spans = Make(GetParam().name, kCapacity, 0.001);
  std::unordered_map<uint64_t, uint32_t> model;
  std::vector<uint64_t> held;
  int refused = 0;
  for (int round = 0; round < 80; ++round) {
    const std::vector<uint64_t> piece = Piece(&random);
    AnyFilter singles = *AnyFilter::Deserialize(spans.Serialize());
    const size_t inserted = spans.Insert(piece);
    ASSERT_EQ(inserted, InsertSingly(&singles, piece)) << round;
    refused += inserted < piece.size();
    held.insert(held.end(), piece.begin(), piece.begin() + static_cast<ptrdiff_t>(inserted));
    for (size_t i = 0; i < inserted; ++i) ++model[piece[i]];
    ASSERT_EQ(spans.Count(), held.size());
    ASSERT_EQ(singles.Count(), held.size());
    if (same_bytes) {
      ASSERT_EQ(spans.Serialize(), singles.Serialize()) << round;
    }
    for (const auto& [hash, count] : model) ASSERT_TRUE(spans.MayContain(hash)) << round;
    if (held.size() < kCapacity * 9 / 10) continue;
    if (!GetParam().erases) {
      spans.Clear();
      held.clear();
      model.clear();
      continue;
    }
    std::vector<uint64_t> leave;
    for (uint64_t n = random.Uniform(held.size() / 8); leave.size() < n; held.pop_back()) {
      std::swap(held[random.Uniform(held.size())], held.back());
      leave.push_back(held.back());
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
    }
  }
  const bool refuses = GetParam().name == "blocked-quotient" || GetParam().name == "cuckoo" ||
                       GetParam().name == "d-left" || GetParam().name == "quotient";
  EXPECT_EQ(refused > 5, refuses) << refused;
  // Whatever was taken back left nothing behind. Counters that stick stay.
  if (GetParam().name == "blocked-quotient" || GetParam().name == "cuckoo" ||
      GetParam().name == "quotient") {
    spans.Erase(held);
    EXPECT_EQ(spans.Count(), 0u);
    EXPECT_EQ(spans.Fill(), 0.0);
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
