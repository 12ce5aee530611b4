#include "tamis/lsm/tree_filter.h"

#include <algorithm>
#include <utility>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

constexpr double kSpareAtStart = 0.03;
constexpr uint64_t kHashesAtOnce = 1 << 20;  // that settling holds in memory
constexpr size_t kBatch = 32;

}  // namespace

std::string DoubtNames(Doubts doubts) {
  static constexpr std::pair<Doubts, std::string_view> kNames[] = {
      {kCounting, "its files are being counted"},
      {kNotShown, "its handle was not shown"},
      {kMemtables, "its memtables are not watched"},
      {kComparator, "its comparator is not bytewise"},
      {kTimestamps, "its keys carry timestamps"},
      {kIngestion, "files are coming in"},
      {kUnreadable, "a file of it cannot be counted"},
      {kSecondary, "another process writes it"},
      {kDropped, "it was dropped, and its name is another one's"},
      {kBypass, "a batch bypassed its memtables"},
      {kNoMemory, "memory ran out when keys of it were to be noted"},
  };
  std::string names;
  for (const auto& [doubt, name] : kNames) {
    if ((doubts & doubt) == 0) continue;
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

TreeFilter::TreeFilter(Options options)
    : options_(std::move(options)),
      has_faults_(options_.faults.filter_before_memtables || options_.faults.between_questions) {
  for (std::atomic<Doubts>& doubts : doubts_) doubts = kNotShown | kMemtables;
}

Result<std::unique_ptr<TreeFilter>> TreeFilter::Create(Options options) {
  std::unique_ptr<TreeFilter> tree(new TreeFilter(std::move(options)));
  TAMIS_ASSIGN_OR_RETURN(
      tree->filter_,
      SharedQuotientFilter::Create(tree->options_.fpr, &tree->grace_, tree->options_.shard_keys));
  const Options& made = tree->options_;
  tree->key_files_ = KeyFileDirectory::Open(made.files, made.directory, made.writes_files);
  tree->seed_ =
      made.seed.has_value() ? *made.seed : tree->key_files_->FindSeed().value_or(SeedFromSystem());
  return tree;
}

TreeFilter::~TreeFilter() {
  for (std::atomic<Family*>& family : families_) delete family.load();
}

// --- questions ---------------------------------------------------------------------------------

uint64_t TreeFilter::HashOf(uint32_t family, std::string_view key) const {
  return Hash(key, seed_ + family * 0x9e3779b97f4a7c15u) & kKeptBits;
}

const TreeFilter::Family* TreeFilter::FamilyOf(uint32_t id) const {
  return id < kMaxFamilies ? families_[id].load(std::memory_order_acquire) : nullptr;
}

const TreeFilter::Family* TreeFilter::FamilyThatAnswers(uint32_t id) const {
  const Family* const family = FamilyOf(id);
  const bool answers = family != nullptr && !counting_.load(std::memory_order_acquire) &&
                       doubts_[id].load(std::memory_order_acquire) == 0;
  return answers ? family : nullptr;
}

void TreeFilter::Note(uint64_t asked, uint64_t excluded) const {
  Counters& counters = counters_[GracePeriod::Mine()];
  // Threads that share a counter may overwrite what the other one has added.
  const auto add = [](std::atomic<uint64_t>& to, uint64_t n) {
    to.store(to.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  };
  add(counters.asked, asked);
  add(counters.excluded, excluded);
}

void TreeFilter::NoteFalsePasses(uint32_t family, uint64_t count) const {
  // A family that passes through lets nothing pass falsely.
  if (count == 0 || DoubtsOf(family) != 0) return;
  counters_[GracePeriod::Mine()].false_passes.fetch_add(count, std::memory_order_relaxed);
}

// A key is in a memtable's filter or counted, at any time, so the memtables are asked first.
template <size_t kMost>
size_t TreeFilter::Ask(const Family& family, std::span<const uint64_t> hashes,
                       bool* answers) const {
  const size_t size = kMost == 1 ? 1 : hashes.size();
  for (size_t i = 0; i < size; ++i) {
    filter_->Prefetch(hashes[i]);
    // One alone is asked as soon as it could be fetched.
    if (kMost > 1) family.memtables.Prefetch(hashes[i]);
  }
  const auto ask_memtables = [&](size_t i) { return family.memtables.MayContain(hashes[i]); };
  const auto ask_filter = [&](size_t i) { return filter_->MayContain(hashes[i]); };
  if (!has_faults_) [[likely]] {
    for (size_t i = 0; i < size; ++i) answers[i] = ask_memtables(i);
    for (size_t i = 0; i < size; ++i) answers[i] = answers[i] || ask_filter(i);
  } else {
    const Faults& faults = options_.faults;
    const bool in_order = !faults.filter_before_memtables;
    for (size_t i = 0; i < size; ++i) answers[i] = in_order ? ask_memtables(i) : ask_filter(i);
    if (faults.between_questions) faults.between_questions();
    for (size_t i = 0; i < size; ++i) {
      answers[i] = answers[i] || (in_order ? ask_filter(i) : ask_memtables(i));
    }
  }
  size_t excluded = 0;
  for (size_t i = 0; i < size; ++i) excluded += !answers[i];
  return excluded;
}

bool TreeFilter::MayContain(uint32_t family, std::string_view key) const {
  bool answer = true;
  size_t excluded = 0;
  const GracePeriod::Guard guard = grace_.Enter();
  if (const Family* const asked = FamilyThatAnswers(family)) {
    const uint64_t hash = HashOf(family, key);
    excluded = Ask<1>(*asked, {&hash, 1}, &answer);
  }
  Note(1, excluded);
  return answer;
}

void TreeFilter::MayContain(uint32_t family, std::span<const std::string_view> keys,
                            std::span<bool> answers) const {
  size_t excluded = 0;
  const GracePeriod::Guard guard = grace_.Enter();
  if (const Family* const asked = FamilyThatAnswers(family)) {
    for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
      const size_t size = std::min(kBatch, keys.size() - begin);
      uint64_t hashes[kBatch];
      for (size_t i = 0; i < size; ++i) hashes[i] = HashOf(family, keys[begin + i]);
      excluded += Ask<kBatch>(*asked, {hashes, size}, &answers[begin]);
    }
  } else {
    std::ranges::fill(answers, true);
  }
  Note(keys.size(), excluded);
}

// --- column families ---------------------------------------------------------------------------

TreeFilter::Family* TreeFilter::MakeFamily(uint32_t id) {
  if (id >= kMaxFamilies) return nullptr;
  const std::lock_guard lock(mutex_);
  Family* family = families_[id].load(std::memory_order_relaxed);
  if (family == nullptr) {
    family = new Family(&grace_);
    families_[id].store(family, std::memory_order_release);
  }
  return family;
}

void TreeFilter::AddDoubts(uint32_t family, Doubts doubts) noexcept {
  if (family >= kMaxFamilies) return;
  // Waits even if the family had these doubts: the thread that added them may be waiting still.
  doubts_[family].fetch_or(doubts);
  // If the system refuses the wait, a reader that asked before may still be at it, but very
  // unlikely.
  (void)grace_.Wait();
}

void TreeFilter::ClearDoubts(uint32_t family, Doubts doubts) noexcept {
  if (family < kMaxFamilies) doubts_[family].fetch_and(~doubts);
}

Doubts TreeFilter::DoubtsOf(uint32_t family) const {
  const Doubts doubts = family < kMaxFamilies ? doubts_[family].load() : kNotShown | kMemtables;
  return doubts | (IsCounting() ? kCounting : 0);
}

std::shared_ptr<MemtableFilter> TreeFilter::MemtableMade(uint32_t family, uint64_t guess) {
  Family* const made = MakeFamily(family);
  if (made == nullptr) return nullptr;
  auto filter = made->memtables.Begin(guess);
  ClearDoubts(family, kMemtables);
  return filter;
}

void TreeFilter::MemtableGone(uint32_t family, const MemtableFilter* filter) noexcept {
  if (family >= kMaxFamilies) return;
  if (Family* const made = families_[family].load(std::memory_order_acquire)) {
    made->memtables.End(filter);
  }
}

uint64_t TreeFilter::MemtableCount(uint32_t family) const {
  if (family >= kMaxFamilies) return 0;
  const Family* const made = families_[family].load(std::memory_order_acquire);
  return made == nullptr ? 0 : made->memtables.Count();
}

// --- key files ---------------------------------------------------------------------------------

KeyFileHeader TreeFilter::HeaderOf(const File& file) const {
  return {.family = file.family, .identity = file.identity, .seed = seed_};
}

Result<KeyFile> TreeFilter::OpenKeyFile(const File& file) const {
  return key_files_->Read(file.number, HeaderOf(file));
}

bool TreeFilter::WriteKeyFile(const File& file, std::vector<uint64_t>* hashes) {
  SortDistinctHashes(hashes);
  return key_files_->Write(file.number, HeaderOf(file), *hashes);
}

std::optional<std::vector<TreeFilter::File>> TreeFilter::CountedFiles(bool settled) const {
  const std::lock_guard lock(mutex_);
  return ledger_.Counted(settled ? &*settlement_ : nullptr);
}

SharedQuotientFilter::Keys TreeFilter::Keys() {
  auto opened = std::make_shared<OpenedFiles>();
  return [this, opened](uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) {
    uint32_t done = 0;
    {
      const std::lock_guard lock(mutex_);
      if (settlement_.has_value()) done = settlement_->done;
    }
    const uint32_t middle = std::clamp(done, first, last);
    return (middle == first || AppendKeys(true, first, middle, opened.get(), hashes)) &&
           (middle == last || AppendKeys(false, middle, last, opened.get(), hashes));
  };
}

bool TreeFilter::AppendKeys(bool settled, uint32_t first, uint32_t last, OpenedFiles* opened,
                            std::vector<uint64_t>* hashes) {
  const auto files = CountedFiles(settled);
  if (!files.has_value()) return false;
  std::vector<uint64_t> read;
  for (const File& file : *files) {
    auto at = opened->find(file.number);
    if (at == opened->end()) {
      auto keys = OpenKeyFile(file);
      if (!keys.ok()) {
        MarkBad(file.number);
        return false;
      }
      at = opened->emplace(file.number, *std::move(keys)).first;
    }
    if (!at->second.Append(first, last, &read).ok()) {
      MarkBad(file.number);
      return false;
    }
  }
  SortHashes(&read);
  hashes->insert(hashes->end(), read.begin(), read.end());
  return true;
}

void TreeFilter::MarkBad(FileNumber number) {
  const std::lock_guard lock(mutex_);
  ledger_.MarkBad(number);
}

// --- files -------------------------------------------------------------------------------------

void TreeFilter::CompactionBegan(int job, std::vector<FileNumber> inputs) {
  auto shared = std::make_shared<const std::vector<FileNumber>>(std::move(inputs));
  const std::lock_guard lock(mutex_);
  ledger_.CompactionBegan(job, std::move(shared));
}

void TreeFilter::CompactionEnded(int job) {
  const std::lock_guard lock(mutex_);
  ledger_.CompactionEnded(job);
}

void TreeFilter::Count(const File& file, std::span<const uint64_t> hashes, bool has_keys,
                       bool is_family_certain) {
  filter_->Reserve(hashes, Keys());
  filter_->Apply(hashes, {});
  try {
    const std::lock_guard lock(mutex_);
    ledger_.Enter(file, has_keys, hashes.size(), is_family_certain);
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    ledger_.AddStale(hashes.size());  // the copies of a file that the ledger lacks never leave
    throw;
  }
  Trim();
}

// Shards that are still to be filled are not half empty. Without memory they stay as large as they
// are.
void TreeFilter::Trim() {
  if (awaits_keys_) return;
  try {
    filter_->Trim(Keys());
  } catch (const std::bad_alloc&) {
  }
}

void TreeFilter::FileCreated(const File& file, std::vector<uint64_t> hashes,
                             std::optional<int> compaction) {
  const bool has_keys = WriteKeyFile(file, &hashes);
  // The inputs of a compaction that ends before everything is counted may not be counted yet.
  if (compaction.has_value() && has_keys) {
    const std::lock_guard lock(mutex_);
    if (!IsCounting()) {
      ledger_.Put(file.number, {.file = file,
                                .counted = false,
                                .has_keys = true,
                                .keys = hashes.size(),
                                .inputs = ledger_.InputsOf(*compaction),
                                .is_family_certain = true});
      return;
    }
  }
  if (options_.faults.count_after_install && !IsCounting()) {
    const std::lock_guard lock(mutex_);
    ledger_.Put(file.number,
                {.file = file, .counted = true, .has_keys = has_keys, .keys = hashes.size()});
    late_.push_back(std::move(hashes));
    return;
  }
  const std::lock_guard writer(writer_);
  Count(file, hashes, has_keys, /*is_family_certain=*/true);
}

void TreeFilter::FileDeleted(FileNumber number) {
  const std::lock_guard lock(mutex_);
  ledger_.Delete(number);
}

TreeFilter::Ticket TreeFilter::IngestionBegan(const File& file, std::vector<uint64_t> hashes) {
  File counted = file;
  {
    const std::lock_guard lock(mutex_);
    counted.number = ledger_.NewTicket();
  }
  if (options_.faults.ignore_ingestion) return counted.number;
  try {
    const bool has_keys = WriteKeyFile(counted, &hashes);
    const std::lock_guard writer(writer_);
    Count(counted, hashes, has_keys, /*is_family_certain=*/true);
  } catch (const std::bad_alloc&) {
    IngestionEnded(counted.number);
    throw;
  }
  return counted.number;
}

bool TreeFilter::FileIngested(Ticket ticket, FileNumber number) {
  // While writer_ is held, only a settling reads the key files of counted files, and never that of
  // a ticket that has not ended.
  const std::lock_guard writer(writer_);
  const std::lock_guard lock(mutex_);
  FileLedger::Entry* const at = ledger_.Find(ticket);
  if (ledger_.Has(number)) return true;  // found meanwhile: the ticket's copies leave at its end
  if (at == nullptr) {
    if (!options_.faults.ignore_ingestion) return false;
    ledger_.Put(number, {.file = {.number = number}, .counted = true});
    return true;
  }
  FileLedger::Entry entry = std::move(*at);
  ledger_.Erase(ticket);
  entry.file.number = number;
  key_files_->Use(number);
  if (entry.has_keys) entry.has_keys = key_files_->Rename(ticket, number);
  ledger_.Put(number, std::move(entry));
  ledger_.DeleteIfGone(number);
  return true;
}

void TreeFilter::IngestionEnded(Ticket ticket) noexcept {
  const std::lock_guard lock(mutex_);
  ledger_.EndTicket(ticket);
}

// --- counting ----------------------------------------------------------------------------------

void TreeFilter::BeginCounting() {
  const std::lock_guard lock(mutex_);
  ledger_.BeginCounting();
}

std::vector<TreeFilter::File> TreeFilter::Uncovered(std::vector<File> files) const {
  const std::lock_guard lock(mutex_);
  return ledger_.Uncovered(std::move(files));
}

std::vector<TreeFilter::File> TreeFilter::Uncounted(std::vector<File> files) const {
  files = Uncovered(std::move(files));
  const std::lock_guard lock(mutex_);
  std::erase_if(files, [this](const File& file) { return ledger_.IsDeleted(file.number); });
  return files;
}

std::vector<TreeFilter::File> TreeFilter::CountFromKeyFiles(const std::vector<File>& files) {
  std::vector<File> failed;
  const std::lock_guard settling(settling_);
  ApplySettlement();
  FileLedger::Settlement settlement;
  SharedQuotientFilter::Counts counts{};
  uint64_t coming = 0;
  for (const File& file : Uncounted(files)) {
    const auto keys = OpenKeyFile(file);
    // A file without a name could be another one than that whose keys are there.
    if (!keys.ok() || file.identity == FileIdentity{}) {
      failed.push_back(file);
      continue;
    }
    for (uint32_t i = 0; i < KeyFile::kSections; ++i) counts[i] += keys->CountIn(i);
    coming += keys->count();
    settlement.added.insert(file.number);
    key_files_->Use(file.number);
    const std::lock_guard lock(mutex_);
    ledger_.Enter(file, true, keys->count(), /*is_family_certain=*/false);
    ledger_.At(file.number).counted = false;
  }
  if (settlement.added.empty()) return failed;
  {
    const std::lock_guard writer(writer_);
    if (coming >= filter_->figures().keys) {
      awaits_keys_ = filter_->MakeRoom(counts, Keys(), kSpareAtStart);
    }
    const std::lock_guard lock(mutex_);
    settlement_ = settlement;
  }
  ApplySettlement();
  const std::lock_guard lock(mutex_);
  for (const File& file : files) {
    const FileLedger::Entry* const at = ledger_.Find(file.number);
    if (at == nullptr || at->counted || at->has_keys) continue;
    if (!settlement.added.contains(file.number)) continue;
    failed.push_back(file);
    ledger_.Withdraw(file.number);
  }
  return failed;
}

void TreeFilter::MakeRoom(uint64_t keys) {
  const std::lock_guard settling(settling_);
  const std::lock_guard writer(writer_);
  // For a few more keys all the others are not read again.
  if (keys == 0 || keys < filter_->figures().keys) return;
  SharedQuotientFilter::Counts counts;
  counts.fill(keys / counts.size() + 1);
  awaits_keys_ = filter_->MakeRoom(counts, Keys(), kSpareAtStart);
}

void TreeFilter::CountFromHashes(const File& file, std::vector<uint64_t> hashes) {
  // The key file of one that has been counted meanwhile stays as it is.
  if (Uncounted({file}).empty()) return;
  const bool has_keys = WriteKeyFile(file, &hashes);
  const std::lock_guard settling(settling_);
  const std::lock_guard writer(writer_);
  if (!Uncounted({file}).empty()) Count(file, hashes, has_keys, /*is_family_certain=*/false);
}

void TreeFilter::EndCounting() {
  {
    const std::lock_guard writer(writer_);
    if (std::exchange(awaits_keys_, false)) Trim();
  }
  key_files_->DeleteLeftovers();
  const std::lock_guard lock(mutex_);
  ledger_.EndCounting();
  counting_.store(false, std::memory_order_release);
}

// --- settling ----------------------------------------------------------------------------------

bool TreeFilter::HasUnsettled() const {
  const std::lock_guard lock(mutex_);
  return !ledger_.removed().empty() || !late_.empty();
}

bool TreeFilter::IsPartlyDeleted() const {
  const std::lock_guard lock(mutex_);
  return ledger_.IsPartlyDeleted();
}

std::vector<TreeFilter::FileNumber> TreeFilter::Reconcile(
    const std::function<std::vector<FileNumber>()>& live_files) {
  const std::lock_guard settling(settling_);
  grace_.Collect();
  ApplySettlement();
  std::vector<std::vector<uint64_t>> late;
  std::set<FileNumber> removed;
  {
    const std::lock_guard lock(mutex_);
    if (IsCounting()) return {};
    late.swap(late_);
    removed = ledger_.removed();
  }
  for (const std::vector<uint64_t>& hashes : late) {
    const std::lock_guard writer(writer_);
    filter_->Reserve(hashes, [](uint32_t, uint32_t, std::vector<uint64_t>*) { return false; });
    filter_->Apply(hashes, {});
  }
  if (removed.empty()) return {};
  // Asked after `removed` was chosen: what took the place of a removed file was installed before
  // that was deleted, so it is among the live ones, or was in turn replaced by some of these.
  const std::vector<FileNumber> live = live_files();
  {
    const std::lock_guard lock(mutex_);
    std::vector<FileNumber> unknown;
    for (const FileNumber number : live) {
      if (!ledger_.Has(number)) unknown.push_back(number);
    }
    if (!unknown.empty() && !options_.faults.remove_beside_unknown) return unknown;
    settlement_ = ledger_.Choose(removed);
  }
  ApplySettlement();
  return {};
}

void TreeFilter::ApplySettlement() {
  if (!settlement_.has_value()) return;
  const FileLedger::Settlement& settlement = *settlement_;
  struct Source {
    FileNumber number;
    std::optional<KeyFile> keys;  // none: not known
  };
  uint64_t hashes = 0;
  const auto open = [&](const std::set<FileNumber>& numbers) {
    std::vector<Source> sources;
    for (const FileNumber number : numbers) {
      FileLedger::Entry entry;
      {
        const std::lock_guard lock(mutex_);
        entry = ledger_.At(number);
      }
      hashes += entry.keys;
      sources.push_back({number, std::nullopt});
      if (!entry.has_keys) continue;
      auto keys = OpenKeyFile(entry.file);
      if (keys.ok()) {
        sources.back().keys.emplace(*std::move(keys));
      } else {
        MarkBad(number);
      }
    }
    return sources;
  };
  const std::vector<Source> removed = open(settlement.removed);
  const std::vector<Source> added =
      open(options_.faults.forget_outputs ? std::set<FileNumber>() : settlement.added);
  // True when all of them could be read.
  const auto read = [this](std::span<const Source> sources, uint32_t first, uint32_t last,
                           std::vector<uint64_t>* out) {
    bool all = true;
    for (const Source& source : sources) {
      if (source.keys.has_value() && source.keys->Append(first, last, out).ok()) continue;
      MarkBad(source.number);
      all = false;
    }
    SortHashes(out);
    return all;
  };
  const uint64_t pieces = std::clamp<uint64_t>(hashes / kHashesAtOnce + 1, 1, KeyFile::kSections);
  const auto step = static_cast<uint32_t>(KeyFile::kSections / pieces);
  for (uint32_t first = settlement.done; first < KeyFile::kSections; first = settlement.done) {
    const uint32_t last = std::min(first + step, KeyFile::kSections);
    std::vector<uint64_t> before;
    std::vector<std::vector<uint64_t>> afters;
    uint64_t kept = 0;
    HashDifference difference;
    if (removed.empty()) {
      // Nothing is compared, so the hashes of each file come as they are.
      for (const Source& source : added) read({&source, 1}, first, last, &afters.emplace_back());
    } else {
      std::vector<uint64_t>& after = afters.emplace_back();
      read(removed, first, last, &before);
      if (!read(added, first, last, &after)) {
        // The keys of one of them are not known, but that they are among those of the removed:
        // these stay, and the others come beside them, so that each can leave again.
        kept = before.size();
        before.clear();
      }
      difference = DifferenceOf(before, after);
    }
    const std::span<const std::vector<uint64_t>> coming =
        removed.empty() ? std::span<const std::vector<uint64_t>>(afters)
                        : std::span<const std::vector<uint64_t>>(&difference.added, 1);
    const std::lock_guard writer(writer_);
    filter_->ReserveAll(coming, Keys());
    for (const std::vector<uint64_t>& hashes : coming) {
      filter_->Apply(hashes, difference.removed);
    }
    {
      const std::lock_guard lock(mutex_);
      settlement_->done = last;
      ledger_.AddStale(kept);
      touched_ += difference.removed.size();
      for (const std::vector<uint64_t>& hashes : coming) touched_ += hashes.size();
      compared_ += before.size();
      for (const std::vector<uint64_t>& after : afters) compared_ += after.size();
    }
    Trim();
  }
  {
    const std::lock_guard writer(writer_);
    const std::lock_guard lock(mutex_);
    for (const FileNumber number : settlement.added) {
      FileLedger::Entry& entry = ledger_.At(number);
      if (entry.has_keys) {
        entry.counted = true;
        continue;
      }
      // Its keys are covered by copies of other files, but it is not known which. So it joins every
      // settling, and none removes copies, until a file that is made of it is counted in its place.
      entry.inputs = nullptr;
      ledger_.AddStale(entry.keys);
    }
    for (const auto* numbers : {&settlement.removed, &settlement.dropped}) {
      for (const FileNumber number : *numbers) {
        ledger_.Settle(number);
        key_files_->Delete(number);
      }
    }
    settlement_.reset();
  }
  RemoveStale();
}

void TreeFilter::RemoveStale() {
  {
    const std::lock_guard lock(mutex_);
    if (ledger_.stale() == 0) return;
  }
  for (uint32_t section = 0; section < SharedQuotientFilter::kSections;) {
    const std::lock_guard writer(writer_);
    if (section == 0 && !CountedFiles(false).has_value()) return;
    const auto next = filter_->Renew(section, Keys());
    if (!next.has_value()) return;
    section = *next;
  }
  const std::lock_guard lock(mutex_);
  ledger_.ClearStale();
}

TreeFilter::Figures TreeFilter::figures() const {
  Figures figures;
  for (const Counters& counters : counters_) {
    figures.asked += counters.asked.load(std::memory_order_relaxed);
    figures.excluded += counters.excluded.load(std::memory_order_relaxed);
    figures.false_passes += counters.false_passes.load(std::memory_order_relaxed);
  }
  for (const std::atomic<Family*>& family : families_) {
    if (const Family* const made = family.load()) {
      figures.memtable_bytes += made->memtables.size_bytes();
    }
  }
  figures.retired = grace_.retired();
  figures.disturbed = filter_->disturbed();
  const std::lock_guard writer(writer_);
  figures.filter = filter_->figures();
  const std::lock_guard lock(mutex_);
  figures.files = ledger_.size();
  figures.unsettled = ledger_.removed().size();
  figures.stale = ledger_.stale();
  figures.touched = touched_;
  figures.compared = compared_;
  figures.walked = ledger_.walked();
  figures.written = key_files_->written();
  figures.unwritten = key_files_->unwritten();
  return figures;
}

bool TreeFilter::IsExact() {
  const std::lock_guard settling(settling_);
  const std::lock_guard writer(writer_);
  return filter_->IsExactly(Keys());
}

}  // namespace tamis::lsm
