// The entries of an upper daughter, copied before a split, beside writes and after failures.
#include "tamis/rocks/entry_copy.h"

#include <gtest/gtest.h>

#include "tamis/base/random.h"
#include "tamis/rocks/entry_repair.h"
#include "tamis/rocks/testing/one_region.h"

namespace tamis {
namespace {

using namespace std::chrono_literals;

class EntryCopyTest : public OneRegionTest {
 protected:
  EntryCopyTest() {
    while (catalog_->NewRegionId() < kRegion) {  // which the fixture chose itself
    }
  }

  static Row AnyRow(Random& random) {
    return RowOf(
        "k" + std::to_string(random.Uniform(60)), static_cast<int64_t>(random.Uniform(4)),
        random.OneIn(4) ? std::nullopt : std::optional("v" + std::to_string(random.Uniform(9))));
  }
  void PutRows(uint64_t seed, uint64_t count) {
    Random random(seed);
    std::vector<pb::Mutation> mutations;
    for (uint64_t i = 0; i < count; ++i) {
      mutations.push_back(Mutation(pb::Mutation::PUT, AnyRow(random)));
    }
    ASSERT_EQ(CodeOf(mutations), pb::Error::OK);
  }

  std::shared_ptr<EntryCopy> Prepare() {
    auto copy = EntryCopy::Prepare(*context_, *region_, split_key_);
    EXPECT_TRUE(copy.ok()) << copy.status();
    EXPECT_TRUE(region_->SetEntryCopy(*copy));
    return *copy;
  }
  // While no write is inside of the region, under its fence.
  void Alone(const std::function<void()>& task) {
    bool done = false;
    region_->Quiesce([&] {
      const auto excluded = region_->fence().Exclude();
      task();
      done = true;
    });
    executor_.RunFor(1s);
    ASSERT_TRUE(done);
  }
  void Begin(EntryCopy* copy) {
    Alone([&] { copy->Begin(*region_); });
  }
  static void CopyAll(EntryCopy* copy) {
    while (true) {
      const auto more = copy->Copy(3);
      ASSERT_TRUE(more.ok()) << more.status();
      if (!*more) break;
    }
    ASSERT_EQ(copy->TakeIn(), Status::Ok());
  }
  Status Complete(EntryCopy* copy) {
    Status status;
    Alone([&] { status = copy->Complete(); });
    return status;
  }

  std::map<std::string, std::string> EntriesOf(uint64_t region_id) const {
    std::map<std::string, std::string> entries = EntriesAndValues();
    std::erase_if(entries, [&](const auto& entry) {
      return !entry.first.starts_with(RegionIndexPrefix(region_id));
    });
    return entries;
  }
  // The entries that the rows of the upper half give.
  std::map<std::string, std::string> Wanted(uint64_t region_id) const {
    std::map<std::string, std::string> wanted;
    for (const auto& [key, row] : Rows()) {
      if (key < split_key_) continue;
      for (const IndexSpec& spec : schema_.indexes) {
        const auto entry = IndexEntry::Of(schema_, spec, row);
        if (entry.has_value()) wanted[entry->StoreKey(region_id, spec.id, key)] = entry->included;
      }
    }
    return wanted;
  }
  std::vector<std::string> FilesOfEntries() {
    std::vector<std::string> names;
    EXPECT_TRUE(env_.GetChildren(store_->options().directory, &names).ok());
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".entries"); });
    return names;
  }

  const std::string split_key_ = KeyOf("k3");
};

