#include "tamis/redis/window.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/redis/trusted_filter.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kSeed = 7;
constexpr double kRate = 0.01;

struct Geometry {
  std::string_view type = "blocked-quotient";
  uint64_t seconds = 60;
  uint64_t slices = 4;
  uint64_t capacity = 4000;
  double rate = kRate;
};

AnyFilter MakeSlice(const Geometry& geometry) {
  FilterOptions options = {.capacity = geometry.capacity, .fpr = geometry.rate, .seed = kSeed};
  auto filter = AnyFilter::Create(geometry.type, Window::SliceOptions(options, geometry.slices));
  EXPECT_TRUE(filter.ok()) << filter.status();
  return std::move(*filter);
}

TrustedFilter Make(const Geometry& geometry, Moment now) {
  TrustedFilter::Metadata metadata;
  metadata.wanted_rate = geometry.rate;
  metadata.capacity = geometry.capacity;
  return TrustedFilter(std::move(metadata), MakeSlice(geometry),
                       Window(geometry.seconds, geometry.slices, now));
}

// Does what the server does before an add.
void BeginIfDue(TrustedFilter* filter, const Geometry& geometry, Moment now) {
  const Window& window = *filter->window();
  const uint64_t number = window.NumberAt(now);
  if (number == window.newest()) return;
  filter->BeginSlice(number, window.ElapsedInSliceMs(now), now, MakeSlice(geometry));
}

bool MayContain(const TrustedFilter& filter, std::string_view item, Moment now) {
  return filter.MayContain(Hash(item, kSeed), now);
}

TrustedFilter Loaded(const TrustedFilter& filter, Moment saved, Moment now, bool counts_pause) {
  const auto [header, bytes] = filter.Save(1, false, saved);
  auto copy = TrustedFilter::FromHeader(header, ~uint64_t{0});
  EXPECT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(copy->AppendChunk(bytes).ok());
  copy->window()->Resume(now, counts_pause);
  return std::move(*copy);
}

TEST(Window, ItemIsFoundForTheWindowAndDeniedASliceLater) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  for (const int64_t added : {0, 1, 14999, 15000, 15001, 29999}) {
    TrustedFilter filter = Make(geometry, {});
    BeginIfDue(&filter, geometry, {added});
    ASSERT_EQ(filter.Add("x"), TrustedFilter::Added::kNew);
    const int64_t over = (added / 15000 + 5) * 15000;
    EXPECT_TRUE(MayContain(filter, "x", {over - 1}));
    EXPECT_FALSE(MayContain(filter, "x", {over}));
    EXPECT_GE(over - added, 60000);
    EXPECT_LE(over - added, 75000);
    EXPECT_EQ(filter.Count({over - 1}), 1u);
    EXPECT_EQ(filter.Count({over}), 0u);
  }
}

TEST(Window, SecondAddIsFoundForAWindowOfItsOwn) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {});
  EXPECT_EQ(filter.Add("x"), TrustedFilter::Added::kNew);
  BeginIfDue(&filter, geometry, {50000});
  EXPECT_EQ(filter.Add("x"), TrustedFilter::Added::kPerhaps);
  EXPECT_TRUE(MayContain(filter, "x", {110000}));
}

TEST(Window, MemoryIsThatOfOneSliceMore) {
  for (const uint64_t slices : {1, 4, 16}) {
    const Geometry geometry = {.slices = slices, .capacity = 1'000'000};
    FilterOptions options = {.capacity = 1'000'000, .fpr = kRate, .seed = kSeed};
    options.fpr = Window::SliceOptions(options, slices).fpr;
    auto plain = AnyFilter::Create(geometry.type, options);
    ASSERT_TRUE(plain.ok());
    TrustedFilter filter = Make(geometry, {});
    for (uint64_t i = 1; i < 3 * slices; ++i) {
      BeginIfDue(&filter, geometry, {static_cast<int64_t>(i * 60000 / slices + i)});
      EXPECT_LE(filter.window()->older().size(), slices);
    }
    const double bound = static_cast<double>(plain->SizeBytes()) * static_cast<double>(slices + 1) /
                         static_cast<double>(slices);
    EXPECT_LE(static_cast<double>(filter.SizeBytes()), bound * 1.02) << slices;
  }
}

