#include "tamis/lsm/tree_filter.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"

namespace tamis::lsm {
namespace {

using FileNumber = TreeFilter::FileNumber;
using Keys = std::set<std::string>;

// A tree of sorted runs whose every doing is a row of steps, and steps of many doings alternate at
// random. After each the filter must say "perhaps" to all keys that a reader could find.
class World {
 public:
  struct Options {
    uint64_t seed;
    Faults faults;
    bool damages = false;  // key files get lost and damaged
    bool restarts = false;
  };

  explicit World(const Options& options)
      : options_(options),
        random_(options.seed),
        directory_(testing::TempDir() + "tree_filter_test." + std::to_string(getpid()) + "." +
                   std::to_string(options.seed)) {
    std::filesystem::remove_all(directory_);
    Open();
  }
  ~World() {
    tree_.reset();
    std::filesystem::remove_all(directory_);
  }

  // Keys that the filter denied although they were there.
  uint64_t missed() const { return missed_; }
  uint64_t denied() const { return denied_; }  // answers of no
  TreeFilter& tree() { return *tree_; }

  void Run(int steps) {
    for (int i = 0; i < steps && missed_ == 0; ++i) {
      Step(/*may_reconcile=*/true);
      Check();
      if (options_.restarts && random_.OneIn(400)) {
        doings_.clear();
        Open();
      }
    }
  }

  // Everything that was begun ends, and all is reconciled.
  void Finish() {
    while (!doings_.empty()) StepOf(random_.Uniform(doings_.size()));
    for (int i = 0; i < 3; ++i) ReconcileAll();
    Check();
  }

 private:
  struct Memtable {
    Keys keys;
    std::shared_ptr<MemtableFilter> filter;
  };
  using Doing = std::deque<std::function<void()>>;

  static constexpr uint32_t kFamily = 3;

  void Open() {
    tree_.reset();
    auto tree = TreeFilter::Create({.directory = directory_,
                                    .fpr = 0.003,
                                    .seed = 5,
                                    .shard_keys = 60,
                                    .faults = options_.faults});
    ASSERT_TRUE(tree.ok()) << tree.status();
    tree_ = *std::move(tree);
    tree_->families().ClearBypassReasons(kFamily, kNotShown);
    // The log brings back what was in memtables, and numbers come again.
    Keys recovered;
    for (const auto& memtable : memtables_) recovered.merge(Keys(memtable->keys));
    memtables_.clear();
    busy_.clear();
    next_number_ = live_.empty() ? 1 : live_.rbegin()->first + 1;
    NewMemtable();
    for (const std::string& key : recovered) Put(key);
    counting_ = true;
    unannounced_ = 0;
  }

  void NewMemtable() {
    auto memtable = std::make_shared<Memtable>();
    memtable->filter = tree_->families().MemtableMade(kFamily);
    memtables_.push_back(std::move(memtable));
  }

  std::string RandomKey() { return "key" + std::to_string(random_.Uniform(500)); }

  void Put(const std::string& key) {
    memtables_.back()->filter->Add(tree_->HashOf(kFamily, key));
    memtables_.back()->keys.insert(key);
  }

  std::vector<uint64_t> HashesOf(const Keys& keys) {
    std::vector<uint64_t> hashes;
    for (const std::string& key : keys) {
      hashes.insert(hashes.end(), 1 + random_.Uniform(2), tree_->HashOf(kFamily, key));
    }
    return hashes;
  }

  TreeFilter::File NewFile() {
    TreeFilter::File file{.number = next_number_++, .family = kFamily};
    const uint64_t words[2] = {random_(), random_()};
    std::memcpy(file.identity.data(), words, sizeof words);
    identities_[file.number] = file.identity;
    return file;
  }

  // The events of deletion come one by one and late.
  void Delete(const std::vector<FileNumber>& numbers) {
    for (const FileNumber number : numbers) {
      doings_.push_back({[this, number] { tree_->FileDeleted(number); }});
    }
  }

