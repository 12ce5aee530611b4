#include "tamis/lsm/file_ledger.h"

#include <algorithm>
#include <new>
#include <utility>

namespace tamis::lsm {

FileLedger::Entry* FileLedger::Find(FileNumber number) {
  const auto at = entries_.find(number);
  return at == entries_.end() ? nullptr : &at->second;
}

void FileLedger::Enter(const File& file, bool has_keys, uint64_t keys, bool is_family_certain) {
  Entry& entry = entries_[file.number];
  if (entry.counted) stale_ += entry.keys;  // the file is of another family
  entry = {.file = file,
           .counted = true,
           .has_keys = has_keys,
           .keys = keys,
           .is_family_certain = is_family_certain};
  DeleteIfGone(file.number);
}

void FileLedger::MarkBad(FileNumber number) {
  if (Entry* const entry = Find(number)) entry->has_keys = false;
}

FileLedger::Inputs FileLedger::InputsOf(int job) const {
  const auto at = jobs_.find(job);
  return at == jobs_.end() ? nullptr : at->second;
}

void FileLedger::EndCounting() {
  if (tickets_.empty()) gone_.clear();
  remembers_ = false;
}

void FileLedger::Delete(FileNumber number) {
  if (Has(number)) {
    removed_.insert(number);
  } else if (remembers_ || !tickets_.empty()) {
    gone_.insert(number);
  }
}

void FileLedger::DeleteIfGone(FileNumber number) {
  if (gone_.erase(number) > 0) removed_.insert(number);
}

void FileLedger::Withdraw(FileNumber number) {
  entries_.erase(number);
  if (removed_.erase(number) > 0) gone_.insert(number);
}

FileLedger::Ticket FileLedger::NewTicket() {
  const Ticket ticket = next_ticket_++;
  tickets_.insert(ticket);
  return ticket;
}

void FileLedger::EndTicket(Ticket ticket) noexcept {
  tickets_.erase(ticket);
  if (tickets_.empty() && !remembers_) gone_.clear();
  try {
    if (Has(ticket)) removed_.insert(ticket);
  } catch (const std::bad_alloc&) {
  }
}

// A listed file is covered when all of its inputs are. RocksDB numbers a file later than those of
// which it is made, so one walk in the order of the numbers sees inputs first; what comes in
// another order is not covered. An input may have been counted as one of another family that had
// the same name.
std::unordered_set<FileLedger::FileNumber> FileLedger::CoveredOfListed() const {
  std::unordered_set<FileNumber> covered;
  std::unordered_map<const std::vector<FileNumber>*, bool> known;
  for (const auto& [number, entry] : entries_) {
    ++walked_;
    if (entry.counted || entry.inputs == nullptr || entry.inputs->empty()) continue;
    const auto [at, is_new] = known.try_emplace(entry.inputs.get(), false);
    if (is_new) {
      const uint32_t family = entry.file.family;
      at->second = std::ranges::all_of(*entry.inputs, [&](FileNumber input) {
        ++walked_;
        const auto found = entries_.find(input);
        return found != entries_.end() && found->second.IsOf(family) &&
               (found->second.counted || covered.contains(input));
      });
    }
    if (at->second) covered.insert(number);
  }
  return covered;
}

std::vector<FileLedger::File> FileLedger::Uncovered(std::vector<File> files) const {
  std::optional<std::unordered_set<FileNumber>> covered;  // made for the first that is listed
  std::erase_if(files, [&](const File& file) {
    ++walked_;
    const auto at = entries_.find(file.number);
    if (at == entries_.end() || !at->second.IsOf(file.family)) return false;
    if (at->second.counted) return true;
    if (!covered.has_value()) covered = CoveredOfListed();
    return covered->contains(file.number);
  });
  return files;
}

bool FileLedger::IsPartlyDeleted() const {
  if (removed_.empty()) return false;
  DeletedInputs known;
  return std::ranges::any_of(entries_, [&](const auto& at) {
    return !at.second.counted && DeletedOf(at.second.inputs, removed_, &known) == Deleted::kSome;
  });
}

FileLedger::Deleted FileLedger::DeletedOf(const Inputs& inputs, const std::set<FileNumber>& removed,
                                          DeletedInputs* known) const {
  if (inputs == nullptr || inputs->empty()) return Deleted::kNone;
  const auto [at, is_new] = known->try_emplace(inputs.get(), Deleted::kNone);
  if (is_new) {
    const auto deleted = std::ranges::count_if(
        *inputs, [&](FileNumber input) { return removed.contains(input) || !Has(input); });
    if (deleted > 0) {
      const bool all = static_cast<size_t>(deleted) == inputs->size();
      at->second = all ? Deleted::kAll : Deleted::kSome;
    }
  }
  return at->second;
}

FileLedger::Reconciliation FileLedger::Choose(const std::set<FileNumber>& removed) const {
  Reconciliation reconciliation;
  DeletedInputs known;
  for (const auto& [number, entry] : entries_) {
    if (removed.contains(number)) {
      (entry.counted ? reconciliation.removed : reconciliation.dropped).insert(number);
    } else if (!entry.counted) {
      const bool is_made_of_unknown = entry.inputs == nullptr || entry.inputs->empty();
      if (is_made_of_unknown || DeletedOf(entry.inputs, removed, &known) != Deleted::kNone) {
        reconciliation.added.insert(number);
      }
    }
  }
  return reconciliation;
}

std::optional<std::vector<FileLedger::File>> FileLedger::Counted(
    const Reconciliation* after) const {
  std::vector<File> files;
  for (const auto& [number, entry] : entries_) {
    const bool goes = after != nullptr && after->removed.contains(number);
    const bool comes = after != nullptr && after->added.contains(number);
    const bool is_dropped = after != nullptr && after->dropped.contains(number);
    // Entries that cover the keys of a listed file that cannot be read may be in no key file.
    if (!entry.counted && !entry.has_keys && !is_dropped) return std::nullopt;
    if (!comes && (!entry.counted || goes)) continue;
    if (!entry.has_keys) return std::nullopt;
    files.push_back(entry.file);
  }
  return files;
}

void FileLedger::MarkReconciled(FileNumber number) {
  // Found before it was announced, it is not to be counted again.
  if (!tickets_.empty()) gone_.insert(number);
  removed_.erase(number);
  const Entry* const entry = Find(number);
  if (entry == nullptr) return;  // done before memory ran out
  if (entry->counted && !entry->has_keys) stale_ += entry->keys;
  entries_.erase(number);
}

}  // namespace tamis::lsm
