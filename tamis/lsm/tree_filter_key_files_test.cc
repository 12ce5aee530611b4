// A TreeFilter and its key files: lost, damaged, or read when the files are counted anew.
#include "tamis/lsm/tree_filter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tamis::lsm {
namespace {

using FileNumber = TreeFilter::FileNumber;

// Without a directory to write to, everything is counted at once, and nothing fails.
TEST(TreeFilterKeyFilesTest, WithoutKeyFilesNoKeyIsMissed) {
  const std::string directory = testing::TempDir() + "tree_filter_none." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  std::ofstream(directory) << "a file";
  auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 100});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  std::vector<uint64_t> all;
  for (uint64_t file = 1; file <= 50; ++file) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 100; ++i) {
      hashes.push_back(tree->HashOf(0, std::to_string(file) + "/" + std::to_string(i)));
    }
    all.insert(all.end(), hashes.begin(), hashes.end());
    tree->FileCreated({.number = file}, hashes, {});
  }
  tree->CompactionBegan(1, {1, 2});
  tree->FileCreated({.number = 51}, std::vector<uint64_t>(all.begin(), all.begin() + 200), 1);
  tree->FileDeleted(1);
  tree->FileDeleted(2);
  tree->Reconcile([] { return std::vector<FileNumber>{51}; });
  EXPECT_EQ(tree->figures().stale, 200u);
  EXPECT_GT(tree->figures().filter.doubled, 0u);
  EXPECT_EQ(tree->figures().unwritten, 51u);
  for (uint64_t file = 1; file <= 50; ++file) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(tree->MayContain(0, std::to_string(file) + "/" + std::to_string(i)));
    }
  }
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A key file can be opened although the hashes of some sections are damaged.
TEST(TreeFilterKeyFilesTest, DamagedSectionsMakeNoShardWithoutTheirKeys) {
  const std::string directory = testing::TempDir() + "tree_filter_bits." + std::to_string(getpid());
  for (uint64_t place = 1; place < 10; ++place) {
    std::filesystem::remove_all(directory);
    auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 1000});
    tree->families().ClearBypassReasons(0, kNotShown);
    const auto memtable = tree->families().MemtableMade(0);
    tree->EndCounting();
    const auto create = [&](FileNumber file) {
      std::vector<uint64_t> hashes;
      for (int i = 0; i < 3000; ++i) {
        hashes.push_back(tree->HashOf(0, std::to_string(file) + "/" + std::to_string(i)));
      }
      tree->FileCreated({.number = file}, hashes, {});
    };
    create(1);
    const auto size = std::filesystem::file_size(directory + "/1.keys");
    std::fstream file(directory + "/1.keys", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size * place / 10));
    file.write("damaged!", 8);
    file.close();
    for (FileNumber number = 2; number < 6; ++number) create(number);
    EXPECT_GT(tree->figures().filter.doubled, 0u);
    for (int number = 1; number < 6; ++number) {
      for (int i = 0; i < 3000; ++i) {
        ASSERT_TRUE(tree->MayContain(0, std::to_string(number) + "/" + std::to_string(i)));
      }
    }
    tree.reset();
  }
  std::filesystem::remove_all(directory);
}

