#include "tamis/rocks/store.h"

#include <gtest/gtest.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <unistd.h>

#include <filesystem>
#include <thread>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() {
    directory_ =
        std::filesystem::temp_directory_path() / ("tamis_store_test." + std::to_string(::getpid()));
    std::filesystem::remove_all(directory_);
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open(WriterThreads::Options writers = {}) {
    Store::Options options;
    options.directory = directory_;
    options.writers = writers;
    auto store = Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(*store);
  }

  // `entries` of random order, from a number on.
  void WriteBatch(uint64_t first, uint64_t entries) {
    rocksdb::WriteBatch batch;
    for (uint64_t i = first; i < first + entries; ++i) batch.Put(store_->index(), Key(i), "");
    EXPECT_TRUE(store_->Write(&batch).ok());
  }

  static std::string Key(uint64_t i) {
    std::string key;
    PutBig64(&key, Mix(i));
    return key;
  }

  // How many keys of the memtable are compared to find one of `entries`, on average.
  double ComparisonsOfALookup(uint64_t entries) {
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kEnableCount);
    rocksdb::get_perf_context()->Reset();
    constexpr uint64_t kLookups = 100;
    std::string value;
    for (uint64_t i = 0; i < kLookups; ++i) {
      EXPECT_TRUE(store_->db()
                      ->Get(rocksdb::ReadOptions(), store_->index(), Key(Mix(i) % entries), &value)
                      .ok());
    }
    rocksdb::SetPerfLevel(rocksdb::PerfLevel::kDisable);
    return static_cast<double>(rocksdb::get_perf_context()->user_key_comparison_count) / kLookups;
  }

  std::filesystem::path directory_;
  std::unique_ptr<Store> store_;
};

// A skip list of 2,000 entries has six levels, with two to three steps on each; its heights are
// drawn again in each run, and some lists are twice as slow as others. A low one takes hundreds of
// steps.
constexpr uint64_t kEntries = 2000;
constexpr double kFewComparisons = 150;
constexpr double kLongWalk = 600;

TEST_F(StoreTest, OneThreadFindsItsEntriesInFewSteps) {
  Open();
  for (uint64_t i = 0; i < kEntries; ++i) WriteBatch(i, 1);
  EXPECT_LT(ComparisonsOfALookup(kEntries), kFewComparisons);
}

TEST_F(StoreTest, ThreadsThatComeAndGoLeaveAListThatIsFoundInFewSteps) {
  Open();
  for (uint64_t i = 0; i < kEntries; ++i) std::thread([&] { WriteBatch(i, 1); }).join();
  EXPECT_LT(ComparisonsOfALookup(kEntries), kFewComparisons);
}

// The cause, and the check of the test above.
TEST_F(StoreTest, ThreadsThatComeAndGoWritingOnTheirOwnLeaveALongWalk) {
  Open({.handed_entries = 0});
  for (uint64_t i = 0; i < kEntries; ++i) std::thread([&] { WriteBatch(i, 1); }).join();
  EXPECT_GT(ComparisonsOfALookup(kEntries), kLongWalk);
}

// Each writes on its own once it has handed over enough.
TEST_F(StoreTest, ThreadsThatEndSoonAfterTheyWroteOnTheirOwnLeaveNoLongWalk) {
  Open({.handed_entries = 20});
  for (uint64_t i = 0; i < kEntries; i += 100) {
    std::thread([&] {
      for (uint64_t j = i; j < i + 100; ++j) WriteBatch(j, 1);
    }).join();
  }
  EXPECT_LT(ComparisonsOfALookup(kEntries), 2 * kFewComparisons);
}

TEST_F(StoreTest, ManyThreadsWriteAtOnce) {
  Open({.handed_entries = 50, .max_threads = 3});
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 10; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 100; ++i) WriteBatch(100 * t + i, 1);
    });
  }
  for (auto& thread : threads) thread.join();
  std::string value;
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(store_->db()->Get(rocksdb::ReadOptions(), store_->index(), Key(i), &value).ok());
  }
}

}  // namespace
}  // namespace tamis
