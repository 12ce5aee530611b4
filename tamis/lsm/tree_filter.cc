#include "tamis/lsm/tree_filter.h"

#include <algorithm>
#include <utility>

#include "tamis/base/hash.h"
#include "tamis/base/random.h"
#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

constexpr size_t kBatch = 32;

}  // namespace

TreeFilter::TreeFilter(Options options)
    : options_(std::move(options)),
      has_faults_(options_.faults.filter_before_memtables || options_.faults.between_questions),
      families_(&grace_) {}

Result<std::unique_ptr<TreeFilter>> TreeFilter::Create(Options options) {
  std::unique_ptr<TreeFilter> tree(new TreeFilter(std::move(options)));
  TAMIS_ASSIGN_OR_RETURN(
      tree->filter_,
      SharedQuotientFilter::Create(tree->options_.fpr, &tree->grace_, tree->options_.shard_keys));
  const Options& made = tree->options_;
  tree->key_files_ = KeyFileDirectory::Open(made.files, made.directory, made.writes_files);
  tree->seed_ =
      made.seed.has_value() ? *made.seed : tree->key_files_->FindSeed().value_or(SeedFromSystem());
  tree->writer_ = std::make_unique<FilterWriter>(tree->filter_.get(), &tree->ledger_, &tree->mutex_,
                                                 tree->key_files_.get(), tree->seed_, made.faults);
  return tree;
}

// --- questions ---------------------------------------------------------------------------------

uint64_t TreeFilter::HashOf(uint32_t family, std::string_view key) const {
  return Hash(key, seed_ + family * 0x9e3779b97f4a7c15u) & kKeptBits;
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
  if (count == 0 || families_.BypassReasonsOf(family) != 0) return;
  counters_[GracePeriod::Mine()].false_passes.fetch_add(count, std::memory_order_relaxed);
}

// A key is in a memtable's filter or counted, at any time, so the memtables are asked first.
template <size_t kMost>
size_t TreeFilter::Ask(const MemtableFilters& memtables, std::span<const uint64_t> hashes,
                       bool* answers) const {
  const size_t size = kMost == 1 ? 1 : hashes.size();
  for (size_t i = 0; i < size; ++i) {
    filter_->Prefetch(hashes[i]);
    // One alone is asked as soon as it could be fetched.
    if (kMost > 1) memtables.Prefetch(hashes[i]);
  }
  const auto ask_memtables = [&](size_t i) { return memtables.MayContain(hashes[i]); };
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
  if (const MemtableFilters* const memtables = families_.Answering(family)) {
    const uint64_t hash = HashOf(family, key);
    excluded = Ask<1>(*memtables, {&hash, 1}, &answer);
  }
  Note(1, excluded);
  return answer;
}

void TreeFilter::MayContain(uint32_t family, std::span<const std::string_view> keys,
                            std::span<bool> answers) const {
  size_t excluded = 0;
  const GracePeriod::Guard guard = grace_.Enter();
  if (const MemtableFilters* const memtables = families_.Answering(family)) {
    for (size_t begin = 0; begin < keys.size(); begin += kBatch) {
      const size_t size = std::min(kBatch, keys.size() - begin);
      uint64_t hashes[kBatch];
      for (size_t i = 0; i < size; ++i) hashes[i] = HashOf(family, keys[begin + i]);
      excluded += Ask<kBatch>(*memtables, {hashes, size}, &answers[begin]);
    }
  } else {
    std::ranges::fill(answers, true);
  }
  Note(keys.size(), excluded);
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

void TreeFilter::FileCreated(const File& file, std::vector<uint64_t> hashes,
                             std::optional<int> compaction) {
  const bool has_keys = writer_->WriteKeyFile(file, &hashes);
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
  const std::lock_guard writer(writer_->lock());
  writer_->Count(file, hashes, has_keys, /*is_family_certain=*/true);
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
    const bool has_keys = writer_->WriteKeyFile(counted, &hashes);
    const std::lock_guard writer(writer_->lock());
    writer_->Count(counted, hashes, has_keys, /*is_family_certain=*/true);
  } catch (const std::bad_alloc&) {
    IngestionEnded(counted.number);
    throw;
  }
  return counted.number;
}

