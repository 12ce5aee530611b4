#include "tamis/lsm/tree_filter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tamis/base/random.h"

namespace tamis::lsm {
namespace {

using FileNumber = TreeFilter::FileNumber;

TEST(TreeFilterTest, NewBypassReasonWaitsForReadersThatDidNotKnowOfIt) {
  const std::string directory = testing::TempDir() + "tree_filter_wait." + std::to_string(getpid());
  std::atomic<bool> is_asking{false};
  std::atomic<bool> is_added{false};
  std::atomic<bool> has_left{false};
  Faults faults;
  faults.between_questions = [&] {
    is_asking = true;
    // Long enough for an AddBypassReasons that does not wait.
    for (int i = 0; i < 100'000 && !is_added; ++i) std::this_thread::yield();
    has_left = true;
  };
  auto tree = *TreeFilter::Create({.directory = directory, .faults = faults});
  tree->EndCounting();
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  std::thread reader([&] { EXPECT_FALSE(tree->MayContain(0, "a")); });
  while (!is_asking) std::this_thread::yield();
  // Two who add the same: neither of them is let go before the reader is.
  std::thread other([&] { tree->families().AddBypassReasons(0, kUnreadable); });
  while ((tree->families().BypassReasonsOf(0) & kUnreadable) == 0) std::this_thread::yield();
  tree->families().AddBypassReasons(0, kUnreadable);
  is_added = true;
  EXPECT_TRUE(has_left);
  reader.join();
  other.join();
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A flush between a reader's two questions: threads that run freely do not meet there.
TEST(TreeFilterTest, ReadersAskTheMemtablesFirst) {
  for (const bool is_wrong : {false, true}) {
    const std::string directory =
        testing::TempDir() + "tree_filter_order." + std::to_string(getpid());
    std::function<void()> between;
    Faults faults;
    faults.filter_before_memtables = is_wrong;
    faults.between_questions = [&] {
      if (between) between();
    };
    auto tree = *TreeFilter::Create({.directory = directory, .faults = faults});
    tree->families().ClearBypassReasons(0, kNotShown);
    int missed = 0;
    auto memtable = tree->families().MemtableMade(0);
    tree->EndCounting();
    for (int i = 0; i < 50; ++i) {
      const std::string key = "key" + std::to_string(i);
      const uint64_t hash = tree->HashOf(0, key);
      const auto next = tree->families().MemtableMade(0);
      memtable->Add(hash);
      between = [&] {
        tree->FileCreated({.number = static_cast<uint64_t>(i) + 1}, {hash}, {});
        tree->families().MemtableGone(0, memtable.get());
      };
      missed += !tree->MayContain(0, key);
      if (!is_wrong) between();  // the key was found in the memtable, so `between` was not called
      between = nullptr;
      EXPECT_TRUE(tree->MayContain(0, key));
      memtable = next;
    }
    EXPECT_EQ(missed > 0, is_wrong);
    tree.reset();
    std::filesystem::remove_all(directory);
  }
}

TEST(TreeFilterTest, ACompactionIsPartlyDeletedUntilAllOfItsInputsAre) {
  const std::string directory = testing::TempDir() + "tree_filter_part." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->EndCounting();
  const auto hashes = [&](uint64_t first, uint64_t last) {
    std::vector<uint64_t> made;
    for (uint64_t i = first; i < last; ++i) made.push_back(tree->HashOf(0, std::to_string(i)));
    return made;
  };
  const auto file = [](uint64_t number) {
    TreeFilter::File file{.number = number};
    file.identity[0] = static_cast<uint8_t>(number);
    return file;
  };
  tree->FileCreated(file(1), hashes(0, 1000), {});
  tree->FileCreated(file(2), hashes(1000, 2000), {});
  tree->CompactionBegan(7, {1, 2});
  tree->FileCreated(file(3), hashes(0, 2000), 7);
  EXPECT_FALSE(tree->IsPartlyDeleted());
  tree->FileDeleted(2);
  EXPECT_TRUE(tree->IsPartlyDeleted());
  // A second compaction, while the first is not reconciled.
  tree->CompactionBegan(8, {3});
  tree->FileCreated(file(4), hashes(0, 2000), 8);
  tree->FileDeleted(3);
  EXPECT_TRUE(tree->IsPartlyDeleted());
  tree->FileDeleted(1);
  EXPECT_FALSE(tree->IsPartlyDeleted());
  EXPECT_TRUE(tree->Reconcile([] { return std::vector<uint64_t>{4}; }).empty());
  EXPECT_EQ(tree->figures().filter.keys, 2000u);
  EXPECT_EQ(tree->figures().touched, 0u);
  EXPECT_TRUE(tree->IsExact());
  tree.reset();
  std::filesystem::remove_all(directory);
}

TEST(TreeFilterTest, FamilyWithABypassReasonPassesThroughAndSaysWhy) {
  const std::string directory =
      testing::TempDir() + "tree_filter_doubts." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory});
  EXPECT_EQ(tree->families().BypassReasonsOf(0), kCounting | kNotShown | kMemtables);
  EXPECT_TRUE(tree->MayContain(0, "a"));
  tree->EndCounting();
  tree->families().ClearBypassReasons(0, kNotShown);
  EXPECT_EQ(BypassReasonNames(tree->families().BypassReasonsOf(0)),
            "its memtables are not watched");
  EXPECT_TRUE(tree->MayContain(0, "a"));
  const auto memtable = tree->families().MemtableMade(0);
  EXPECT_EQ(tree->families().BypassReasonsOf(0), 0u);
  EXPECT_FALSE(tree->MayContain(0, "a"));
  EXPECT_TRUE(tree->MayContain(1, "a"));  // a family of which nothing is known
  EXPECT_TRUE(tree->MayContain(1u << 30, "a"));
  EXPECT_EQ(tree->families().MemtableMade(1u << 30), nullptr);
  tree->families().MemtableGone(1u << 30, memtable.get());
  tree->families().ClearBypassReasons(1u << 30, kNotShown | kMemtables);
  EXPECT_TRUE(tree->MayContain(1u << 30, "a"));
  tree->families().AddBypassReasons(0, kIngestion);
  EXPECT_TRUE(tree->MayContain(0, "a"));
  tree->families().ClearBypassReasons(0, kIngestion);
  std::vector<std::string_view> keys(100, "a");
  memtable->Add(tree->HashOf(0, "b"));
  keys[70] = "b";
  bool answers[100];
  tree->MayContain(0, keys, answers);
  EXPECT_EQ(std::ranges::count(answers, true), 1);
  EXPECT_TRUE(answers[70]);
  EXPECT_EQ(tree->figures().asked, 107u);
  EXPECT_EQ(tree->figures().excluded, 100u);
  tree.reset();
  std::filesystem::remove_all(directory);
}

TEST(TreeFilterTest, FalsePassesAreCountedOfFamiliesThatAnswerAlone) {
  auto tree = *TreeFilter::Create({.directory = testing::TempDir() + "tree_filter_test.passes"});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->NoteFalsePasses(0, 5);
  EXPECT_EQ(tree->figures().false_passes, 0u) << "before its first counting it passes through";
  tree->EndCounting();
  tree->NoteFalsePasses(0, 5);
  tree->NoteFalsePasses(0, 0);
  tree->NoteFalsePasses(0, 2);
  EXPECT_EQ(tree->figures().false_passes, 7u);
  tree->NoteFalsePasses(1, 3);
  tree->families().AddBypassReasons(0, kIngestion);
  tree->NoteFalsePasses(0, 3);
  EXPECT_EQ(tree->figures().false_passes, 7u) << "families that pass through";
}

TEST(TreeFilterTest, ItsEndFreesTheMemtablesFilters) {
  auto tree = *TreeFilter::Create({.writes_files = false});
  const std::weak_ptr<MemtableFilter> memtable = tree->families().MemtableMade(3);
  EXPECT_FALSE(memtable.expired());
  tree.reset();
  EXPECT_TRUE(memtable.expired());
}

TEST(TreeFilterTest, AFileThatIsIngestedWithoutItsTicketIsNotCounted) {
  auto tree = *TreeFilter::Create({.writes_files = false});
  tree->EndCounting();
  const TreeFilter::Ticket ticket = tree->IngestionBegan({}, {tree->HashOf(0, "a")});
  tree->IngestionEnded(ticket);
  tree->Reconcile([] { return std::vector<FileNumber>(); });
  EXPECT_FALSE(tree->FileIngested(ticket, 7));
  EXPECT_FALSE(tree->FileIngested(ticket + 1, 8));
  EXPECT_FALSE(tree->Covers({.number = 7}));
  EXPECT_FALSE(tree->Covers({.number = 8}));
}

// The events of an ingested file may come in any order.
TEST(TreeFilterTest, KeysOfAnIngestedFileLeaveWithIt) {
  const std::string directory =
      testing::TempDir() + "tree_filter_ingested." + std::to_string(getpid());
  for (const bool is_found : {false, true}) {      // and counted before its ingestion is announced
    for (const bool is_deleted : {false, true}) {  // before its ingestion is announced
      std::filesystem::remove_all(directory);
      auto tree = *TreeFilter::Create({.directory = directory});
      tree->EndCounting();
      const TreeFilter::File file{.number = 7};
      const TreeFilter::Ticket ticket = tree->IngestionBegan({}, {tree->HashOf(0, "a")});
      if (is_found) tree->CountFromHashes(file, {tree->HashOf(0, "a")});
      if (is_deleted) tree->FileDeleted(7);
      EXPECT_TRUE(tree->FileIngested(ticket, 7));
      tree->IngestionEnded(ticket);
      EXPECT_TRUE(tree->Covers(file));
      tree->Reconcile(
          [&] { return is_deleted ? std::vector<FileNumber>() : std::vector<FileNumber>{7}; });
      EXPECT_EQ(tree->figures().filter.keys, is_deleted ? 0u : 1u);
      EXPECT_EQ(tree->Covers(file), !is_deleted);
      tree->FileDeleted(7);
      tree->Reconcile([] { return std::vector<FileNumber>(); });
      EXPECT_EQ(tree->figures().filter.keys, 0u);
      EXPECT_FALSE(tree->Covers(file));
      EXPECT_TRUE(tree->IsExact());
    }
  }
  std::filesystem::remove_all(directory);
}

// A file was counted for a family whose name another one has by now.
TEST(TreeFilterTest, OutputOfAFileOfAnotherFamilyIsCounted) {
  const std::string directory =
      testing::TempDir() + "tree_filter_named." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->BeginCounting();
  tree->CountFromHashes({.number = 10, .family = 1}, {tree->HashOf(1, "a")});
  tree->EndCounting();
  tree->CompactionBegan(1, {10});
  tree->FileCreated({.number = 11, .family = 2}, {tree->HashOf(2, "a")}, 1);
  tree->CompactionEnded(1);
  EXPECT_TRUE(tree->Covers({.number = 10, .family = 1}));
  EXPECT_FALSE(tree->Covers({.number = 11, .family = 2}));
  tree.reset();
  std::filesystem::remove_all(directory);
}

// Unreconciled compactions, each of the outputs of the one before it: the number of files that are
// looked at is linear in the number of files, not in the number of paths through the inputs.
TEST(TreeFilterTest, LooksAtEachFileOnceToTellWhatIsCovered) {
  constexpr uint64_t kLevels = 40;
  for (const uint64_t width : {2, 10}) {
    const std::string directory =
        testing::TempDir() + "tree_filter_levels." + std::to_string(getpid());
    auto tree = *TreeFilter::Create({.directory = directory});
    tree->EndCounting();
    const auto create = [&](uint64_t number, std::optional<int> job) {
      tree->FileCreated({.number = number}, {tree->HashOf(0, std::to_string(number))}, job);
    };
    std::vector<FileNumber> live;
    for (uint64_t i = 1; i <= width; ++i) {
      create(i, std::nullopt);
      live.push_back(i);
    }
    std::vector<TreeFilter::File> files;
    for (uint64_t level = 1; level <= kLevels; ++level) {
      const int job = static_cast<int>(level);
      tree->CompactionBegan(job, live);
      for (FileNumber& number : live) create(number += width, job);
      tree->CompactionEnded(job);
      for (const FileNumber number : live) tree->FileDeleted(number - width);
      for (const FileNumber number : live) files.push_back({.number = number});
    }
    const uint64_t count = width * (kLevels + 1);
    EXPECT_TRUE(tree->Covers({.number = live.back()}));
    EXPECT_LE(tree->figures().walked, 3 * count);
    const uint64_t before = tree->figures().walked;
    EXPECT_TRUE(tree->Uncovered(files).empty());
    EXPECT_LE(tree->figures().walked - before, 4 * count);
    // Made of a file that is not known.
    tree->CompactionBegan(1000, {live.front(), 10'000});
    create(20'000, 1000);
    EXPECT_EQ(tree->Uncovered({{.number = 20'000}, {.number = live.front()}}).size(), 1u);
    tree.reset();
    std::filesystem::remove_all(directory);
  }
}

// RocksDB itself names the family of a file that it writes. The family of a file that is counted
// later is found by its name, which another family may have had when the counting began.
TEST(TreeFilterTest, AFamilyFoundByItsNameDoesNotReplaceTheOneThatWroteTheFile) {
  const std::string directory = testing::TempDir() + "tree_filter_sure." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 100});
  tree->families().ClearBypassReasons(9, kNotShown);
  const auto memtable = tree->families().MemtableMade(9);
  tree->EndCounting();
  TreeFilter::File file{.number = 1, .family = 9};
  file.identity[0] = 1;
  tree->FileCreated(file, {tree->HashOf(9, "a")}, {});
  tree->BeginCounting();
  TreeFilter::File taken_for = file;
  taken_for.family = 5;
  tree->CountFromHashes(taken_for, {tree->HashOf(5, "a")});
  tree->EndCounting();
  // Enough keys that the shard is made again, from the key files.
  std::vector<uint64_t> many;
  for (int i = 0; i < 1000; ++i) many.push_back(tree->HashOf(9, std::to_string(i)));
  tree->FileCreated({.number = 2, .family = 9, .identity = file.identity}, many, {});
  EXPECT_GT(tree->figures().filter.rebuilt, 0u);
  EXPECT_TRUE(tree->MayContain(9, "a"));
  EXPECT_TRUE(tree->Covers(file));
  tree.reset();
  std::filesystem::remove_all(directory);
}

// The output of a compaction of a file that was never counted is not covered by any copy.
TEST(TreeFilterTest, OutputOfAnUnknownFileIsCounted) {
  const std::string directory = testing::TempDir() + "tree_filter_made." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  const uint64_t hash = tree->HashOf(0, "a");
  for (const bool is_announced : {true, false}) {
    const FileNumber first = is_announced ? 1 : 11;  // has come behind our back
    if (is_announced) tree->CompactionBegan(1, {first});
    tree->FileCreated({.number = first + 1}, {hash}, 1);
    tree->CompactionEnded(1);
    tree->CompactionBegan(2, {first + 1});
    tree->FileCreated({.number = first + 2}, {hash}, 2);
    tree->CompactionEnded(2);
    tree->FileDeleted(first);
    tree->BeginCounting();
    EXPECT_FALSE(tree->Covers({.number = first + 2}));
    tree->CountFromHashes({.number = first + 2}, {hash});
    tree->EndCounting();
    EXPECT_TRUE(tree->Covers({.number = first + 2}));
    EXPECT_TRUE(tree->MayContain(0, "a"));
    tree->FileDeleted(first + 1);
    tree->FileDeleted(first + 2);
    EXPECT_TRUE(tree->Reconcile([] { return std::vector<FileNumber>(); }).empty());
    EXPECT_FALSE(tree->MayContain(0, "a"));
  }
  EXPECT_EQ(tree->figures().filter.missed, 0u);
  tree.reset();
  std::filesystem::remove_all(directory);
}

TEST(TreeFilterTest, ReadersBesideEveryEvent) {
  const std::string directory =
      testing::TempDir() + "tree_filter_threads." + std::to_string(getpid());
  auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 300});
  tree->families().ClearBypassReasons(0, kNotShown);
  auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  std::atomic<uint64_t> written{0};
  std::atomic<bool> done{false};
  std::atomic<uint64_t> lost{0};
  std::atomic<uint64_t> rounds{0};
  const auto key = [](uint64_t i) { return "key" + std::to_string(i); };
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&, r] {
      Random random(static_cast<uint64_t>(r));
      while (!done.load()) {
        const uint64_t until = written.load();
        for (int i = 0; i < 100 && until > 0; ++i) {
          lost += !tree->MayContain(0, key(random.Uniform(until)));
        }
        ++rounds;
      }
    });
  }
  FileNumber next = 1;
  std::vector<FileNumber> live;
  std::map<FileNumber, std::vector<uint64_t>> files;
  for (int round = 0; round < 60 || rounds.load() < 50; ++round) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 50; ++i) {
      hashes.push_back(tree->HashOf(0, key(written.load())));
      memtable->Add(hashes.back());
      ++written;
    }
    auto flushed = std::exchange(memtable, tree->families().MemtableMade(0));
    tree->FileCreated({.number = next}, hashes, {});
    files[next] = hashes;
    live.push_back(next++);
    tree->families().MemtableGone(0, flushed.get());
    if (live.size() > 4) {
      std::vector<uint64_t> all;
      for (const FileNumber number : live) {
        all.insert(all.end(), files[number].begin(), files[number].end());
      }
      tree->CompactionBegan(round, live);
      tree->FileCreated({.number = next}, all, round);
      tree->CompactionEnded(round);
      for (const FileNumber number : live) tree->FileDeleted(number);
      files[next] = all;
      live = {next++};
      EXPECT_TRUE(tree->Reconcile([&] { return live; }).empty());
    }
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(lost, 0u);
  EXPECT_TRUE(tree->IsExact());
  tree.reset();
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace tamis::lsm