TEST_F(EntryCopyTest, HasTheUpperHalfWithWhatIsWrittenMeanwhile) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    PutRows(seed, 40);
    std::vector<std::shared_ptr<Result>> writes;
    const auto write_some = [&] {
      for (uint64_t i = random.Uniform(3); i > 0; --i) {
        const auto kind = random.OneIn(3) ? pb::Mutation::DELETE : pb::Mutation::PUT;
        writes.push_back(Start({Mutation(kind, AnyRow(random))}));
        executor_.RunFor(random.Uniform(4) * 1ms);
      }
    };
    const auto copy = Prepare();
    write_some();
    Begin(copy.get());
    for (bool more = true; more;) {
      write_some();
      const auto copied = copy->Copy(1 + random.Uniform(20));
      ASSERT_TRUE(copied.ok()) << copied.status();
      more = *copied;
    }
    write_some();
    ASSERT_EQ(copy->TakeIn(), Status::Ok());
    EXPECT_TRUE(FilesOfEntries().empty());
    write_some();
    ASSERT_EQ(Complete(copy.get()), Status::Ok());
    for (const auto& write : writes) EXPECT_EQ((*write)->error().code(), pb::Error::OK);
    EXPECT_FALSE(Wanted(copy->daughter_id()).empty());
    EXPECT_EQ(EntriesOf(copy->daughter_id()), Wanted(copy->daughter_id()));
    region_->DropEntryCopy(copy);
  }
}

TEST_F(EntryCopyTest, LeavesOutGarbageAndIndexesThatAreNotComplete) {
  PutRows(1, 40);
  // A split leaves such entries: the row lies behind the end of the region.
  const Row beyond = RowOf("y", 1, "v1");
  rocksdb::WriteBatch batch;
  for (const IndexSpec& spec : schema_.indexes) {
    batch.Put(store_->index(),
              IndexEntry::Of(schema_, spec, beyond)->StoreKey(kRegion, spec.id, KeyOf("y")), "");
  }
  ASSERT_EQ(store_->Write(&batch), Status::Ok());
  Region::Indexes indexes = *region_->indexes();
  indexes[2].entries_complete = false;
  region_->SetSchema(region_->schema(), std::move(indexes));

  const auto copy = Prepare();
  Begin(copy.get());
  EXPECT_TRUE(copy->Has(1));
  EXPECT_FALSE(copy->Has(2));
  ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("k4", 3, "v3"))}), pb::Error::OK);
  CopyAll(copy.get());
  ASSERT_EQ(Complete(copy.get()), Status::Ok());
  auto wanted = Wanted(copy->daughter_id());
  const std::string incomplete = IndexPrefix(copy->daughter_id(), 2);
  std::erase_if(wanted, [&](const auto& entry) { return entry.first.starts_with(incomplete); });
  EXPECT_EQ(EntriesOf(copy->daughter_id()), wanted);

  indexes = *region_->indexes();
  for (auto& [id, state] : indexes) state.entries_complete = false;
  region_->SetSchema(region_->schema(), std::move(indexes));
  const auto nothing = EntryCopy::Prepare(*context_, *region_, split_key_);
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, nullptr);
}

TEST_F(EntryCopyTest, HasTheEntriesThatARepairWritesAndRemoves) {
  PutRows(1, 40);
  const Row row = RowOf("k50", 3, "v3");
  ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, row)}), pb::Error::OK);
  const IndexSpec& spec = schema_.indexes[1];
  const auto entry_of = [&](const Row& of) {
    return IndexEntry::Of(schema_, spec, of)->StoreKey(kRegion, spec.id, KeyOf("k50"));
  };
  const std::string foreign = entry_of(RowOf("k50", 2, "v8"));
  rocksdb::WriteBatch damage;
  damage.Delete(store_->index(), entry_of(row));
  damage.Put(store_->index(), foreign, "");
  ASSERT_EQ(store_->Write(&damage), Status::Ok());

  const auto copy = Prepare();
  Begin(copy.get());
  CopyAll(copy.get());
  const RepairedIndex repaired{spec.id, region_->filter(spec.id)};
  ASSERT_EQ(WriteMissingEntries(*context_, *region_, schema_, {&repaired, 1}, {KeyOf("k50")}),
            Status::Ok());
  const std::string suspect = foreign.substr(IndexPrefix(kRegion, spec.id).size());
  ASSERT_EQ(RemoveForeignEntries(*context_, *region_, schema_, repaired, {&suspect, 1}),
            Status::Ok());
  ASSERT_EQ(Complete(copy.get()), Status::Ok());
  EXPECT_EQ(EntriesOf(copy->daughter_id()), Wanted(copy->daughter_id()));
}

