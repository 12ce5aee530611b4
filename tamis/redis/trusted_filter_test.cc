#include "tamis/redis/trusted_filter.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tamis/base/hash.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};
constexpr uint64_t kNoEpoch = ~uint64_t{0};

TrustedFilter Make(bool guard) {
  auto filter = AnyFilter::Create("cuckoo", {.capacity = 1000, .fpr = 0.01, .seed = 7});
  EXPECT_TRUE(filter.ok()) << filter.status();
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < 500; ++i) hashes.push_back(Mix(i));
  EXPECT_EQ(filter->Insert(hashes), hashes.size());
  TrustedFilter::Metadata metadata;
  metadata.guard = guard;
  metadata.wanted_rate = 0.01;
  metadata.capacity = 1000;
  metadata.mark = "0/16B3748";
  return TrustedFilter(std::move(metadata), std::move(*filter));
}

TrustedFilter::Rebuild MakeRebuild(uint64_t capacity = 1000) {
  TrustedFilter::Rebuild rebuild;
  rebuild.id = 77;
  rebuild.wanted_rate = 0.001;
  rebuild.capacity = capacity;
  rebuild.sound_epoch = 1;
  auto filter = AnyFilter::Create("cuckoo", {.capacity = capacity, .fpr = 0.001, .seed = 8});
  EXPECT_TRUE(filter.ok()) << filter.status();
  rebuild.filter = std::move(*filter);
  return rebuild;
}

bool AddToRebuild(TrustedFilter* filter, std::string_view item) {
  return filter->AddToRebuild({&item, 1}) == 1;
}

TrustedFilter MakeRebuilding() {
  TrustedFilter filter = Make(true);
  filter.Start(MakeRebuild());
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(AddToRebuild(&filter, "row" + std::to_string(i)));
  return filter;
}

TrustedFilter MakeRebuildAlone() {
  TrustedFilter::Metadata metadata;
  metadata.guard = true;
  metadata.wanted_rate = 0.001;
  metadata.capacity = 1000;
  return TrustedFilter(std::move(metadata), MakeRebuild());
}

TEST(TrustedFilter, HeaderHasTheseBytes) {
  const TrustedFilter filter = Make(true);
  const auto [header, bytes] = filter.Save(1);
  std::string expected(
      "TMSF\x01\0\0\0\0\0\0\0\x7b\x14\xae\x47\xe1\x7a\x84\x3f"
      "\xe8\x03\0\0\0\0\0\0________\0\0\0\0\0\0\0\0\x09"
      "0/16B3748",
      54);
  const uint64_t size = bytes.size();
  std::memcpy(expected.data() + 28, &size, 8);
  EXPECT_EQ(header, expected);
}

TEST(TrustedFilter, LoadedInChunksItIsPartialUntilTheLast) {
  for (const TrustedFilter& filter : {Make(true), MakeRebuilding(), MakeRebuildAlone()}) {
    const auto [header, bytes] = filter.Save(1);
    for (const size_t size : {size_t{1}, size_t{100}, bytes.size()}) {
      auto copy = TrustedFilter::FromHeader(header, kNoLimit);
      ASSERT_TRUE(copy.ok()) << copy.status();
      for (size_t at = 0; at < bytes.size(); at += size) {
        EXPECT_TRUE(copy->partial());
        EXPECT_TRUE(copy->empty());
        EXPECT_EQ(copy->received(), at);
        EXPECT_EQ(copy->Save(1).bytes, bytes.substr(0, at));
        EXPECT_EQ(copy->Save(1).header.size(), header.size());
        ASSERT_TRUE(copy->AppendChunk(std::string_view(bytes).substr(at, size)).ok());
      }
      ASSERT_FALSE(copy->partial());
      EXPECT_EQ(copy->empty(), filter.empty());
      EXPECT_EQ(copy->rebuild() != nullptr, filter.rebuild() != nullptr);
      EXPECT_EQ(copy->Save(1).bytes, bytes);
      EXPECT_EQ(copy->HeaderToCompare(), filter.HeaderToCompare());
      EXPECT_FALSE(copy->IsTrustedIn(1)) << "what was loaded is not trusted";
      if (copy->rebuild() != nullptr) {
        EXPECT_TRUE(copy->rebuild()->was_sound);
        EXPECT_EQ(copy->rebuild()->sound_epoch, 0u) << "nor is its rebuild";
        EXPECT_EQ(copy->rebuild()->id, 77u);
      }
      EXPECT_FALSE(copy->AppendChunk("x").ok());
    }
  }
}

