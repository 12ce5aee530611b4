// The calls of a TreeFilter, and with them those of its FilterWriter and ColumnFamilies, beside
// each other. The thread sanitizer (./test --preset tsan) reports a lock that is missing. Without
// it the test fails only where a missing lock loses a key, a count or the process.
//
// The threads share the TreeFilter and relaxed atomics, and nothing else: a mutex of the test would
// order the threads, and hide races from the sanitizer.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/lsm/tree_filter.h"

// By default the sanitizer orders each read of a file behind all writes of files before it, which
// hides races of threads that read and write key files.
extern "C" const char* __tsan_default_options();  // NOLINT
extern "C" const char* __tsan_default_options() { return "io_sync=0"; }

namespace tamis::lsm {
namespace {

using File = TreeFilter::File;
using FileNumber = TreeFilter::FileNumber;

constexpr FileNumber kFilesOfThread = 2000;
constexpr uint32_t kThreads = 4;      // threads that make files; each has a family of its own
constexpr uint32_t kFixedFamily = 9;  // its keys never change
constexpr FileNumber kFixedFile = kThreads * kFilesOfThread;
constexpr uint32_t kLargeFamily = 2;  // its files are so large that the filter grows and shrinks
constexpr int kKeys = 24;             // in each file of the others
constexpr int kManyKeys = 200;        // in each file of kLargeFamily
constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

class TreeFilterThreadsTest : public testing::Test {
 protected:
  TreeFilterThreadsTest()
      : directory_(testing::TempDir() + "tree_filter_threads." + std::to_string(getpid())) {
    std::filesystem::remove_all(directory_);
  }
  ~TreeFilterThreadsTest() override {
    tree_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Open(const Faults& faults = {}, uint64_t shard_keys = 600) {
    tree_ = *TreeFilter::Create(
        {.directory = directory_, .seed = 5, .shard_keys = shard_keys, .faults = faults});
    for (uint32_t family = 0; family <= kFixedFamily; ++family) {
      tree_->families().ClearBypassReasons(family, kNotShown | kMemtables);
      memtables_.push_back(tree_->families().MemtableMade(family));
    }
    tree_->EndCounting();
  }

  static std::string Key(FileNumber number, int i) {
    return std::to_string(number) + "/" + std::to_string(i);
  }
  static File FileOf(uint32_t family, FileNumber number) {
    File file{.number = number, .family = family};
    std::memcpy(file.identity.data(), &number, sizeof number);
    file.identity[15] = 1;
    return file;
  }
  static int KeysOf(uint32_t family) { return family == kLargeFamily ? kManyKeys : kKeys; }
  std::vector<uint64_t> HashesOf(uint32_t family, FileNumber number) const {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < KeysOf(family); ++i) {
      hashes.push_back(tree_->HashOf(family, Key(number, i)));
    }
    return hashes;
  }
  void ExpectKeysOf(uint32_t family, FileNumber number) {
    uint64_t missed = 0;
    for (int i = 0; i < KeysOf(family); ++i) missed += !tree_->MayContain(family, Key(number, i));
    missed_.fetch_add(missed, kRelaxed);
  }

  void Install(FileNumber number) { live_[number].store(true, kRelaxed); }
  void Delete(FileNumber number) {
    live_[number].store(false, kRelaxed);
    tree_->FileDeleted(number);
  }
  std::vector<FileNumber> LiveFiles() const {
    std::vector<FileNumber> live;
    for (FileNumber number = 0; number < live_.size(); ++number) {
      if (live_[number].load(kRelaxed)) live.push_back(number);
    }
    return live;
  }
  void LoseKeyFile(FileNumber number) {
    std::filesystem::remove(directory_ + "/" + std::to_string(number) + ".keys");
  }

  void FlushAndCompact(uint32_t thread, int rounds);
  void Ingest(uint32_t thread, int rounds);
  void Count(uint32_t thread, int rounds);
  void Reconcile() {
    unknown_.fetch_add(tree_->Reconcile([this] { return LiveFiles(); }).size(), kRelaxed);
  }