  void Flush() {
    if (memtables_.back()->keys.empty()) return;
    const auto memtable = memtables_.back();
    NewMemtable();
    Doing doing;
    if (random_.OneIn(6)) {  // fails, and is done again
      const auto file = NewFile();
      doing.push_back([=, this] { tree_->FileCreated(file, HashesOf(memtable->keys), {}); });
      doing.push_back([=, this] { tree_->FileDeleted(file.number); });
    }
    const auto file = NewFile();
    doing.push_back([=, this] { tree_->FileCreated(file, HashesOf(memtable->keys), {}); });
    doing.push_back([=, this] { live_[file.number] = memtable->keys; });
    doing.push_back([=, this] {
      tree_->families().MemtableGone(kFamily, memtable->filter.get());
      std::erase(memtables_, memtable);
    });
    doings_.push_back(std::move(doing));
  }

  std::vector<FileNumber> ChooseInputs() {
    std::vector<FileNumber> inputs;
    const uint64_t count = 1 + random_.Uniform(5);
    for (const auto& [number, keys] : live_) {
      if (inputs.size() < count && !busy_.contains(number) && random_.OneIn(2)) {
        inputs.push_back(number);
      }
    }
    return inputs;
  }

  void Compact() {
    const std::vector<FileNumber> inputs = ChooseInputs();
    if (inputs.empty()) return;
    busy_.insert(inputs.begin(), inputs.end());
    const bool is_remote = random_.OneIn(6);
    const bool fails = random_.OneIn(6);
    const bool is_announced = !is_remote && !random_.OneIn(5);
    const int job = next_job_++;
    // Each key into one of the outputs, or dropped.
    std::vector<std::pair<TreeFilter::File, Keys>> outputs;
    for (uint64_t i = random_.Uniform(3) + 1; i > 0; --i) outputs.emplace_back(NewFile(), Keys());
    Keys all;
    for (const FileNumber input : inputs) all.merge(Keys(live_[input]));
    const bool drops = random_.OneIn(2);
    for (const std::string& key : all) {
      if (drops && random_.OneIn(5)) continue;
      outputs[random_.Uniform(outputs.size())].second.insert(key);
    }
    Doing doing;
    if (is_announced) doing.push_back([=, this] { tree_->CompactionBegan(job, inputs); });
    if (!is_remote) {
      for (const auto& [file, keys] : outputs) {
        doing.push_back([this, file = file, keys = keys, job] {
          tree_->FileCreated(file, HashesOf(keys), job);
        });
      }
    }
    if (fails) {
      doing.push_back([=, this] {
        if (!is_remote) {
          std::vector<FileNumber> written;
          for (const auto& output : outputs) written.push_back(output.first.number);
          Delete(written);
        }
        for (const FileNumber input : inputs) busy_.erase(input);
      });
    } else {
      doing.push_back([=, this] {
        for (const auto& [file, keys] : outputs) live_[file.number] = keys;
        for (const FileNumber input : inputs) {
          live_.erase(input);
          busy_.erase(input);
        }
        Delete(inputs);
      });
    }
    if (is_announced) doing.push_back([=, this] { tree_->CompactionEnded(job); });
    doings_.push_back(std::move(doing));
  }

  void Ingest() {
    Keys keys;
    for (uint64_t i = random_.Uniform(60) + 1; i > 0; --i) keys.insert(RandomKey());
    const auto file = NewFile();
    const auto ticket = std::make_shared<TreeFilter::Ticket>();
    Doing doing;
    doing.push_back([=, this] { *ticket = tree_->IngestionBegan(file, HashesOf(keys)); });
    if (!random_.OneIn(4)) {
      doing.push_back([=, this] { live_[file.number] = keys; });
      doing.push_back([=, this] { tree_->FileIngested(*ticket, file.number); });
    }
    doing.push_back([=, this] { tree_->IngestionEnded(*ticket); });
    doings_.push_back(std::move(doing));
  }

