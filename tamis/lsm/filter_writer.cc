#include "tamis/lsm/filter_writer.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "tamis/lsm/sorted_hashes.h"

namespace tamis::lsm {
namespace {

constexpr double kSpareAtStart = 0.03;
constexpr uint64_t kHashesAtOnce = 1 << 20;  // that a reconciliation holds in memory

}  // namespace

KeyFileHeader FilterWriter::HeaderOf(const File& file) const {
  return {.family = file.family, .identity = file.identity, .seed = seed_};
}

Result<KeyFile> FilterWriter::OpenKeyFile(const File& file) const {
  return key_files_.Read(file.number, HeaderOf(file));
}

bool FilterWriter::WriteKeyFile(const File& file, std::vector<uint64_t>* hashes) {
  SortDistinctHashes(hashes);
  return key_files_.Write(file.number, HeaderOf(file), *hashes);
}

std::optional<std::vector<FilterWriter::File>> FilterWriter::CountedFiles(bool reconciled) const {
  const std::lock_guard lock(mutex_);
  return ledger_.Counted(reconciled ? &*reconciliation_ : nullptr);
}

SharedQuotientFilter::Keys FilterWriter::Keys() {
  auto opened = std::make_shared<OpenedFiles>();
  return [this, opened](uint32_t first, uint32_t last, std::vector<uint64_t>* hashes) {
    uint32_t done = 0;
    {
      const std::lock_guard lock(mutex_);
      if (reconciliation_.has_value()) done = reconciliation_->done;
    }
    const uint32_t middle = std::clamp(done, first, last);
    return (middle == first || AppendKeys(true, first, middle, opened.get(), hashes)) &&
           (middle == last || AppendKeys(false, middle, last, opened.get(), hashes));
  };
}

bool FilterWriter::AppendKeys(bool reconciled, uint32_t first, uint32_t last, OpenedFiles* opened,
                              std::vector<uint64_t>* hashes) {
  const auto files = CountedFiles(reconciled);
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

void FilterWriter::MarkBad(FileNumber number) {
  const std::lock_guard lock(mutex_);
  ledger_.MarkBad(number);
}

void FilterWriter::Count(const File& file, std::span<const uint64_t> hashes, bool has_keys,
                         bool is_family_certain) {
  filter_.Reserve(hashes, Keys());
  filter_.Apply(hashes, {});
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
void FilterWriter::Trim() {
  if (awaits_keys_) return;
  try {
    filter_.Trim(Keys());
  } catch (const std::bad_alloc&) {
  }
}

void FilterWriter::CountLate(std::span<const uint64_t> hashes) {
  filter_.Reserve(hashes, [](uint32_t, uint32_t, std::vector<uint64_t>*) { return false; });
  filter_.Apply(hashes, {});
}

void FilterWriter::MakeRoom(const SharedQuotientFilter::Counts& coming) {
  awaits_keys_ = filter_.MakeRoom(coming, Keys(), kSpareAtStart);
}

void FilterWriter::EndRoom() {
  if (std::exchange(awaits_keys_, false)) Trim();
}

void FilterWriter::ApplyReconciliation() {
  if (!reconciliation_.has_value()) return;
  uint64_t hashes = 0;
  const std::vector<Source> removed = Open(reconciliation_->removed, &hashes);
  const std::vector<Source> added =
      Open(faults_.forget_outputs ? std::set<FileNumber>() : reconciliation_->added, &hashes);
  const uint64_t pieces = std::clamp<uint64_t>(hashes / kHashesAtOnce + 1, 1, KeyFile::kSections);
  const auto step = static_cast<uint32_t>(KeyFile::kSections / pieces);
  for (uint32_t first = reconciliation_->done; first < KeyFile::kSections;
       first = reconciliation_->done) {
    ApplySections(removed, added, first, std::min(first + step, KeyFile::kSections));
  }
  EndReconciliation();
  RemoveStale();
}

std::vector<FilterWriter::Source> FilterWriter::Open(const std::set<FileNumber>& numbers,
                                                     uint64_t* hashes) {
  std::vector<Source> sources;
  for (const FileNumber number : numbers) {
    FileLedger::Entry entry;
    {
      const std::lock_guard lock(mutex_);
      entry = ledger_.At(number);
    }
    *hashes += entry.keys;
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
}

bool FilterWriter::Read(std::span<const Source> sources, uint32_t first, uint32_t last,
                        std::vector<uint64_t>* out) {
  bool all = true;
  for (const Source& source : sources) {
    if (source.keys.has_value() && source.keys->Append(first, last, out).ok()) continue;
    MarkBad(source.number);
    all = false;
  }
  SortHashes(out);
  return all;
}

void FilterWriter::ApplySections(std::span<const Source> removed, std::span<const Source> added,
                                 uint32_t first, uint32_t last) {
  std::vector<uint64_t> before;
  std::vector<std::vector<uint64_t>> afters;
  uint64_t kept = 0;
  HashDifference difference;
  if (removed.empty()) {
    // Nothing is compared, so the hashes of each file come as they are.
    for (const Source& source : added) Read({&source, 1}, first, last, &afters.emplace_back());
  } else {
    std::vector<uint64_t>& after = afters.emplace_back();
    Read(removed, first, last, &before);
    if (!Read(added, first, last, &after)) {
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
  filter_.ReserveAll(coming, Keys());
  for (const std::vector<uint64_t>& hashes : coming) {
    filter_.Apply(hashes, difference.removed);
  }
  {
    const std::lock_guard lock(mutex_);
    reconciliation_->done = last;
    ledger_.AddStale(kept);
    touched_ += difference.removed.size();
    for (const std::vector<uint64_t>& hashes : coming) touched_ += hashes.size();
    compared_ += before.size();
    for (const std::vector<uint64_t>& after : afters) compared_ += after.size();
  }
  Trim();
}

void FilterWriter::EndReconciliation() {
  const std::lock_guard writer(writer_);
  const std::lock_guard lock(mutex_);
  for (const FileNumber number : reconciliation_->added) {
    FileLedger::Entry& entry = ledger_.At(number);
    if (entry.has_keys) {
      entry.counted = true;
      continue;
    }
    // Its keys are covered by copies of other files, but it is not known which. So it joins every
    // reconciliation, and none removes copies, until a file made of it is counted in its place.
    entry.inputs = nullptr;
    ledger_.AddStale(entry.keys);
  }
  for (const auto* numbers : {&reconciliation_->removed, &reconciliation_->dropped}) {
    for (const FileNumber number : *numbers) {
      ledger_.MarkReconciled(number);
      key_files_.Delete(number);
    }
  }
  reconciliation_.reset();
}

void FilterWriter::RemoveStale() {
  uint64_t stale = 0;
  {
    const std::lock_guard lock(mutex_);
    stale = ledger_.stale();
  }
  if (stale == 0) return;
  for (uint32_t section = 0; section < SharedQuotientFilter::kSections;) {
    const std::lock_guard writer(writer_);
    if (section == 0 && !CountedFiles(false).has_value()) return;
    const auto next = filter_.Renew(section, Keys());
    if (!next.has_value()) return;
    section = *next;
  }
  // Copies that have become stale meanwhile may lie in sections that were made again before.
  const std::lock_guard lock(mutex_);
  ledger_.RemoveStale(stale);
}

}  // namespace tamis::lsm
