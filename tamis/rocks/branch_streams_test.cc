#include "tamis/rocks/branch_streams.h"

#include <gtest/gtest.h>

#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/region_snapshot.h"
#include "tamis/rocks/search_cost.h"
#include "tamis/rocks/testing/one_region.h"

namespace tamis {
namespace {

// Rows whose n counts from 0; the indexes on (n, v) and on n have an entry of each.
class BranchStreamsTest : public OneRegionTest {
 protected:
  static constexpr int kRows = 20'000;
  static constexpr uint32_t kByNv = 2, kByN = 3;
  static constexpr uint64_t kNoProbe = 4;
  using Stream = BranchStreams::Stream;

  BranchStreamsTest() { context_->options.probe_entries = kNoProbe; }

  void Fill(bool flush) {
    std::vector<pb::Mutation> puts;
    for (int n = 0; n < kRows; ++n) {
      puts.push_back(Mutation(pb::Mutation::PUT, RowOf(n)));
      if (puts.size() == 1000) Run(std::exchange(puts, {}));
    }
    if (flush) {
      ASSERT_TRUE(store_->db()->Flush(rocksdb::FlushOptions(), store_->index()).ok());
    }
  }

  static Row RowOf(int n) {
    char key[16];
    std::snprintf(key, sizeof key, "k%06d", n);
    return OneRegionTest::RowOf(key, n, "v1");
  }
  std::string Values(int n) const {
    return IndexEntry::Of(schema_, *schema_.FindIndex(kByN), RowOf(n))->values;
  }
  std::string Entry(int n) const { return Values(n) + *KeyFormat(schema_).Encode(RowOf(n)); }

  struct Range {
    int low = 0;
    int high = -1;  // exclusive; -1: no end
  };
  Stream* Add(const std::vector<Range>& ranges, std::string last = "", bool descending = false,
              uint32_t index_id = kByN) {
    pb::IndexStream& plan = plans_.emplace_back();
    plan.set_index_id(index_id);
    for (const Range& range : ranges) {
      pb::IndexRange* added = plan.add_ranges();
      if (range.low > 0) added->set_low(Values(range.low));
      if (range.high >= 0) added->set_high(Values(range.high));
    }
    return streams_.Add(plan, *schema_.FindIndex(index_id), region_->filter(index_id),
                        /*may_lead=*/true, {}, std::move(last), descending);
  }
  uint64_t SizeOf(const std::vector<Range>& ranges, std::string last = "", bool descending = false,
                  uint32_t index_id = kByN) {
    Stream* stream = Add(ranges, std::move(last), descending, index_id);
    const uint64_t size = streams_.SizeOf(stream, kNoProbe);
    EXPECT_FALSE(stream->is_exact);
    EXPECT_LE(stream->read.entries_read, kNoProbe);
    return size;
  }
  uint64_t EntriesRead() {
    uint64_t read = 0;
    for (const Stream& stream : streams_.all()) read += stream.read.entries_read;
    return read;
  }

