// The promises of every filter, as one suite over the list of types. A filter joins by being named
// in `FilterVariant` and, where its interface differs, in `FilterTraits`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <unordered_map>
#include <unordered_set>

#include "tamis/base/random.h"
#include "tamis/filter/testing/filters.h"

namespace tamis {
namespace {

template <class F>
struct FilterTraits {
  static bool Insert(F* filter, uint64_t hash) { return filter->Insert(hash); }
  static bool Erase(F* filter, uint64_t hash) requires ErasableFilter<F> {
    return filter->Erase(hash);
  }
};

template <>
struct FilterTraits<ScalableSplitCountingBloomFilter> {
  using F = ScalableSplitCountingBloomFilter;
  static bool Insert(F* filter, uint64_t hash) {
    filter->Insert(hash);
    return true;
  }
  static bool Erase(F* filter, uint64_t hash) {
    return filter->Erase(hash) == EraseOutcome::kErased;
  }
};

template <class F>
class FilterConformanceTest : public testing::Test {
 protected:
  using Traits = FilterTraits<F>;

  static bool Insert(F* filter, uint64_t hash) { return Traits::Insert(filter, hash); }
  static bool Erase(F* filter, uint64_t hash) requires ErasableFilter<F> {
    return Traits::Erase(filter, hash);
  }

  static F Make(uint64_t capacity, double fpr = 0.01, uint64_t seed = 7) {
    auto filter = F::Create({.capacity = capacity, .fpr = fpr, .seed = seed});
    EXPECT_TRUE(filter.ok()) << filter.status();
    return *std::move(filter);
  }

  static F Filled(uint64_t keys, uint64_t stream, double fpr = 0.01) {
    F filter = Make(keys, fpr);
    for (uint64_t i = 0; i < keys; ++i) EXPECT_TRUE(Traits::Insert(&filter, Key(stream, i)));
    return filter;
  }

  static uint64_t Hits(const F& filter, uint64_t stream, uint64_t keys) {
    uint64_t hits = 0;
    for (uint64_t i = 0; i < keys; ++i) hits += filter.MayContain(Key(stream, i));
    return hits;
  }
};

TYPED_TEST_SUITE(FilterConformanceTest, AllFilters);

TYPED_TEST(FilterConformanceTest, AnEmptyFilterContainsNothing) {
  for (const uint64_t capacity : {1, 2, 3, 100, 10000}) {
    const TypeParam filter = this->Make(capacity);
    EXPECT_EQ(this->Hits(filter, 1, 1000), 0u);
    EXPECT_EQ(filter.Count(), 0u);
    EXPECT_EQ(filter.Fill(), 0.0);
    EXPECT_EQ(filter.ExpectedFpr(), 0.0);
    EXPECT_GT(filter.SizeBytes(), 0u);
  }
}

TYPED_TEST(FilterConformanceTest, EveryInsertedKeyIsFoundAtEveryCapacityAndRate) {
  for (const uint64_t capacity : {1, 2, 7, 63, 64, 65, 1000, 30000}) {
    for (const double fpr : {0.3, 0.05, 0.01, 0.001, 1e-6}) {
      TypeParam filter = this->Make(capacity, fpr);
      for (uint64_t i = 0; i < capacity; ++i) {
        ASSERT_TRUE(this->Insert(&filter, Key(2, i))) << capacity << " " << fpr;
      }
      EXPECT_EQ(this->Hits(filter, 2, capacity), capacity) << fpr;
      EXPECT_EQ(filter.Count(), capacity);
    }
  }
}

TYPED_TEST(FilterConformanceTest, ExtremeHashesAreKeysLikeOthers) {
  TypeParam filter = this->Make(100);
  for (const uint64_t hash : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}, uint64_t{1} << 63}) {
    ASSERT_TRUE(this->Insert(&filter, hash));
    EXPECT_TRUE(filter.MayContain(hash));
  }
}

