#include "tamis/rocks/region_snapshot.h"

#include <gtest/gtest.h>

#include <functional>

#include "tamis/rocks/testing/one_region.h"

namespace tamis {
namespace {

class RegionSnapshotTest : public OneRegionTest {
 protected:
  static constexpr uint32_t kByV = 1, kByNv = 2, kByN = 3;

  RegionSnapshotTest() {
    context_->is_verified = [this] { return is_verified_; };
    for (const char* key : {"a", "b", "c", "d"}) {
      Run({Mutation(pb::Mutation::PUT, RowOf(key, 1, std::nullopt))});
    }
  }

  // The indexes of the region after a change of the state of one.
  void Change(uint32_t index_id, const std::function<void(Region::IndexState*)>& change) {
    Region::Indexes indexes = *region_->indexes();
    change(&indexes[index_id]);
    region_->SetSchema(std::make_shared<const TableSchema>(schema_), std::move(indexes));
  }
  std::optional<uint64_t> RowsOfRegion() {
    RegionSnapshot snapshot(*context_, *region_, {});
    EXPECT_TRUE(snapshot.Take().ok());
    return snapshot.RowsOfRegion(schema_);
  }

  bool is_verified_ = true;
};

TEST_F(RegionSnapshotTest, RangeIsThePartOfTheRegionThatIsAsked) {
  const auto range = [&](const std::string& start, const std::string& end) {
    const RegionSnapshot snapshot(*context_, *region_, {start, end});
    EXPECT_EQ(snapshot.IsWhole(), snapshot.start().empty() && snapshot.end() == KeyOf("x"));
    return std::pair(snapshot.start(), snapshot.end());
  };
  EXPECT_EQ(range("", ""), std::pair(std::string(), KeyOf("x")));
  EXPECT_EQ(range("", KeyOf("z")), std::pair(std::string(), KeyOf("x")));
  EXPECT_EQ(range(KeyOf("b"), KeyOf("d")), std::pair(KeyOf("b"), KeyOf("d")));
  EXPECT_EQ(range("", KeyOf("d")), std::pair(std::string(), KeyOf("d")));
  EXPECT_EQ(range(KeyOf("b"), ""), std::pair(KeyOf("b"), KeyOf("x")));
}

TEST_F(RegionSnapshotTest, RowsWrittenLaterAreNotRead) {
  RegionSnapshot snapshot(*context_, *region_, {KeyOf("b"), ""});
  ASSERT_TRUE(snapshot.Take().ok());
  Run({Mutation(pb::Mutation::PUT, RowOf("e", 1, "v"))});
  Run({Mutation(pb::Mutation::DELETE, RowOf("b", 1, "v"))});
  std::vector<std::string> values;
  const auto statuses = snapshot.ReadRows({KeyOf("b"), KeyOf("e"), KeyOf("c")}, &values);
  ASSERT_EQ(statuses.size(), 3u);
  EXPECT_TRUE(statuses[0].ok());
  EXPECT_TRUE(statuses[1].IsNotFound());
  EXPECT_TRUE(statuses[2].ok());
  EXPECT_EQ(snapshot.CountRows(4), 3u);
  EXPECT_EQ(snapshot.CountRows(3), 3u);
  EXPECT_EQ(snapshot.CountRows(2), 2u);
}

TEST_F(RegionSnapshotTest, CompleteIndexOfAllRowsTellsTheirNumber) {
  EXPECT_EQ(RowsOfRegion(), 4u);  // the other indexes have no entries of these rows, or of some
  Change(kByNv, [](Region::IndexState* state) { state->entries_complete = false; });
  EXPECT_EQ(RowsOfRegion(), std::nullopt);
  Change(kByNv, [](Region::IndexState* state) { state->entries_complete = true; });
  EXPECT_EQ(RowsOfRegion(), 4u);
  Change(kByNv, [](Region::IndexState* state) { state->filter = nullptr; });
  EXPECT_EQ(RowsOfRegion(), std::nullopt);
  Change(kByNv, [&](Region::IndexState* state) {
    state->filter = std::make_shared<IndexFilter>(feed_.get(), *schema_.FindIndex(kByNv), kRegion,
                                                  kEpoch, Faults{});
  });
  EXPECT_EQ(RowsOfRegion(), std::nullopt);
}

TEST_F(RegionSnapshotTest, IndexThatBecomesCompleteLaterIsNotCompleteInIt) {
  Change(kByN, [](Region::IndexState* state) { state->entries_complete = false; });
  RegionSnapshot snapshot(*context_, *region_, {});
  ASSERT_TRUE(snapshot.Take().ok());
  Change(kByN, [](Region::IndexState* state) { state->entries_complete = true; });
  EXPECT_TRUE(snapshot.IsComplete(kByV));
  EXPECT_FALSE(snapshot.IsComplete(kByN));
}

TEST_F(RegionSnapshotTest, CountsNoLongerOnceAnIndexThatWasUsedIsDropped) {
  RegionSnapshot snapshot(*context_, *region_, {});
  ASSERT_TRUE(snapshot.Take().ok());
  snapshot.NoteUse(kByNv);
  TableSchema dropped = schema_;
  std::erase_if(dropped.indexes, [](const IndexSpec& index) { return index.id == kByN; });
  ASSERT_EQ(catalog_->Commit({.put_tables = {dropped}}), Status::Ok());
  EXPECT_TRUE(snapshot.IsCurrent());  // another index
  snapshot.NoteUse(kByN);
  EXPECT_FALSE(snapshot.IsCurrent());
}

TEST_F(RegionSnapshotTest, CountsNoLongerOnceTheRegionIsElsewhere) {
  RegionSnapshot snapshot(*context_, *region_, {});
  ASSERT_TRUE(snapshot.Take().ok());
  EXPECT_TRUE(snapshot.IsCurrent());
  is_verified_ = false;
  EXPECT_FALSE(snapshot.IsCurrent());
  is_verified_ = true;
  fence_->Advance(kEpoch + 1);
  EXPECT_FALSE(snapshot.IsCurrent());
  RegionSnapshot late(*context_, *region_, {});
  EXPECT_EQ(late.Take().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tamis