TEST(Window, RateOverAllSlicesIsTheOneAskedFor) {
  const Geometry geometry = {.type = "cuckoo", .seconds = 60, .slices = 4, .capacity = 40000};
  TrustedFilter filter = Make(geometry, {});
  for (int64_t slice = 0; slice < 5; ++slice) {
    BeginIfDue(&filter, geometry, {slice * 15000});
    for (int i = 0; i < 10000; ++i) {
      ASSERT_NE(filter.Add(std::to_string(slice) + "/" + std::to_string(i)),
                TrustedFilter::Added::kFull);
    }
  }
  constexpr int kAsked = 100000;
  int found = 0;
  for (int i = 0; i < kAsked; ++i) {
    found += MayContain(filter, "absent" + std::to_string(i), {60000}) ? 1 : 0;
  }
  const double expected = kRate * kAsked;
  EXPECT_LE(found, expected + 5 * std::sqrt(expected));
  EXPECT_GE(found, expected / 10) << "the check sees no false positive at all";
}

TEST(Window, EraseTakesTheOldestCopy) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {});
  ASSERT_EQ(filter.Add("x"), TrustedFilter::Added::kNew);
  const uint64_t token = filter.generation();
  BeginIfDue(&filter, geometry, {30000});
  ASSERT_EQ(filter.Add("x"), TrustedFilter::Added::kPerhaps);
  const auto since = filter.SliceOf(token, {30000});
  ASSERT_EQ(since, 0u);
  EXPECT_EQ(filter.Erase("x", *since), TrustedFilter::Erased::kErased);
  EXPECT_TRUE(MayContain(filter, "x", {80000})) << "the younger copy has gone";
}

// Slices so small that items of one are often found in another: an erase must not remove what other
// items need.
TEST(Window, EraseOfAnItemLeavesEveryOtherOne) {
  for (const FilterType& type : AnyFilter::Types()) {
    if (!type.erases) continue;
    SCOPED_TRACE(type.name);
    const Geometry geometry = {.type = type.name, .capacity = 800, .rate = 0.5};
    TrustedFilter filter = Make(geometry, {});
    const uint64_t before = filter.generation();
    std::vector<std::string> rows;
    std::vector<std::string> gone;
    for (int slice = 0; slice < 3; ++slice) {
      BeginIfDue(&filter, geometry, {slice * 15000});
      for (int i = 0; i < 200; ++i) {
        const std::string number = std::to_string(slice) + "/" + std::to_string(i);
        for (auto& [kind, items] : {std::pair("row", &rows), std::pair("gone", &gone)}) {
          if (filter.Add(kind + number) != TrustedFilter::Added::kFull) {
            items->push_back(kind + number);
          }
        }
      }
    }
    const auto since = filter.SliceOf(before, {30000});
    ASSERT_EQ(since, 0u);
    int erased = 0;
    for (const std::string& item : gone) {
      const TrustedFilter::Erased result = filter.Erase(item, *since);
      EXPECT_NE(result, TrustedFilter::Erased::kAbsent) << item;
      erased += result == TrustedFilter::Erased::kErased ? 1 : 0;
    }
    EXPECT_GT(erased, 0);
    for (const std::string& item : rows) EXPECT_TRUE(MayContain(filter, item, {30000})) << item;
  }
}

TEST(Window, GenerationOfASliceEndsWithIt) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {});
  const uint64_t first = filter.generation();
  EXPECT_EQ(filter.SliceOf(first, {0}), 0u);
  EXPECT_EQ(filter.SliceOf(first, {74999}), 0u);
  EXPECT_FALSE(filter.SliceOf(first, {75000}).has_value());
  BeginIfDue(&filter, geometry, {20000});
  EXPECT_NE(filter.generation(), first);
  EXPECT_EQ(filter.SliceOf(first, {20000}), 0u);
  EXPECT_EQ(filter.SliceOf(filter.generation(), {20000}), 1u);
  EXPECT_TRUE(filter.HasGeneration(first));
  EXPECT_FALSE(filter.SliceOf(0, {20000}).has_value());
  filter.Doubt();
  EXPECT_FALSE(filter.SliceOf(first, {20000}).has_value());
  EXPECT_FALSE(filter.HasGeneration(first));
}

TEST(Window, GenerationIsKnownWhileItsSliceIsThere) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {});
  std::vector<uint64_t> generations = {filter.generation()};
  for (int64_t begun = 15000; begun <= 150000; begun += 15000) {
    BeginIfDue(&filter, geometry, {begun});
    generations.push_back(filter.generation());
    for (size_t i = 0; i < generations.size(); ++i) {
      EXPECT_EQ(filter.HasGeneration(generations[i]), i + 5 >= generations.size()) << i;
    }
    EXPECT_FALSE(filter.HasGeneration(0));
  }
  filter.Doubt();
  EXPECT_TRUE(filter.HasGeneration(filter.generation()));
  for (const uint64_t doubted : generations) EXPECT_FALSE(filter.HasGeneration(doubted));
  EXPECT_FALSE(filter.HasGeneration(0));
}