TEST(TrustedFilter, ChunksThatAreNoFilterLeaveItPartial) {
  for (const TrustedFilter& filter : {Make(false), MakeRebuilding(), MakeRebuildAlone()}) {
    auto [header, bytes] = filter.Save(1);
    bytes.back() ^= 1;
    auto copy = TrustedFilter::FromHeader(header, kNoLimit);
    ASSERT_TRUE(copy.ok());
    ASSERT_TRUE(copy->AppendChunk(std::string_view(bytes).substr(0, 100)).ok());
    EXPECT_EQ(copy->AppendChunk(bytes).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(copy->AppendChunk(std::string_view(bytes).substr(100)).code(), StatusCode::kDataLoss);
    EXPECT_TRUE(copy->partial());
    EXPECT_TRUE(copy->empty());
    EXPECT_EQ(copy->received(), 100u);
  }
}

TEST(TrustedFilter, HeaderTellsWhetherItIsPartOfALog) {
  for (const bool in_log : {true, false}) {
    const auto copy = TrustedFilter::FromHeader(Make(true).Save(1, in_log).header, 1 << 20);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->metadata().was_in_log, in_log);
  }
}

TEST(TrustedFilter, HeaderWithoutItsRecordIsOtherwiseTheSame) {
  for (TrustedFilter filter : {Make(true), MakeRebuilding()}) {
    filter.Trust(1);
    const std::string with = filter.Save(1, true).header;
    const std::string without = TrustedFilter::WithoutRecord(with);
    EXPECT_NE(with, without);
    EXPECT_EQ(without, filter.Save(kNoEpoch, false).header);
    EXPECT_EQ(TrustedFilter::WithoutRecord(without), without);
  }
  for (const char* text : {"", "x", "TMSF"}) EXPECT_EQ(TrustedFilter::WithoutRecord(text), text);
}

TEST(TrustedFilter, HeaderIsRefusedWhenItIsDamagedOrPromisesTooMuch) {
  const auto [good, bytes] = Make(true).Save(1);
  const auto [two, both] = MakeRebuilding().Save(1);
  ASSERT_TRUE(TrustedFilter::FromHeader(good, bytes.size()).ok());
  EXPECT_FALSE(TrustedFilter::FromHeader(good, bytes.size() - 1).ok());
  ASSERT_TRUE(TrustedFilter::FromHeader(two, both.size()).ok());
  EXPECT_FALSE(TrustedFilter::FromHeader(two, both.size() - 1).ok());
  for (const std::string& header : {good, two}) {
    EXPECT_FALSE(TrustedFilter::FromHeader(header + "x", kNoLimit).ok());
    for (size_t cut = 0; cut < header.size(); ++cut) {
      EXPECT_FALSE(TrustedFilter::FromHeader(header.substr(0, cut), kNoLimit).ok());
    }
    for (const uint64_t value : {uint64_t{1} << 61, uint64_t{1} << 62, ~uint64_t{0}}) {
      for (const size_t at : {size_t{28}, header.size() - 8}) {
        if (at != 28 && header == good) continue;
        std::string bad = header;
        std::memcpy(bad.data() + at, &value, 8);
        EXPECT_FALSE(TrustedFilter::FromHeader(bad, kNoLimit).ok()) << value;
      }
    }
    for (const double rate : {0.0, -1.0, 1.0, 0.0 / 0.0, 1.0 / 0.0}) {
      for (const size_t at : {size_t{12}, header.size() - 24}) {
        if (at != 12 && header == good) continue;
        std::string bad = header;
        std::memcpy(bad.data() + at, &rate, 8);
        const Status status = TrustedFilter::FromHeader(bad, kNoLimit).status();
        EXPECT_NE(status.message().find("rate not in (0, 1)"), std::string::npos) << rate;
      }
    }
  }
  std::string nothing = good;
  std::memset(nothing.data() + 28, 0, 8);
  EXPECT_FALSE(TrustedFilter::FromHeader(nothing, kNoLimit).ok());
  for (const unsigned char flags : {16, 32, 128}) {
    std::string unknown_flag = good;
    unknown_flag[4] = static_cast<char>(flags);
    EXPECT_FALSE(TrustedFilter::FromHeader(unknown_flag, kNoLimit).ok());
  }
}