// The thread sanitizer watches this test.
TYPED_TEST(FilterConformanceTest, ConstMembersMayRunAtTheSameTime) {
  const TypeParam filter = this->Filled(2000, 30);
  const std::string bytes = filter.Serialize();
  const uint64_t others = this->Hits(filter, 31, 2000);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::vector<uint64_t> hashes;
      for (uint64_t i = 0; i < 2000; ++i) hashes.push_back(Key(30, i));
      for (const uint64_t word : filter.MayContain(std::span(hashes).first(1984))) {
        EXPECT_EQ(word, ~uint64_t{0});
      }
      EXPECT_EQ(this->Hits(filter, 31, 2000), others);
      if (thread % 2 == 0) {
        EXPECT_EQ(filter.Serialize(), bytes);
        EXPECT_GT(filter.ExpectedFpr(), 0.0);
        const TypeParam copy = filter;
        EXPECT_EQ(copy.Count(), 2000u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TYPED_TEST(FilterConformanceTest, ABatchIsAnsweredAsItsKeysOneByOne) {
  const TypeParam filter = this->Filled(2000, 3);
  for (const size_t size : {0, 1, 7, 15, 16, 17, 63, 64, 65, 1000}) {
    // Exactly so much memory: the address sanitizer sees who reads past the end.
    std::vector<uint64_t> hashes(size);
    for (size_t i = 0; i < size; ++i) hashes[i] = Key(i % 3 == 0 ? 3 : 4, i);
    const Bitmap answers = filter.MayContain(std::span<const uint64_t>(hashes));
    ASSERT_EQ(answers.size(), (size + 63) / 64);
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(TestBit(answers, i), filter.MayContain(hashes[i])) << i << " of " << size;
    }
    for (size_t i = size; i < answers.size() * 64; ++i) EXPECT_FALSE(TestBit(answers, i));
  }
}

TYPED_TEST(FilterConformanceTest, MergeAnswersAsTheFilterOfBothSets) {
  TypeParam a = this->Make(4000);
  TypeParam b = this->Make(4000);
  for (uint64_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(this->Insert(&a, Key(5, i)));
    ASSERT_TRUE(this->Insert(&b, Key(6, i)));
  }
  ASSERT_TRUE(a.Merge(b).ok());
  EXPECT_EQ(this->Hits(a, 5, 2000), 2000u);
  EXPECT_EQ(this->Hits(a, 6, 2000), 2000u);
  EXPECT_EQ(this->Hits(b, 6, 2000), 2000u);
  EXPECT_EQ(a.Count(), 4000u);
  EXPECT_LT(this->Hits(a, 7, 10000), 400u);
}

TYPED_TEST(FilterConformanceTest, MergeOfOtherSizesOrSeedsIsRefusedAndChangesNothing) {
  TypeParam a = this->Filled(1000, 5);
  const std::string before = a.Serialize();
  EXPECT_EQ(a.Merge(this->Make(100000)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(a.Merge(this->Make(1000, 0.01, 8)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(a.Serialize(), before);
}

TYPED_TEST(FilterConformanceTest, ClearForgetsAllAndTheFilterIsAsNew) {
  TypeParam filter = this->Filled(1000, 8);
  filter.Clear();
  EXPECT_EQ(this->Hits(filter, 8, 1000), 0u);
  EXPECT_EQ(filter.Count(), 0u);
  EXPECT_EQ(filter.Serialize(), this->Make(1000).Serialize());
}

TYPED_TEST(FilterConformanceTest, CopiesAreIndependentAndMovesKeepAll) {
  TypeParam filter = this->Filled(500, 9);
  TypeParam copy = filter;
  copy.Clear();
  EXPECT_EQ(this->Hits(filter, 9, 500), 500u);
  const TypeParam moved = std::move(filter);
  EXPECT_EQ(this->Hits(moved, 9, 500), 500u);
}

TYPED_TEST(FilterConformanceTest, OptionsOutsideTheirBoundsAreNamed) {
  using testing::HasSubstr;
  const auto message = [](uint64_t capacity, double fpr) {
    const auto filter = TypeParam::Create({.capacity = capacity, .fpr = fpr});
    EXPECT_EQ(filter.status().code(), StatusCode::kInvalidArgument);
    return filter.status().message();
  };
  EXPECT_THAT(message(0, 0.01), HasSubstr("capacity is 0"));
  EXPECT_THAT(message(~uint64_t{0}, 0.01), HasSubstr("capacity"));
  EXPECT_THAT(message(10, 0), HasSubstr("fpr"));
  EXPECT_THAT(message(10, 0.9), HasSubstr("fpr"));
  EXPECT_THAT(message(10, std::nan("")), HasSubstr("fpr"));
}

TYPED_TEST(FilterConformanceTest, SizesAgreeWithCapacityForAndFprFor) {
  for (const double fpr : {0.03, 0.01, 0.001}) {
    const TypeParam filter = this->Make(100000, fpr);
    const auto capacity = static_cast<double>(TypeParam::CapacityFor(filter.SizeBytes(), fpr));
    EXPECT_GT(capacity, 99000);
    EXPECT_LT(capacity, 220000);  // where sizes are powers of two a table may be twice too large
    EXPECT_LT(TypeParam::FprFor(filter.SizeBytes(), 100000), fpr * 1.01);
  }
}

// --- bytes -------------------------------------------------------------------------------------

TYPED_TEST(FilterConformanceTest, BytesReadBackAsTheSameFilter) {
  for (const uint64_t capacity : {1, 10, 1000, 20000}) {
    TypeParam filter = this->Make(capacity, 0.001, 0x1122334455667788);
    for (uint64_t i = 0; i < capacity; ++i) this->Insert(&filter, Key(10, i));
    const std::string bytes = filter.Serialize();
    EXPECT_TRUE(VerifyFilterBytes(bytes).ok());
    auto read = TypeParam::Deserialize(bytes);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->Serialize(), bytes);
    EXPECT_EQ(read->seed(), filter.seed());
    EXPECT_EQ(read->Count(), filter.Count());
    EXPECT_EQ(read->Fill(), filter.Fill());
    // Goes on as the first one would.
    this->Insert(&filter, Key(11, 0));
    this->Insert(&*read, Key(11, 0));
    EXPECT_EQ(read->Serialize(), filter.Serialize());
  }
}

TYPED_TEST(FilterConformanceTest, BytesAtAnOddAddressAreCopiedAndRefusedAsAMap) {
  const TypeParam filter = this->Filled(1000, 12);
  const std::string shifted = "x" + filter.Serialize();
  const std::string_view bytes = std::string_view(shifted).substr(1);
  const auto read = TypeParam::Deserialize(bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(this->Hits(*read, 12, 1000), 1000u);
  EXPECT_EQ(TypeParam::Deserialize(bytes, OpenMode::kBorrow).status().code(),
            StatusCode::kInvalidArgument);
}

TYPED_TEST(FilterConformanceTest, AMappedFilterReadsTheBytesAndCopiesThemAtTheFirstWrite) {
  const TypeParam filter = this->Filled(1000, 13);
  const std::string bytes = filter.Serialize();
  auto mapped = TypeParam::Deserialize(bytes, OpenMode::kBorrow);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ(mapped->Serialize(), bytes);
  EXPECT_EQ(this->Hits(*mapped, 13, 1000), 1000u);
  this->Insert(&*mapped, Key(14, 0));
  EXPECT_TRUE(mapped->MayContain(Key(14, 0)));
  EXPECT_EQ(filter.Serialize(), bytes);
}

TYPED_TEST(FilterConformanceTest, EveryCutAndEveryFlippedBitOfTheBytesIsDataLoss) {
  const TypeParam filter = this->Filled(40, 15);
  const std::string bytes = filter.Serialize();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(TypeParam::Deserialize(bytes.substr(0, size)).status().code(), StatusCode::kDataLoss)
        << size;
  }
  EXPECT_EQ(TypeParam::Deserialize(bytes + std::string(8, '\0')).status().code(),
            StatusCode::kDataLoss);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_EQ(TypeParam::Deserialize(damaged).status().code(), StatusCode::kDataLoss) << bit;
  }
}

// Valid checksums over impossible contents: nothing may be believed for its checksum.
TYPED_TEST(FilterConformanceTest, SealedNonsenseIsDataLossOrAFilterAndNeverMore) {
  Random random(16);
  const std::string bytes = this->Filled(40, 16).Serialize();
  const auto opened = OpenFilter(bytes, TypeParam::kKind, 10, OpenMode::kCopy);
  ASSERT_TRUE(opened.ok());
  for (int round = 0; round < 20000; ++round) {
    FilterHeader header = opened->header;
    std::vector<uint64_t> payload(opened->payload.begin(), opened->payload.end());
    const uint64_t changes = 1 + random.Uniform(3);
    for (uint64_t i = 0; i < changes; ++i) {
      const uint64_t value = random.OneIn(2) ? random() : random() >> random.Uniform(64);
      if (random.OneIn(2)) {
        header.parameters[random.Uniform(10)] = value;
      } else if (random.OneIn(2)) {
        payload.resize(random.Uniform(2 * payload.size() + 2));
      } else if (!payload.empty()) {
        payload[random.Uniform(payload.size())] = value;
      }
    }
    auto read = TypeParam::Deserialize(SealFilter(header, payload));
    if (!read.ok()) {
      EXPECT_EQ(read.status().code(), StatusCode::kDataLoss) << read.status();
      continue;
    }
    for (uint64_t i = 0; i < 50; ++i) {
      if (this->Insert(&*read, Key(17, i))) {
        EXPECT_TRUE(read->MayContain(Key(17, i)));
      }
    }
    if constexpr (ErasableFilter<TypeParam>) {
      for (uint64_t i = 0; i < 50; ++i) this->Erase(&*read, Key(18, i));
    }
  }
}

// --- erase -------------------------------------------------------------------------------------

template <class F>
class ErasableFilterTest : public FilterConformanceTest<F> {};
TYPED_TEST_SUITE(ErasableFilterTest, ErasableFilters);

TYPED_TEST(ErasableFilterTest, EraseOfOneCopyKeepsTheOther) {
  TypeParam filter = this->Make(100);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(this->Insert(&filter, Key(20, 0)));
  EXPECT_TRUE(this->Erase(&filter, Key(20, 0)));
  EXPECT_TRUE(filter.MayContain(Key(20, 0)));
  EXPECT_TRUE(this->Erase(&filter, Key(20, 0)));
  EXPECT_FALSE(filter.MayContain(Key(20, 0)));
}

TYPED_TEST(ErasableFilterTest, EraseOfAnAbsentKeyChangesNothing) {
  TypeParam filter = this->Filled(100, 21, 1e-6);
  const std::string before = filter.Serialize();
  EXPECT_FALSE(this->Erase(&filter, Key(22, 0)));
  EXPECT_EQ(filter.Serialize(), before);
}

TYPED_TEST(ErasableFilterTest, AFilterFilledAndEmptiedIsAsNew) {
  TypeParam filter = this->Filled(5000, 23, 1e-4);
  for (uint64_t i = 0; i < 5000; ++i) EXPECT_TRUE(this->Erase(&filter, Key(23, i))) << i;
  EXPECT_EQ(filter.Serialize(), this->Make(5000, 1e-4).Serialize());
}

// 10^6 operations against a multiset; full checks now and then, the key at hand always.
TYPED_TEST(ErasableFilterTest, NeverLosesAKeyOfAMultiset) {
  constexpr uint64_t kCapacity = 3000;
  Random random(24);
  TypeParam filter = this->Make(kCapacity, 0.02);
  std::unordered_map<uint64_t, uint32_t> model;
  std::vector<uint64_t> held;  // with repetition
  uint64_t erased = 0;
  uint64_t refused = 0;
  for (int step = 0; step < 1'000'000; ++step) {
    const uint64_t phase = step / 100'000 % 2;  // grow, then shrink
    const bool insert = held.size() < kCapacity && random.Uniform(10) < (phase == 0 ? 6u : 4u);
    if (insert || held.empty()) {
      const uint64_t key = Key(24, random.Uniform(random.OneIn(8) ? 20 : 20000));
      if (!this->Insert(&filter, key)) {
        ++refused;
        continue;
      }
      ++model[key];
      held.push_back(key);
      ASSERT_TRUE(filter.MayContain(key));
    } else {
      const size_t i = random.Uniform(held.size());
      const uint64_t key = held[i];
      held[i] = held.back();
      held.pop_back();
      erased += this->Erase(&filter, key);
      if (--model[key] == 0) model.erase(key);
      ASSERT_TRUE(!model.contains(key) || filter.MayContain(key)) << "step " << step;
    }
    if (step % 20'000 == 0) {
      for (const auto& [key, count] : model) ASSERT_TRUE(filter.MayContain(key)) << step;
      if (step % 100'000 == 0) {  // reopened
        auto read = TypeParam::Deserialize(filter.Serialize());
        ASSERT_TRUE(read.ok()) << read.status();
        filter = *std::move(read);
      }
    }
  }
  for (const auto& [key, count] : model) ASSERT_TRUE(filter.MayContain(key));
  EXPECT_GT(erased, 300'000u);
  EXPECT_LT(refused, 100'000u);
}

}  // namespace
}  // namespace tamis