// A file may be deleted between the question which files are live and its counting, also when all
// was counted before.
TEST(TreeFilterKeyFilesTest, AFileThatIsDeletedWhileItIsCountedLeavesAgain) {
  const std::string directory = testing::TempDir() + "tree_filter_gone." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->EndCounting();
  tree->BeginCounting();
  tree->FileDeleted(7);
  // Counted by a thread that has read its keys before.
  tree->FileCreated({.number = 7}, {tree->HashOf(0, "a")}, {});
  tree->EndCounting();
  EXPECT_EQ(tree->figures().filter.keys, 1u);
  tree->Reconcile([] { return std::vector<FileNumber>(); });
  EXPECT_EQ(tree->figures().filter.keys, 0u);
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A compaction that merges many copies leaves the shards nearly empty.
TEST(TreeFilterKeyFilesTest, SettlingMakesHalfEmptyShardsAnew) {
  const std::string directory = testing::TempDir() + "tree_filter_trim." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 1000});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  constexpr uint64_t kKeys = 5000;
  std::vector<uint64_t> hashes;
  for (uint64_t i = 0; i < kKeys; ++i) hashes.push_back(tree->HashOf(0, std::to_string(i)));
  std::vector<FileNumber> inputs;
  for (FileNumber file = 1; file <= 8; ++file) {
    tree->FileCreated({.number = file}, hashes, {});
    inputs.push_back(file);
  }
  const TreeFilter::Figures before = tree->figures();
  EXPECT_EQ(before.filter.keys, 8 * kKeys);
  tree->CompactionBegan(1, inputs);
  tree->FileCreated({.number = 9}, hashes, 1);
  tree->CompactionEnded(1);
  for (const FileNumber file : inputs) tree->FileDeleted(file);
  tree->Reconcile([] { return std::vector<FileNumber>{9}; });
  const TreeFilter::Figures after = tree->figures();
  EXPECT_EQ(after.filter.keys, kKeys);
  EXPECT_EQ(after.touched, before.touched + 7 * kKeys);
  EXPECT_EQ(after.compared, before.compared + 9 * kKeys);
  EXPECT_LT(after.filter.size_bytes, before.filter.size_bytes / 3);
  EXPECT_TRUE(tree->IsExact());
  for (uint64_t i = 0; i < kKeys; ++i) ASSERT_TRUE(tree->MayContain(0, std::to_string(i)));
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A file whose key file is lost leaves its copies behind; as soon as the keys of all others are
// known, every shard is made again without them.
TEST(TreeFilterKeyFilesTest, CopiesOfLostKeyFilesLeaveAllShards) {
  const std::string directory =
      testing::TempDir() + "tree_filter_stale." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory, .shard_keys = 100});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  constexpr int kKeys = 5000;
  for (uint64_t file = 1; file <= 3; ++file) {
    std::vector<uint64_t> hashes;
    for (int i = 0; i < kKeys; ++i) {
      hashes.push_back(tree->HashOf(0, std::to_string(file) + "/" + std::to_string(i)));
    }
    tree->FileCreated({.number = file}, hashes, {});
  }
  EXPECT_GT(tree->figures().filter.shards, 10u);
  const auto may_contain = [&](int file) {
    int count = 0;
    for (int i = 0; i < kKeys; ++i) {
      count += tree->MayContain(0, std::to_string(file) + "/" + std::to_string(i));
    }
    return count;
  };
  // While the keys of file 2 are unknown, too, nothing can be made again.
  std::filesystem::remove(directory + "/1.keys");
  std::filesystem::remove(directory + "/2.keys");
  tree->FileDeleted(1);
  tree->Reconcile([] { return std::vector<FileNumber>{2, 3}; });
  EXPECT_EQ(tree->figures().stale, uint64_t{kKeys});
  EXPECT_EQ(may_contain(1), kKeys);
  tree->FileDeleted(2);
  tree->Reconcile([] { return std::vector<FileNumber>{3}; });
  EXPECT_EQ(tree->figures().stale, 0u);
  EXPECT_EQ(tree->figures().filter.keys, uint64_t{kKeys});
  EXPECT_TRUE(tree->IsExact());
  EXPECT_LT(may_contain(1), kKeys / 20);
  EXPECT_LT(may_contain(2), kKeys / 20);
  EXPECT_EQ(may_contain(3), kKeys);
  tree.reset();
  std::filesystem::remove_all(directory);
}

// Without an identity a file cannot be told from another one of its number, whose keys are there.
TEST(TreeFilterKeyFilesTest, FileWithoutAnIdentityIsNotCountedFromAKeyFile) {
  const std::string directory =
      testing::TempDir() + "tree_filter_nameless." + std::to_string(getpid());
  for (const bool has_identity : {true, false}) {
    std::filesystem::remove_all(directory);
    TreeFilter::File file{.number = 7};
    if (has_identity) file.identity[0] = 1;
    {
      auto tree = *TreeFilter::Create({.directory = directory});
      tree->EndCounting();
      tree->FileCreated(file, {tree->HashOf(0, "a")}, {});
    }
    auto tree = *TreeFilter::Create({.directory = directory});
    tree->BeginCounting();
    EXPECT_EQ(tree->CountFromKeyFiles({file}).size(), has_identity ? 0u : 1u);
    EXPECT_EQ(tree->Covers(file), has_identity);
    tree->CountFromHashes(file, {tree->HashOf(0, "b")});
    tree->EndCounting();
    tree->families().ClearBypassReasons(0, kNotShown);
    const auto memtable = tree->families().MemtableMade(0);
    EXPECT_EQ(tree->MayContain(0, "a"), has_identity);
    EXPECT_EQ(tree->MayContain(0, "b"), !has_identity);
  }
  std::filesystem::remove_all(directory);
}