bool TreeFilter::FileIngested(Ticket ticket, FileNumber number) {
  // While writer_ is held, only a reconciliation reads the key files of counted files, and never
  // that of a ticket that has not ended.
  const std::lock_guard writer(writer_->lock());
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
  const std::lock_guard reconciling(reconciling_);
  writer_->ApplyReconciliation();
  FileLedger::Reconciliation reconciliation;
  SharedQuotientFilter::Counts counts{};
  uint64_t coming = 0;
  for (const File& file : Uncounted(files)) {
    const auto keys = writer_->OpenKeyFile(file);
    // A file without a name could be another one than that whose keys are there.
    if (!keys.ok() || file.identity == FileIdentity{}) {
      failed.push_back(file);
      continue;
    }
    for (uint32_t i = 0; i < KeyFile::kSections; ++i) counts[i] += keys->CountIn(i);
    coming += keys->count();
    reconciliation.added.insert(file.number);
    key_files_->Use(file.number);
    const std::lock_guard lock(mutex_);
    ledger_.Enter(file, true, keys->count(), /*is_family_certain=*/false);
    ledger_.At(file.number).counted = false;
  }
  if (reconciliation.added.empty()) return failed;
  {
    const std::lock_guard writer(writer_->lock());
    if (coming >= filter_->figures().keys) {
      writer_->MakeRoom(counts);
    }
    const std::lock_guard lock(mutex_);
    writer_->Begin(reconciliation);
  }
  writer_->ApplyReconciliation();
  const std::lock_guard lock(mutex_);
  for (const File& file : files) {
    const FileLedger::Entry* const at = ledger_.Find(file.number);
    if (at == nullptr || at->counted || at->has_keys) continue;
    if (!reconciliation.added.contains(file.number)) continue;
    failed.push_back(file);
    ledger_.Withdraw(file.number);
  }
  return failed;
}

void TreeFilter::MakeRoom(uint64_t keys) {
  const std::lock_guard reconciling(reconciling_);
  const std::lock_guard writer(writer_->lock());
  // For a few more keys all the others are not read again.
  if (keys == 0 || keys < filter_->figures().keys) return;
  SharedQuotientFilter::Counts counts;
  counts.fill(keys / counts.size() + 1);
  writer_->MakeRoom(counts);
}

void TreeFilter::CountFromHashes(const File& file, std::vector<uint64_t> hashes) {
  // The key file of one that has been counted meanwhile stays as it is.
  if (Uncounted({file}).empty()) return;
  const bool has_keys = writer_->WriteKeyFile(file, &hashes);
  const std::lock_guard reconciling(reconciling_);
  const std::lock_guard writer(writer_->lock());
  if (!Uncounted({file}).empty())
    writer_->Count(file, hashes, has_keys, /*is_family_certain=*/false);
}

void TreeFilter::EndCounting() {
  {
    const std::lock_guard writer(writer_->lock());
    writer_->EndRoom();
  }
  key_files_->DeleteLeftovers();
  const std::lock_guard lock(mutex_);
  ledger_.EndCounting();
  families_.EndCounting();
}

// --- reconciliation ------------------------------------------------------------------------------

bool TreeFilter::HasUnreconciled() const {
  const std::lock_guard lock(mutex_);
  return !ledger_.removed().empty() || !late_.empty();
}

bool TreeFilter::IsPartlyDeleted() const {
  const std::lock_guard lock(mutex_);
  return ledger_.IsPartlyDeleted();
}

std::vector<TreeFilter::FileNumber> TreeFilter::Reconcile(
    const std::function<std::vector<FileNumber>()>& live_files) {
  const std::lock_guard reconciling(reconciling_);
  grace_.Collect();
  writer_->ApplyReconciliation();
  std::vector<std::vector<uint64_t>> late;
  std::set<FileNumber> removed;
  {
    const std::lock_guard lock(mutex_);
    if (IsCounting()) return {};
    late.swap(late_);
    removed = ledger_.removed();
  }
  for (const std::vector<uint64_t>& hashes : late) {
    const std::lock_guard writer(writer_->lock());
    writer_->CountLate(hashes);
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
    writer_->Begin(ledger_.Choose(removed));
  }
  writer_->ApplyReconciliation();
  return {};
}

TreeFilter::Figures TreeFilter::figures() const {
  Figures figures;
  for (const Counters& counters : counters_) {
    figures.asked += counters.asked.load(std::memory_order_relaxed);
    figures.excluded += counters.excluded.load(std::memory_order_relaxed);
    figures.false_passes += counters.false_passes.load(std::memory_order_relaxed);
  }
  figures.memtable_bytes = families_.MemtableBytes();
  figures.retired = grace_.retired();
  figures.disturbed = filter_->disturbed();
  const std::lock_guard writer(writer_->lock());
  figures.filter = filter_->figures();
  const std::lock_guard lock(mutex_);
  figures.files = ledger_.size();
  figures.unreconciled = ledger_.removed().size();
  figures.stale = ledger_.stale();
  figures.touched = writer_->touched();
  figures.compared = writer_->compared();
  figures.walked = ledger_.walked();
  figures.written = key_files_->written();
  figures.unwritten = key_files_->unwritten();
  return figures;
}

bool TreeFilter::IsExact() {
  const std::lock_guard reconciling(reconciling_);
  const std::lock_guard writer(writer_->lock());
  return writer_->IsExact();
}

}  // namespace tamis::lsm