TEST(Window, CountIsThatOfTheSlicesThatLive) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {});
  for (int slice = 0; slice < 3; ++slice) {
    BeginIfDue(&filter, geometry, {15000 * slice});
    for (int i = 0; i < 1 << slice; ++i) {
      ASSERT_EQ(filter.Add(std::to_string(slice) + " " + std::to_string(i)),
                TrustedFilter::Added::kNew);
    }
  }
  EXPECT_EQ(filter.Count({30000}), 1u + 2u + 4u);
  EXPECT_EQ(filter.Count({74999}), 1u + 2u + 4u);
  EXPECT_EQ(filter.Count({75000}), 2u + 4u) << "the first slice is over";
  EXPECT_EQ(filter.Count({90000}), 4u);
  EXPECT_EQ(filter.Count({105000}), 0u);
}

TEST(Window, ClockThatGoesBackEndsNothing) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {100000, 5000});
  ASSERT_EQ(filter.Add("x"), TrustedFilter::Added::kNew);
  EXPECT_TRUE(MayContain(filter, "x", {50000, 0}));
  BeginIfDue(&filter, geometry, {50000, 0});
  EXPECT_EQ(filter.window()->newest(), 0u);
  // The wall clock alone moves nothing.
  EXPECT_TRUE(MayContain(filter, "x", {110000, int64_t{1} << 40}));
  // A file is read at an earlier time than it was written.
  const TrustedFilter loaded = Loaded(filter, {110000, 9000}, {10, 2000}, true);
  EXPECT_EQ(loaded.window()->ElapsedMs({10, 2000}), 10000u);
}

TEST(Window, PauseCountsInOwnFilesOnly) {
  const Geometry geometry = {.seconds = 60, .slices = 4};
  TrustedFilter filter = Make(geometry, {1000, 0});
  ASSERT_EQ(filter.Add("x"), TrustedFilter::Added::kNew);
  for (const bool own : {true, false}) {
    // Saved 10 s after it began, read 70 s later.
    TrustedFilter loaded = Loaded(filter, {11000, 1'000'000}, {500, 1'070'000}, own);
    EXPECT_EQ(MayContain(loaded, "x", {500, 0}), !own);
    EXPECT_EQ(loaded.window()->NumberAt({500, 0}), own ? 5u : 0u);
    EXPECT_EQ(loaded.window()->ElapsedMs({500, 0}), own ? 80000u : 10000u);
  }
}

TEST(Window, SavedWithOlderSlicesInChunksOfAnySize) {
  const Geometry geometry = {.seconds = 60, .slices = 4, .capacity = 400};
  TrustedFilter filter = Make(geometry, {});
  for (int64_t slice = 0; slice < 3; ++slice) {
    BeginIfDue(&filter, geometry, {slice * 15000});
    ASSERT_EQ(filter.Add("item" + std::to_string(slice)), TrustedFilter::Added::kNew);
  }
  const auto [header, bytes] = filter.Save(1, false, {40000, 9000});
  for (const size_t size : {size_t{1}, size_t{100}, bytes.size()}) {
    auto copy = TrustedFilter::FromHeader(header, ~uint64_t{0});
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->promised(), bytes.size());
    for (size_t at = 0; at < bytes.size(); at += size) {
      EXPECT_EQ(copy->Save(1, false, {77, 88}).header, header) << "while chunks are missing";
      ASSERT_TRUE(copy->AppendChunk(std::string_view(bytes).substr(at, size)).ok());
    }
    // Time stands still until it goes on.
    EXPECT_EQ(copy->window()->NumberAt({int64_t{1} << 40}), 2u);
    copy->window()->Resume({1'000'000, 0}, false);
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(MayContain(*copy, "item" + std::to_string(i), {1'000'000}));
    }
    EXPECT_EQ(copy->HeaderToCompare(), filter.HeaderToCompare());
    EXPECT_EQ(copy->Save(1, false, {1'000'000, 9000}).header, header);
    EXPECT_EQ(copy->Save(1).bytes, bytes);
  }
  EXPECT_FALSE(TrustedFilter::FromHeader(header, bytes.size() - 1).ok());
  for (size_t at = 0; at < header.size(); ++at) {
    EXPECT_FALSE(TrustedFilter::FromHeader(header.substr(0, at), ~uint64_t{0}).ok()) << at;
    // Any byte: a value or an error, and a value is saved as it came.
    std::string bent = header;
    bent[at] = static_cast<char>(bent[at] ^ 0x81);
    const auto read = TrustedFilter::FromHeader(bent, ~uint64_t{0});
    if (read.ok()) {
      EXPECT_EQ(read->Save(1).header.size(), header.size());
    }
  }
}