  const rocksdb::ReadOptions read_options_;
  std::deque<pb::IndexStream> plans_;
  BranchStreams streams_{*context_, read_options_, kRegion};
};

TEST_F(BranchStreamsTest, EstimateFollowsTheShareOfTheFiles) {
  Fill(/*flush=*/true);
  constexpr double kError = kRows / 20;
  EXPECT_NEAR(SizeOf({{}}), kRows, kError);
  EXPECT_NEAR(SizeOf({{.low = 4000, .high = 14'000}}), 10'000, kError);
  EXPECT_NEAR(SizeOf({{.low = 15'000}}), 5000, kError);
  EXPECT_NEAR(SizeOf({{.low = 15'000}}, "", false, kByNv), 5000, kError);
  EXPECT_NEAR(SizeOf({{.high = 5000}, {.low = 8000, .high = 12'000}}), 9000, kError);
  // A continuation has only the entries after its last one.
  EXPECT_NEAR(SizeOf({{.low = 4000, .high = 14'000}}, Entry(12'000)), 2000, kError);
  EXPECT_NEAR(SizeOf({{.low = 4000, .high = 14'000}}, Entry(12'000), /*descending=*/true), 8000,
              kError);
  EXPECT_NEAR(SizeOf({{.high = 5000}, {.low = 8000, .high = 12'000}}, Entry(9000)), 3000, kError);
}

TEST_F(BranchStreamsTest, RangesBeyondThoseLookedAtCountLikeThem) {
  Fill(/*flush=*/true);
  std::vector<Range> ranges;
  for (int low = 0; low < 9600; low += 100) ranges.push_back({.low = low, .high = low + 50});
  EXPECT_NEAR(SizeOf(ranges), 4800, 4800.0 / 4);
}

TEST_F(BranchStreamsTest, EntriesInMemoryAreCountedByReadingThemInDoubt) {
  Fill(/*flush=*/false);
  Stream* few = Add({{.high = 50}});
  EXPECT_EQ(streams_.SizeOf(few, 51), 50u);
  EXPECT_TRUE(few->is_exact);
  Stream* many = Add({{.high = 5000}});
  EXPECT_GT(streams_.SizeOf(many, 51), 51u);
  EXPECT_EQ(many->read.entries_read, 51u);
}

TEST_F(BranchStreamsTest, StreamsInMemoryAreReadSideBySideUntilOneEnds) {
  Fill(/*flush=*/false);
  Add({{.high = 5000}});
  Stream* few = Add({{.low = 100, .high = 200}}, "", false, kByNv);
  Add({{.low = 3000}});
  EXPECT_EQ(streams_.Lead(0, 10'000), few);
  EXPECT_EQ(few->size, 100u);
  EXPECT_LT(EntriesRead(), 4 * 100u);
}

TEST_F(BranchStreamsTest, FilesTellTheSmallerOfTwoLongStreams) {
  Fill(/*flush=*/true);
  Add({{.high = 15'000}});
  Stream* fewer = Add({{.low = 100, .high = 5000}}, "", false, kByNv);
  EXPECT_EQ(streams_.Lead(0, 10'000), fewer);
  EXPECT_LT(EntriesRead(), 20u);
}

TEST_F(BranchStreamsTest, FilesTellTheSmallerOfTwoStreamsLongerThanTheProbe) {
  Fill(/*flush=*/true);
  Add({{.high = 15'000}});
  Stream* fewer = Add({{.low = 100, .high = 5000}}, "", false, kByNv);
  Add({{.low = 3000}});
  EXPECT_EQ(streams_.Lead(0, 1000), fewer);
  EXPECT_LT(EntriesRead(), 20u);
}

// The estimate of so many ranges may be wrong by more than what the two streams differ by.
TEST_F(BranchStreamsTest, StreamsThatFilesCannotTellApartAreReadUpToTheProbe) {
  Fill(/*flush=*/true);
  const auto ranges = [](int entries) {
    std::vector<Range> eight;
    for (int i = 0; i < 8; ++i) eight.push_back({.low = 2000 * i, .high = 2000 * i + entries / 8});
    return eight;
  };
  Add(ranges(5200));
  Stream* fewer = Add(ranges(4000), "", false, kByNv);
  Add(ranges(5600));
  constexpr uint64_t kProbe = 2000;
  EXPECT_EQ(streams_.Lead(0, kProbe), fewer);
  for (const Stream& stream : streams_.all()) {
    EXPECT_FALSE(stream.is_exact);
    EXPECT_GT(stream.read.entries_read, kProbe * 9 / 10);
    EXPECT_LE(stream.read.entries_read, kProbe);
  }
  EXPECT_NEAR(*fewer->size, 4000, 400);
}

TEST_F(BranchStreamsTest, StreamHasMoreEntriesThanWereReadUntilItEnds) {
  Fill(/*flush=*/true);
  Stream* stream = Add({{.low = 100, .high = 110}});  // within a block, which is estimated as 0
  EXPECT_EQ(streams_.SizeOf(stream, 6), 7u);
  EXPECT_FALSE(stream->is_exact);
  EXPECT_EQ(streams_.SizeOf(stream, 6), 7u);
  EXPECT_EQ(stream->read.entries_read, 6u);
  EXPECT_EQ(streams_.SizeOf(stream, 8), 9u);
  EXPECT_EQ(streams_.SizeOf(stream, 11), 10u);
  EXPECT_TRUE(stream->is_exact);
  EXPECT_EQ(streams_.SizeOf(stream, 6), 10u);
}

TEST_F(BranchStreamsTest, PartOfARegionIsScannedIfItsShareOfTheFilesIsSmall) {
  Fill(/*flush=*/true);
  ASSERT_TRUE(store_->db()->Flush(rocksdb::FlushOptions(), store_->rows()).ok());
  // 2000 entries and their rows cost as much as 9000 rows that are scanned.
  const auto is_scan_cheaper = [&](int first, int end) {
    const auto key_of = [&](int n) { return *KeyFormat(schema_).Encode(RowOf(n)); };
    RegionSnapshot snapshot(*context_, *region_, {key_of(first), key_of(end)});
    EXPECT_TRUE(snapshot.Take().ok());
    const SearchCost cost(*context_, snapshot, schema_, /*max_rows=*/1000);
    return cost.IsScanCheaper(&streams_, Add({{.low = 1000, .high = 3000}}));
  };
  EXPECT_TRUE(is_scan_cheaper(3000, 9000));
  EXPECT_FALSE(is_scan_cheaper(3000, 15'000));
}

}  // namespace
}  // namespace tamis