TEST(TrustedFilter, RebuildTakesAddsAndNoErases) {
  TrustedFilter filter = Make(true);
  filter.Trust(1);
  EXPECT_EQ(filter.Add("before"), TrustedFilter::Added::kNew);
  filter.Start(MakeRebuild());
  EXPECT_EQ(filter.Add("meanwhile"), TrustedFilter::Added::kNew);
  EXPECT_TRUE(AddToRebuild(&filter, "row"));
  EXPECT_EQ(filter.Erase("meanwhile"), TrustedFilter::Erased::kErased);
  EXPECT_EQ(filter.Erase("before"), TrustedFilter::Erased::kErased);
  EXPECT_EQ(filter.rebuild()->skipped, 1u) << "the other one is not in the new filter";
  const auto contains = [&](const char* item) {
    return filter.filter().MayContain(Hash(item, filter.filter().seed()));
  };
  EXPECT_FALSE(contains("meanwhile"));
  EXPECT_FALSE(contains("row"));
  filter.Commit(5, {.running_ms = 56, .wall_ms = 1234});
  EXPECT_TRUE(contains("meanwhile"));
  EXPECT_TRUE(contains("row"));
  EXPECT_FALSE(contains("before"));
  EXPECT_TRUE(filter.IsTrustedIn(5));
  EXPECT_EQ(filter.counters().skipped, 1u);
  EXPECT_EQ(filter.metadata().rebuilt_time, 1234u);
  EXPECT_EQ(filter.metadata().rebuilt_running_ms, 56);
  EXPECT_EQ(filter.metadata().mark, "");  // it said where the old one was in the log
  EXPECT_EQ(filter.rebuild(), nullptr);
}

TEST(TrustedFilter, AddThatTheRebuildHasNoPlaceForIsAcknowledgedAndRemembered) {
  TrustedFilter filter = Make(true);
  filter.Start(MakeRebuild(1));
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(filter.Add("row" + std::to_string(i)), TrustedFilter::Added::kFull);
  }
  EXPECT_TRUE(filter.rebuild()->incomplete);
  TrustedFilter alone = MakeRebuildAlone();
  EXPECT_EQ(alone.Add("x"), TrustedFilter::Added::kNew);
  EXPECT_EQ(alone.Add("x"), TrustedFilter::Added::kPerhaps);
  EXPECT_EQ(alone.Erase("x"), TrustedFilter::Erased::kAbsent);
}

TEST(TrustedFilter, EraseOfAnItemThatSeveralLayersMatchIsKept) {
  auto layers = AnyFilter::Create("scalable", {.capacity = 50, .fpr = 0.3, .seed = 7});
  ASSERT_TRUE(layers.ok()) << layers.status();
  TrustedFilter filter({.wanted_rate = 0.3, .capacity = 50}, std::move(*layers));
  for (int i = 0; i < 500; ++i) (void)filter.Add("row" + std::to_string(i));
  int kept = 0;
  for (int i = 0; i < 500; ++i) {
    const TrustedFilter::Erased erased = filter.Erase("row" + std::to_string(i));
    EXPECT_NE(erased, TrustedFilter::Erased::kAbsent) << i;
    kept += erased == TrustedFilter::Erased::kKept ? 1 : 0;
  }
  EXPECT_GT(kept, 0);
}

// The word after the magic number.
uint64_t FlagsOf(const TrustedFilter& filter, uint64_t time) {
  uint64_t flags = 0;
  std::memcpy(&flags, filter.Save(time).header.data() + 4, 8);
  return flags;
}

TEST(TrustedFilter, HeaderHasAFlagForEachThingThatIsTrue) {
  constexpr uint64_t kGuard = 1, kIncomplete = 2, kTrusted = 4, kRebuild = 8;
  constexpr uint64_t kRebuildIncomplete = 16, kRebuildSound = 32;
  TrustedFilter plain = Make(false);
  EXPECT_EQ(FlagsOf(plain, 1), 0u);
  plain.set_incomplete();
  EXPECT_EQ(FlagsOf(plain, 1), kIncomplete);
  TrustedFilter guard = Make(true);
  EXPECT_EQ(FlagsOf(guard, 1), kGuard);
  guard.Trust(3);
  EXPECT_EQ(FlagsOf(guard, 3), kGuard | kTrusted);
  EXPECT_EQ(FlagsOf(guard, 4), kGuard);
  guard.Start(MakeRebuild());  // sound at 1
  EXPECT_EQ(FlagsOf(guard, 1), kGuard | kRebuild | kRebuildSound);
  EXPECT_EQ(FlagsOf(guard, 3), kGuard | kTrusted | kRebuild);
  TrustedFilter full = Make(true);
  full.Start(MakeRebuild(1));
  for (int i = 0; i < 100; ++i) full.Add("row" + std::to_string(i));
  EXPECT_EQ(FlagsOf(full, 3), kGuard | kRebuild | kRebuildIncomplete);
}