TEST(Window, SlicesThatAreNotAlikeAreRefused) {
  const Geometry geometry = {.seconds = 60, .slices = 4, .capacity = 400};
  const Geometry other = {.type = "cuckoo", .seconds = 60, .slices = 4, .capacity = 400};
  TrustedFilter filter = Make(geometry, {});
  filter.BeginSlice(1, 0, {15000}, MakeSlice(other));
  const auto [header, bytes] = filter.Save(1);
  auto copy = TrustedFilter::FromHeader(header, ~uint64_t{0});
  ASSERT_TRUE(copy.ok());
  EXPECT_EQ(copy->AppendChunk(bytes).code(), StatusCode::kDataLoss);
  EXPECT_TRUE(copy->partial());
}

// Random adds, erases, moves to servers with other clocks, and restarts, at random times: no item
// is denied before its time, and one whose time is over is denied except at the rate.
class RandomTimes : public testing::TestWithParam<std::string_view> {};

TEST_P(RandomTimes, NoItemIsDeniedBeforeItsTime) {
  const uint64_t seed = SeedFromSystem();
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const auto below = [&](uint64_t end) { return static_cast<int64_t>(random() % end); };
  uint64_t asked_late = 0;
  uint64_t found_late = 0;
  for (int run = 0; run < 8; ++run) {
    const Geometry geometry = {.type = GetParam(),
                               .seconds = 1 + random() % 100,
                               .slices = 1 + random() % 8,
                               .capacity = 20000};
    const auto window_ms = static_cast<int64_t>(geometry.seconds * 1000);
    const auto slice_ms =
        static_cast<int64_t>((geometry.seconds * 1000 + geometry.slices - 1) / geometry.slices);
    int64_t true_ms = 0;                  // time as it is
    int64_t differs_ms = below(1000000);  // the clock of this server from it
    int64_t lost_ms = 0;                  // time that no server has counted
    const auto now = [&] { return Moment{true_ms + differs_ms, true_ms}; };
    TrustedFilter filter = Make(geometry, now());
    const bool erases = filter.filter().type().erases;
    struct Added {
      int64_t time;
      uint64_t token;  // generation before the add
      int64_t lost;
    };
    std::multimap<std::string, Added> items;
    for (int step = 0; step < 3000; ++step) {
      const std::string item = std::to_string(below(1000));
      const int64_t action = below(100);
      if (action < 50) {
        const uint64_t token = filter.generation();
        BeginIfDue(&filter, geometry, now());
        if (filter.Add(item) != TrustedFilter::Added::kFull) {
          items.insert({item, {true_ms, token, lost_ms}});
        }
      } else if (action < 60 && erases && !items.empty()) {
        const auto at = items.lower_bound(item);
        if (at == items.end()) continue;
        const auto since = filter.SliceOf(at->second.token, now());
        if (!since) continue;
        const TrustedFilter::Erased erased = filter.Erase(at->first, *since);
        EXPECT_NE(erased, TrustedFilter::Erased::kAbsent) << at->first;
        if (erased == TrustedFilter::Erased::kErased) items.erase(at);
      } else if (action < 62) {
        // Another server takes over: it has a clock of its own, and heard of all later.
        const Moment saved = now();
        const int64_t lag = below(static_cast<uint64_t>(slice_ms) / 4 + 1);
        true_ms += lag;
        lost_ms += lag;
        differs_ms = below(1000000);
        filter = Loaded(filter, saved, now(), false);
        for (auto& [name, added] : items) added.token = 0;
      } else if (action < 63) {
        const Moment saved = now();
        true_ms += below(static_cast<uint64_t>(slice_ms));
        differs_ms = below(1000000);
        filter = Loaded(filter, saved, now(), true);
        for (auto& [name, added] : items) added.token = 0;
      } else {
        true_ms += below(static_cast<uint64_t>(slice_ms) / 8 + 1);
      }
      std::erase_if(items, [&](const auto& entry) {
        const Added& added = entry.second;
        return true_ms - added.time > window_ms + slice_ms + (lost_ms - added.lost);
      });
      for (const auto& [name, added] : items) {
        if (step % 50 != 0 || true_ms - added.time > window_ms) continue;
        ASSERT_TRUE(MayContain(filter, name, now()))
            << name << " after " << true_ms - added.time << " ms of " << window_ms;
      }
      if (!items.contains(item)) {
        ++asked_late;
        found_late += MayContain(filter, item, now()) ? 1 : 0;
      }
    }
  }
  ASSERT_GT(asked_late, 1000u);
  const double expected = kRate * static_cast<double>(asked_late);
  EXPECT_LE(static_cast<double>(found_late), 2 * expected + 10) << asked_late;
}

INSTANTIATE_TEST_SUITE_P(Types, RandomTimes,
                         testing::Values("blocked-quotient", "cuckoo", "counting", "blocked"),
                         [](const auto& info) {
                           std::string name(info.param);
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace tamis::redis