  // Told when it has come; until it is counted the family passes through.
  void IngestUnannounced() {
    const auto file = NewFile();
    for (uint64_t i = random_.Uniform(60) + 1; i > 0; --i) live_[file.number].insert(RandomKey());
    tree_->families().AddBypassReasons(kFamily, kIngestion);
    ++unannounced_;
  }

  void DropFile() {
    const std::vector<FileNumber> inputs = ChooseInputs();
    if (inputs.empty()) return;
    live_.erase(inputs.front());
    Delete({inputs.front()});
  }

  void Damage() {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      files.push_back(entry.path());
    }
    if (files.empty()) return;
    const auto& path = files[random_.Uniform(files.size())];
    if (random_.OneIn(2)) {
      std::filesystem::remove(path);
      return;
    }
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(random_.Uniform(std::filesystem::file_size(path))));
    file.put(static_cast<char>(random_()));
  }

  void Step(bool may_reconcile) {
    const uint64_t choice = random_.Uniform(40);
    if (choice < 12) {
      for (int i = 0; i < 6; ++i) Put(RandomKey());
    } else if (choice < 14) {
      Flush();
    } else if (choice < 16) {
      Compact();
    } else if (choice < 17) {
      Ingest();
    } else if (choice < 18 && random_.OneIn(3)) {
      DropFile();
    } else if (choice < 18 && random_.OneIn(2) && !HasFaults()) {
      IngestUnannounced();
    } else if (choice < 20 && may_reconcile) {
      ReconcileAll();
    } else if (choice < 21 && options_.damages) {
      Damage();
    } else if (!doings_.empty()) {
      StepOf(random_.Uniform(doings_.size()));
    }
  }

  void StepOf(size_t at) {
    const auto step = std::move(doings_[at].front());
    doings_[at].pop_front();
    if (doings_[at].empty()) doings_.erase(doings_.begin() + static_cast<long>(at));
    step();
  }

  // Other steps of the test run while the live files are listed.
  std::vector<FileNumber> LiveFiles() {
    for (uint64_t i = random_.Uniform(4); i > 0; --i) Step(false);
    std::vector<FileNumber> numbers;
    for (const auto& [number, keys] : live_) numbers.push_back(number);
    for (uint64_t i = random_.Uniform(4); i > 0; --i) Step(false);
    Check();
    return numbers;
  }

  void CountUnknown() {
    const uint64_t unannounced = unannounced_;
    tree_->BeginCounting();
    while (true) {
      std::vector<TreeFilter::File> unknown;
      for (const FileNumber number : LiveFiles()) {
        const TreeFilter::File file = {
            .number = number, .family = kFamily, .identity = identities_[number]};
        if (!tree_->Covers(file)) unknown.push_back(file);
      }
      if (unknown.empty()) break;
      std::map<FileNumber, Keys> contents;  // files that are open can be read when they are gone
      for (const auto& file : unknown) {
        if (const auto at = live_.find(file.number); at != live_.end()) {
          contents[file.number] = at->second;
        }
      }
      for (const auto& file : tree_->CountFromKeyFiles(unknown)) {
        Step(false);
        const auto at = contents.find(file.number);
        if (at != contents.end()) tree_->CountFromHashes(file, HashesOf(at->second));
      }
    }
    tree_->EndCounting();
    counting_ = false;
    if (unannounced == unannounced_) tree_->families().ClearBypassReasons(kFamily, kIngestion);
    Check();
  }

  void ReconcileAll() {
    if (counting_ || (tree_->families().BypassReasonsOf(kFamily) & kIngestion) != 0) CountUnknown();
    if (!tree_->Reconcile([this] { return LiveFiles(); }).empty()) CountUnknown();
    Check();
    const TreeFilter::Figures figures = tree_->figures();
    EXPECT_TRUE(figures.filter.missed == 0 || HasFaults());
    if (!options_.damages && !HasFaults()) {
      EXPECT_TRUE(tree_->IsExact());
    }
  }