// One output of a compaction has lost its key file when its inputs go: the other one is counted
// once, however many reconciliations follow.
TEST(TreeFilterKeyFilesTest, OutputBesideOneWithoutKeysIsCountedOnce) {
  const std::string directory =
      testing::TempDir() + "tree_filter_beside." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->EndCounting();
  constexpr uint64_t kKeys = 100;  // in each file
  const auto create = [&](FileNumber file, int keys_of, std::optional<int> compaction) {
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i < kKeys; ++i) {
      hashes.push_back(tree->HashOf(0, std::to_string(keys_of) + "/" + std::to_string(i)));
    }
    tree->FileCreated({.number = file}, hashes, compaction);
  };
  for (const FileNumber file : {1, 2, 7}) create(file, static_cast<int>(file), {});
  tree->CompactionBegan(1, {1, 2});
  create(8, 1, 1);
  create(9, 2, 1);
  tree->CompactionEnded(1);
  std::filesystem::remove(directory + "/8.keys");
  tree->FileDeleted(1);
  tree->Reconcile([] { return std::vector<FileNumber>{2, 7, 8, 9}; });
  const uint64_t keys = tree->figures().filter.keys;
  tree->FileDeleted(7);
  EXPECT_FALSE(tree->IsPartlyDeleted());  // file 2 adds nothing to what file 8 leaves
  tree->FileDeleted(2);
  tree->Reconcile([] { return std::vector<FileNumber>{8, 9}; });
  EXPECT_EQ(tree->figures().filter.keys, keys);
  for (uint64_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(tree->MayContain(0, "1/" + std::to_string(i)));
    ASSERT_TRUE(tree->MayContain(0, "2/" + std::to_string(i)));
  }
  // With the file its copies go.
  tree->CompactionBegan(2, {8, 9});
  create(10, 1, 2);
  tree->CompactionEnded(2);
  tree->FileDeleted(8);
  tree->FileDeleted(9);
  tree->Reconcile([] { return std::vector<FileNumber>{10}; });
  EXPECT_EQ(tree->figures().filter.keys, kKeys);
  EXPECT_EQ(tree->figures().stale, 0u);
  EXPECT_TRUE(tree->IsExact());
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A compaction may end while the files of the database are being counted, its inputs not yet.
TEST(TreeFilterKeyFilesTest, OutputOfACompactionDuringTheCountingIsCounted) {
  const std::string directory =
      testing::TempDir() + "tree_filter_during." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->families().ClearBypassReasons(0, kNotShown);
  const auto memtable = tree->families().MemtableMade(0);
  tree->CompactionBegan(1, {1});
  tree->FileCreated({.number = 2}, {tree->HashOf(0, "a")}, 1);
  tree->CompactionEnded(1);
  tree->FileDeleted(1);
  tree->EndCounting();
  EXPECT_TRUE(tree->MayContain(0, "a"));
  EXPECT_FALSE(tree->MayContain(0, "b"));
  EXPECT_TRUE(tree->IsExact());
  tree.reset();
  std::filesystem::remove_all(directory);
}

// The output of a compaction has lost its key file and its inputs: it has to be counted from its
// hashes, which is said once, and another file is counted from its key file.
TEST(TreeFilterKeyFilesTest, ListedFileWithoutKeysIsReportedOnce) {
  const std::string directory = testing::TempDir() + "tree_filter_once." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->EndCounting();
  TreeFilter::File other = {.number = 20};
  other.identity[0] = 'x';
  tree->FileCreated(other, {tree->HashOf(0, "b")}, {});
  std::filesystem::copy(directory + "/20.keys", directory + "/20.kept");
  tree->FileDeleted(20);
  tree->Reconcile([] { return std::vector<FileNumber>(); });
  ASSERT_FALSE(tree->Covers(other));
  tree->FileCreated({.number = 1}, {tree->HashOf(0, "a")}, {});
  tree->CompactionBegan(1, {1});
  tree->FileCreated({.number = 8}, {tree->HashOf(0, "a")}, 1);
  tree->CompactionEnded(1);
  std::filesystem::remove(directory + "/8.keys");
  tree->FileDeleted(1);
  tree->Reconcile([] { return std::vector<FileNumber>{8}; });
  std::filesystem::copy(directory + "/20.kept", directory + "/20.keys");
  tree->BeginCounting();
  const auto failed = tree->CountFromKeyFiles({{.number = 8}, other});
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].number, 8u);
  EXPECT_TRUE(tree->Covers(other));
  tree.reset();
  std::filesystem::remove_all(directory);
}