TEST_F(EntryCopyTest, IsSpoiltByMoreChangesThanItMayNote) {
  PutRows(1, 40);
  context_->options.copied_change_bytes = 200;
  for (const int writes : {1, 20}) {
    const auto copy = Prepare();
    Begin(copy.get());
    for (int i = 0; i < writes; ++i) {
      ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("k4", i, "w"))}), pb::Error::OK);
    }
    const auto more = copy->Copy(1000);
    ASSERT_TRUE(more.ok());
    ASSERT_FALSE(*more);
    EXPECT_EQ(copy->TakeIn().code(), writes == 1 ? StatusCode::kOk : StatusCode::kUnavailable);
    EXPECT_EQ(Complete(copy.get()).code(),
              writes == 1 ? StatusCode::kOk : StatusCode::kUnavailable);
    region_->DropEntryCopy(copy);
  }
}

TEST_F(EntryCopyTest, IsSpoiltByAWriteOfUnknownOutcome) {
  PutRows(1, 40);
  const auto copy = Prepare();
  Begin(copy.get());
  CopyAll(copy.get());
  env_.set_failing(true);
  EXPECT_NE(CodeOf({Mutation(pb::Mutation::PUT, RowOf("k4", 1, "w"))}), pb::Error::OK);
  env_.set_failing(false);
  EXPECT_EQ(Complete(copy.get()).code(), StatusCode::kUnavailable);
}

TEST_F(EntryCopyTest, IsNotCompleteIfItsFileOrTheFirstChangesAreNotInTheStore) {
  PutRows(1, 40);
  for (const bool change : {false, true}) {
    const auto copy = Prepare();
    Begin(copy.get());
    if (change) {
      ASSERT_EQ(CodeOf({Mutation(pb::Mutation::PUT, RowOf("k4", 1, "w"))}), pb::Error::OK);
    }
    ASSERT_TRUE(copy->Copy(1000).ok());
    EXPECT_EQ(Complete(copy.get()).code(), StatusCode::kUnavailable);  // before TakeIn
    if (change) {
      env_.set_failing(true);
      EXPECT_FALSE(copy->TakeIn().ok());
      env_.set_failing(false);
      EXPECT_EQ(Complete(copy.get()).code(), StatusCode::kUnavailable);
    }
    region_->DropEntryCopy(copy);
  }
}

TEST_F(EntryCopyTest, LeavesNothingWhenItIsNotUsed) {
  PutRows(1, 40);
  for (const bool taken_in : {false, true}) {
    auto copy = Prepare();
    const uint64_t id = copy->daughter_id();
    Begin(copy.get());
    if (taken_in) {
      CopyAll(copy.get());
      EXPECT_FALSE(EntriesOf(id).empty());
    } else {
      ASSERT_TRUE(copy->Copy(100).ok());
      EXPECT_EQ(FilesOfEntries().size(), 1u);
    }
    region_->DropEntryCopy(copy);
    copy.reset();
    EXPECT_TRUE(FilesOfEntries().empty());
    ASSERT_EQ(store_->Compact(), Status::Ok());
    EXPECT_TRUE(EntriesOf(id).empty());
  }
}

TEST_F(EntryCopyTest, AFileThatADeadProcessLeftIsDeleted) {
  const std::string path = store_->options().directory + "/region-12.entries";
  ASSERT_TRUE(rocksdb::WriteStringToFile(&env_, "half a file", path).ok());
  ASSERT_EQ(FilesOfEntries().size(), 1u);
  Open({});
  EXPECT_TRUE(FilesOfEntries().empty());
}

TEST_F(EntryCopyTest, OnlyOneCopyOfARegionIsMadeAtATime) {
  PutRows(1, 10);
  const auto copy = Prepare();
  const auto second = EntryCopy::Prepare(*context_, *region_, split_key_);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(region_->SetEntryCopy(*second));
  region_->DropEntryCopy(*second);  // not this one
  EXPECT_EQ(region_->entry_copy(), copy);
  region_->DropEntryCopy(copy);
  EXPECT_EQ(region_->entry_copy(), nullptr);
}

}  // namespace
}  // namespace tamis