  void ReconcileAlways();
  void Ask(int rounds);
  void ChangeFamilies(int rounds);

  const std::string directory_;
  std::unique_ptr<TreeFilter> tree_;
  std::vector<std::shared_ptr<MemtableFilter>> memtables_;
  std::array<std::atomic<bool>, kThreads * kFilesOfThread + 1> live_{};
  std::atomic<int> running_{0};       // threads that change files
  std::atomic<uint64_t> missed_{0};   // keys that were denied although they are there
  std::atomic<uint64_t> unknown_{0};  // live files that a reconciliation did not know
};

// In each round two files are flushed and compacted into one, which is dropped in the next round.
// Some files are reported twice, some deletions are of files that were never reported, and some key
// files get lost.
void TreeFilterThreadsTest::FlushAndCompact(uint32_t thread, int rounds) {
  const uint32_t family = thread;
  std::optional<FileNumber> last;
  for (int round = 0; round < rounds; ++round) {
    const FileNumber first = thread * kFilesOfThread + 4 * static_cast<FileNumber>(round);
    const std::vector<FileNumber> inputs = {first, first + 1};
    const FileNumber output = first + 2;
    std::vector<uint64_t> hashes;
    for (const FileNumber input : inputs) {
      for (const uint64_t hash : HashesOf(family, input)) hashes.push_back(hash);
      for (int i = 0; i < 1 + (round % 4 == 1); ++i) {
        tree_->FileCreated(FileOf(family, input), HashesOf(family, input), std::nullopt);
      }
      Install(input);
      ExpectKeysOf(family, input);
    }
    if (round % 16 == 3) LoseKeyFile(inputs[0]);
    const int job = static_cast<int>(output);
    tree_->CompactionBegan(job, inputs);
    tree_->FileCreated(FileOf(family, output), std::move(hashes), job);
    Install(output);
    tree_->CompactionEnded(job);
    for (const FileNumber input : inputs) Delete(input);
    if (round % 32 == 9) LoseKeyFile(output);
    for (const FileNumber input : inputs) ExpectKeysOf(family, input);
    if (last.has_value()) Delete(*last);
    last = output;
    for (int i = 0; i < 8; ++i) {
      tree_->FileDeleted(first + 3);
      tree_->CompactionBegan(job, {output});  // it writes no file
      tree_->CompactionEnded(job);
    }
  }
  running_.fetch_sub(1, kRelaxed);
}

// Each third file is not installed; the others are dropped when the next one is installed.
void TreeFilterThreadsTest::Ingest(uint32_t thread, int rounds) {
  const uint32_t family = thread;
  std::optional<FileNumber> last;
  for (int round = 0; round < rounds; ++round) {
    const FileNumber number = thread * kFilesOfThread + static_cast<FileNumber>(round);
    const TreeFilter::Ticket ticket =
        tree_->IngestionBegan(FileOf(family, number), HashesOf(family, number));
    if (round % 3 != 2) {
      EXPECT_TRUE(tree_->FileIngested(ticket, number));
      Install(number);
      ExpectKeysOf(family, number);
    }
    tree_->IngestionEnded(ticket);
    if (round % 3 == 2) continue;
    ExpectKeysOf(family, number);
    if (last.has_value()) Delete(*last);
    last = number;
  }
  running_.fetch_sub(1, kRelaxed);
}

// In each round three files come without an event: one with a key file, one without, and one that
// is deleted before it is counted. They are dropped in the next round. Other files have no key
// file, and are not counted.
void TreeFilterThreadsTest::Count(uint32_t thread, int rounds) {
  const uint32_t family = thread;
  const std::string others = directory_ + ".others";
  auto other = *TreeFilter::Create({.directory = others, .seed = 5});
  std::optional<FileNumber> last;
  for (int round = 0; round < rounds; ++round) {
    const FileNumber number = thread * kFilesOfThread + static_cast<FileNumber>(round) * 3;
    const std::vector<File> files = {FileOf(family, number), FileOf(family, number + 1),
                                     FileOf(family, number + 2)};
    const std::string name = "/" + std::to_string(number) + ".keys";
    other->FileCreated(files[0], HashesOf(family, number), std::nullopt);
    std::filesystem::rename(others + name, directory_ + name);
    for (int i = 0; i < 4; ++i) {
      tree_->BeginCounting();
      tree_->EndCounting();
    }
    tree_->BeginCounting();
    EXPECT_EQ(tree_->Uncovered(files).size(), files.size());
    EXPECT_EQ(tree_->CountFromKeyFiles(files).size(), 2u);
    tree_->MakeRoom(round % 2 == 0 ? 2 * kKeys : 1000);
    tree_->CountFromHashes(files[1], HashesOf(family, number + 1));
    tree_->FileDeleted(number + 2);
    tree_->CountFromHashes(files[2], HashesOf(family, number + 2));
    EXPECT_TRUE(tree_->Covers(files[0]));
    EXPECT_TRUE(tree_->Covers(files[1]));
    EXPECT_FALSE(tree_->Covers(files[2]));
    tree_->EndCounting();
    for (const FileNumber counted : {number, number + 1}) {
      Install(counted);
      ExpectKeysOf(family, counted);
    }
    if (last.has_value()) {
      Delete(*last);
      Delete(*last + 1);
    }
    last = number;
  }
  running_.fetch_sub(1, kRelaxed);
  other.reset();
  std::filesystem::remove_all(others);
}

// Reconciles until the other threads have ended.
void TreeFilterThreadsTest::ReconcileAlways() {
  for (int round = 0; running_.load(kRelaxed) > 0; ++round) {
    tree_->IsPartlyDeleted();
    if (tree_->HasUnreconciled()) Reconcile();
    if (round % 16 == 7) tree_->IsExact();  // it is not while a key file is missing
    std::this_thread::yield();
  }
}

void TreeFilterThreadsTest::Ask(int rounds) {
  std::vector<std::string> keys;
  for (int i = 0; i < kKeys; ++i) keys.push_back(Key(kFixedFile, i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  const std::unique_ptr<bool[]> answers(new bool[views.size()]);
  for (int round = 0; round < rounds; ++round) {
    tree_->MayContain(kFixedFamily, views, {answers.get(), views.size()});
    uint64_t missed = 0;
    for (size_t i = 0; i < views.size(); ++i) missed += !answers[i];
    missed_.fetch_add(missed, kRelaxed);
    tree_->NoteFalsePasses(kFixedFamily, 1);
    EXPECT_EQ(tree_->figures().filter.missed, 0u);
  }
}

// Several threads make the same families, and drop them.
void TreeFilterThreadsTest::ChangeFamilies(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const uint32_t family = kFixedFamily + 1 + static_cast<uint32_t>(round);
    ColumnFamilies& families = tree_->families();
    const auto memtable = families.MemtableMade(family, 64);
    families.ClearBypassReasons(family, kNotShown);
    memtable->Add(tree_->HashOf(family, "a"));
    missed_.fetch_add(!tree_->MayContain(family, "a"), kRelaxed);
    families.AddBypassReasons(family, kDropped);
    missed_.fetch_add(!tree_->MayContain(family, "b"), kRelaxed);
    families.MemtableGone(family, memtable.get());
    families.MemtableCount(family);
    if (round % 16 == 0) families.MemtableBytes();
  }
}

TEST_F(TreeFilterThreadsTest, AllCallsMayRunAtOnce) {
  constexpr int kRounds = 400;
  Open();
  tree_->FileCreated(FileOf(kFixedFamily, kFixedFile), HashesOf(kFixedFamily, kFixedFile),
                     std::nullopt);
  Install(kFixedFile);
  std::vector<std::thread> threads;
  running_ = 4;
  threads.emplace_back([this] { FlushAndCompact(0, kRounds); });
  threads.emplace_back([this] { FlushAndCompact(1, kRounds); });
  threads.emplace_back([this] { Ingest(2, kRounds); });
  threads.emplace_back([this] { Count(3, kRounds); });
  threads.emplace_back([this] { ReconcileAlways(); });
  threads.emplace_back([this] { Ask(10 * kRounds); });
  threads.emplace_back([this] { ChangeFamilies(kRounds); });
  threads.emplace_back([this] { ChangeFamilies(kRounds); });
  for (std::thread& thread : threads) thread.join();

  // Stale copies are removed by a reconciliation that has a deletion to reconcile.
  const FileNumber last = kFixedFile + 1;
  tree_->FileCreated(FileOf(kFixedFamily, last), HashesOf(kFixedFamily, last), std::nullopt);
  tree_->FileDeleted(last);
  Reconcile();
  const TreeFilter::Figures figures = tree_->figures();
  EXPECT_EQ(missed_, 0u);
  EXPECT_EQ(unknown_, 0u);
  EXPECT_EQ(figures.filter.missed, 0u);
  EXPECT_EQ(figures.unreconciled, 0u);
  EXPECT_EQ(figures.stale, 0u);
  // The fixed file, an output of each compacting thread, an ingested file, two counted files.
  EXPECT_EQ(figures.files, 6u);
  EXPECT_EQ(LiveFiles().size(), 6u);
  EXPECT_EQ(figures.filter.keys, 7u * kKeys + kManyKeys);
  EXPECT_TRUE(tree_->IsExact());
}

// With this fault the files wait for the next reconciliation, in a list that needs a lock, too.
TEST_F(TreeFilterThreadsTest, FilesMayBeCountedLateFromSeveralThreads) {
  constexpr FileNumber kFiles = 200;
  Open({.count_after_install = true});
  std::vector<std::thread> threads;
  running_ = 2;
  for (uint32_t family = 0; family < 2; ++family) {
    threads.emplace_back([this, family] {
      for (FileNumber i = 0; i < kFiles; ++i) {
        const FileNumber number = family * kFilesOfThread + i;
        tree_->FileCreated(FileOf(family, number), HashesOf(family, number), std::nullopt);
      }
      running_.fetch_sub(1, kRelaxed);
    });
  }
  threads.emplace_back([this] { ReconcileAlways(); });
  threads.emplace_back([this] {
    for (FileNumber i = 0; i < kFiles; ++i) tree_->figures();
  });
  for (std::thread& thread : threads) thread.join();
  Reconcile();
  EXPECT_EQ(tree_->figures().files, 2 * kFiles);
  EXPECT_EQ(tree_->figures().filter.keys, 2 * kFiles * kKeys);
}

// A file that is reported twice leaves stale copies behind, which a reconciliation removes.
TEST_F(TreeFilterThreadsTest, StaleCopiesThatComeWhileOthersAreRemovedStayKnown) {
  constexpr FileNumber kRounds = 3, kReports = 20;
  Open({}, /*shard_keys=*/20);
  const auto report = [this](FileNumber number) {
    tree_->FileCreated(FileOf(0, number), HashesOf(0, number), std::nullopt);
  };
  for (FileNumber number = 0; number <= kReports; ++number) report(number);
  constexpr uint64_t kCounted = (kReports + 1) * kKeys;
  for (FileNumber round = 1; round <= kRounds; ++round) {
    report(0);
    report(kReports + round);
    tree_->FileDeleted(kReports + round);
    std::thread reporter([&] {
      for (FileNumber number = 1; number <= kReports; ++number) report(number);
    });
    Reconcile();
    reporter.join();
    const TreeFilter::Figures figures = tree_->figures();
    ASSERT_LE(figures.filter.keys, kCounted + figures.stale) << "round " << round;
    report(kReports + round + kRounds);
    tree_->FileDeleted(kReports + round + kRounds);
    Reconcile();
    ASSERT_EQ(tree_->figures().stale, 0u);
    ASSERT_EQ(tree_->figures().filter.keys, kCounted);
  }
  EXPECT_TRUE(tree_->IsExact());
}

}  // namespace
}  // namespace tamis::lsm