// A key file turns out to be damaged when its first sections are counted already: their copies
// leave once the keys of all files are known.
TEST(TreeFilterKeyFilesTest, CopiesOfACountingThatFailedLeave) {
  const std::string directory =
      testing::TempDir() + "tree_filter_failed." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  constexpr uint64_t kKeys = 3000;
  TreeFilter::File file = {.number = 1};
  file.identity[0] = 'x';
  const auto hashes_of = [](const TreeFilter& tree) {
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i < kKeys; ++i) hashes.push_back(tree.HashOf(0, std::to_string(i)));
    return hashes;
  };
  {
    auto tree = *TreeFilter::Create({.directory = directory});
    tree->EndCounting();
    tree->FileCreated(file, hashes_of(*tree), {});
  }
  const auto size = std::filesystem::file_size(directory + "/1.keys");
  std::fstream bytes(directory + "/1.keys", std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekp(static_cast<std::streamoff>(size * 9 / 10));
  bytes.write("damaged!", 8);
  bytes.close();
  auto tree = *TreeFilter::Create({.directory = directory});
  tree->BeginCounting();
  EXPECT_EQ(tree->CountFromKeyFiles({file}).size(), 1u);
  EXPECT_EQ(tree->figures().stale, kKeys);
  tree->CountFromHashes(file, hashes_of(*tree));
  tree->EndCounting();
  tree->FileCreated({.number = 2}, {tree->HashOf(0, "b")}, {});
  tree->FileDeleted(2);
  tree->Reconcile([] { return std::vector<FileNumber>{1}; });
  EXPECT_EQ(tree->figures().stale, 0u);
  EXPECT_EQ(tree->figures().filter.keys, kKeys);
  EXPECT_TRUE(tree->IsExact());
  tree.reset();
  std::filesystem::remove_all(directory);
}

// From key files, and from hashes when it knows how many come: shards are made once, with room
// for all, not trimmed while they are still to be filled, and read by who only reads.
TEST(TreeFilterKeyFilesTest, CountingAnewMakesEachShardOnce) {
  const std::string directory = testing::TempDir() + "tree_filter_anew." + std::to_string(getpid());
  std::filesystem::remove_all(directory);
  constexpr uint64_t kFiles = 8;
  constexpr uint64_t kKeys = 20'000;
  const auto identity = [](uint64_t number) {
    FileIdentity made{};
    made[0] = static_cast<char>(number);
    return made;
  };
  std::map<uint64_t, uint64_t> sizes;
  for (const bool has_files : {false, true, true}) {
    const bool only_reads = !sizes.empty();
    auto tree = *TreeFilter::Create(
        {.directory = directory, .shard_keys = 4096, .writes_files = !only_reads});
    tree->families().ClearBypassReasons(0, kNotShown);
    const auto memtable = tree->families().MemtableMade(0);
    tree->BeginCounting();
    std::vector<TreeFilter::File> files;
    for (uint64_t i = 1; i <= kFiles; ++i) files.push_back({.number = i, .identity = identity(i)});
    const auto failed = tree->CountFromKeyFiles(files);
    EXPECT_EQ(failed.size(), has_files ? 0 : kFiles);
    tree->MakeRoom(failed.size() * kKeys);
    for (const TreeFilter::File& file : failed) {
      std::vector<uint64_t> hashes;
      for (uint64_t i = 0; i < kKeys; ++i) {
        hashes.push_back(tree->HashOf(0, std::to_string(file.number * kKeys + i)));
      }
      tree->CountFromHashes(file, hashes);
    }
    tree->EndCounting();
    const TreeFilter::Figures figures = tree->figures();
    EXPECT_EQ(figures.filter.keys, kFiles * kKeys);
    EXPECT_EQ(figures.written, has_files ? 0 : kFiles);
    // Shares of random keys differ from what was expected, counts in key files do not.
    EXPECT_LE(figures.filter.rebuilt, figures.filter.shards * (has_files ? 1 : 2));
    EXPECT_TRUE(tree->IsExact());
    for (uint64_t i = kKeys; i < (kFiles + 1) * kKeys; i += 97) {
      ASSERT_TRUE(tree->MayContain(0, std::to_string(i)));
    }
    tree.reset();
    sizes.clear();
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      sizes[std::stoull(entry.path().stem())] = entry.file_size();
    }
    EXPECT_EQ(sizes.size(), kFiles);
  }
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace tamis::lsm