TEST(TrustedFilter, RebuildSaysHowManyItHadPlacesFor) {
  TrustedFilter filter = MakeRebuildAlone();
  filter.Abort();
  filter.Start(MakeRebuild(1));
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("row" + std::to_string(i));
  const std::vector<std::string_view> items(texts.begin(), texts.end());
  const size_t added = filter.AddToRebuild(items);
  EXPECT_GT(added, 0u);
  EXPECT_LT(added, 100u);
  EXPECT_TRUE(filter.rebuild()->incomplete);
  size_t there = 0;
  for (const std::string_view item : items) there += filter.RebuildMayContain(item) ? 1 : 0;
  EXPECT_GE(there, added);
  EXPECT_EQ(filter.AddToRebuild({}), 0u);
}

TEST(TrustedFilter, RebuildTakesABatchAsOneByOne) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("row" + std::to_string(i));
  const std::vector<std::string_view> items(texts.begin(), texts.end());
  TrustedFilter filter = Make(true);
  filter.Start(MakeRebuild(40));
  TrustedFilter twin = Make(true);
  twin.Start(MakeRebuild(40));
  size_t one_by_one = 0, after_a_refusal = 0;
  for (const std::string_view item : items) {
    const bool was_full = twin.rebuild()->incomplete;
    const bool added = AddToRebuild(&twin, item);
    one_by_one += added ? 1 : 0;
    after_a_refusal += added && was_full ? 1 : 0;
  }
  EXPECT_GT(after_a_refusal, 0u);
  EXPECT_EQ(filter.AddToRebuild(items), one_by_one);
}

TEST(TrustedFilter, SizeIsThatOfItsParts) {
  const auto twice = [](size_t size) { return 2 * size; };
  TrustedFilter filter = Make(true);
  const size_t own = filter.filter().SizeBytes();
  const size_t rest = sizeof(filter) + filter.metadata().mark.size();
  const size_t unused = std::string().capacity();  // the capacity of the chunks that come
  EXPECT_EQ(filter.SizeBytes(), rest + own + unused);
  EXPECT_EQ(filter.SizeBytes(twice), rest + 2 * (own + unused));
  filter.Start(MakeRebuild());
  const size_t other = filter.rebuild()->filter->SizeBytes();
  EXPECT_EQ(filter.SizeBytes(), rest + own + other + unused);
  filter.Commit(1, {.running_ms = 1, .wall_ms = 1});
  EXPECT_EQ(filter.SizeBytes(), sizeof(filter) + other + unused) << "the old mark";
}

TEST(TrustedFilter, CommitAndAbortAnswerTheFilterThatGoes) {
  TrustedFilter filter = Make(true);
  const size_t before = filter.filter().SizeBytes();
  filter.Start(MakeRebuild(5000));
  const size_t later = filter.rebuild()->filter->SizeBytes();
  EXPECT_EQ(filter.Commit(1, {.running_ms = 1, .wall_ms = 1})->SizeBytes(), before);
  EXPECT_EQ(filter.filter().SizeBytes(), later);
  filter.Start(MakeRebuild());
  const size_t dropped = filter.rebuild()->filter->SizeBytes();
  EXPECT_EQ(filter.Abort()->SizeBytes(), dropped);
  EXPECT_EQ(filter.rebuild(), nullptr);
}

TEST(TrustedFilter, HasItsOwnGenerationAndNoOther) {
  TrustedFilter filter = Make(true);
  const uint64_t first = filter.generation();
  EXPECT_TRUE(filter.HasGeneration(first));
  EXPECT_FALSE(filter.HasGeneration(0));
  EXPECT_FALSE(filter.HasGeneration(first + 1));
  filter.Trust(1);
  EXPECT_TRUE(filter.HasGeneration(filter.generation()));
  EXPECT_FALSE(filter.HasGeneration(first));
}

TEST(TrustedFilter, IsTrustedForOneTimeOnly) {
  TrustedFilter filter = Make(true);
  EXPECT_FALSE(filter.IsTrustedIn(1));
  filter.Trust(1);
  EXPECT_TRUE(filter.IsTrustedIn(1));
  EXPECT_FALSE(filter.IsTrustedIn(2));
}

}  // namespace
}  // namespace tamis::redis