  bool HasFaults() const {
    return std::ranges::any_of(kFaults,
                               [this](const auto& fault) { return options_.faults.*fault.second; });
  }

  void Check() {
    const auto check = [this](const Keys& keys) {
      for (const std::string& key : keys) missed_ += !tree_->MayContain(kFamily, key);
    };
    for (const auto& [number, keys] : live_) check(keys);
    for (const auto& memtable : memtables_) check(memtable->keys);
    denied_ += !tree_->MayContain(kFamily, "absent" + std::to_string(random_()));
  }

  const Options options_;
  Random random_;
  const std::string directory_;
  std::unique_ptr<TreeFilter> tree_;
  bool counting_ = true;
  uint64_t unannounced_ = 0;
  std::map<FileNumber, Keys> live_;
  std::map<FileNumber, FileIdentity> identities_;
  std::set<FileNumber> busy_;
  std::vector<std::shared_ptr<Memtable>> memtables_;
  std::vector<Doing> doings_;
  FileNumber next_number_ = 1;
  int next_job_ = 1;
  uint64_t missed_ = 0;
  uint64_t denied_ = 0;
};

constexpr int kSteps = 700;

TEST(TreeFilterTest, MissesNoKeyUnderAnyOrderOfEventsAndIsExact) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world({.seed = seed});
    world.Run(kSteps);
    world.Finish();
    ASSERT_EQ(world.missed(), 0u);
    EXPECT_GT(world.denied(), 100u);
    const TreeFilter::Figures figures = world.tree().figures();
    EXPECT_EQ(figures.unreconciled, 0u);
    EXPECT_EQ(figures.stale, 0u);
    EXPECT_TRUE(world.tree().IsExact());
  }
}

TEST(TreeFilterTest, MissesNoKeyWhenKeyFilesAreLostAndProcessesAre) {
  for (uint64_t seed = 13; seed <= 14; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world({.seed = seed, .damages = seed % 2 == 0, .restarts = true});
    world.Run(kSteps);
    world.Finish();
    ASSERT_EQ(world.missed(), 0u);
    EXPECT_GT(world.denied(), 10u);
  }
}

TEST(TreeFilterTest, EachRuleIsNeeded) {
  for (const auto& [name, fault] : kFaults) {
    if (name == "filter_before_memtables") continue;  // below
    if (name == "forget_dropped") continue;           // DroppedFamilyTest has it
    uint64_t missed = 0;
    for (uint64_t seed = 1; seed <= 8 && missed == 0; ++seed) {
      Faults faults;
      faults.*fault = true;
      World faulty({.seed = 100 + seed, .faults = faults});
      faulty.Run(kSteps);
      missed += faulty.missed();
    }
    EXPECT_GT(missed, 0u) << name;
  }
}

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

// Without a directory to write to, everything is counted at once, and nothing fails.
TEST(TreeFilterTest, WithoutKeyFilesNoKeyIsMissed) {
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
TEST(TreeFilterTest, DamagedSectionsMakeNoShardWithoutTheirKeys) {
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
TEST(TreeFilterTest, AFileThatIsDeletedWhileItIsCountedLeavesAgain) {
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
TEST(TreeFilterTest, SettlingMakesHalfEmptyShardsAnew) {
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

// A file whose key file is lost leaves its copies behind; as soon as the keys of all others are
// known, every shard is made again without them.
TEST(TreeFilterTest, CopiesOfLostKeyFilesLeaveAllShards) {
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

// One output of a compaction has lost its key file when its inputs go: the other one is counted
// once, however many reconciliations follow.
TEST(TreeFilterTest, OutputBesideOneWithoutKeysIsCountedOnce) {
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

// From key files, and from hashes when it knows how many come: shards are made once, with room
// for all, not trimmed while they are still to be filled, and read by who only reads.
TEST(TreeFilterTest, CountingAnewMakesEachShardOnce) {
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
