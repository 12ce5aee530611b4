// FilterWriter: changes the filter of a tree together with the ledger of its files, and reads key
// files for both.
//
// Between two calls the filter is exactly the copies of the keys of the files that are counted by
// the ledger, and of the keys that it calls stale. A reconciliation that is under way is applied
// section by section: the sections below `done` have the files that are counted after it, the
// others those that were counted before. One that was broken off by std::bad_alloc goes on with the
// next call of ApplyReconciliation.
//
// Threads: a member says which locks its caller holds. They are taken in the order of TreeFilter:
// `reconciling`, of whoever begins or applies reconciliations; lock(), of whoever changes the
// filter; the mutex of the ledger. Everything given to it outlives it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/lsm/faults.h"
#include "tamis/lsm/file_ledger.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/key_file_directory.h"
#include "tamis/lsm/shared_quotient_filter.h"

namespace tamis::lsm {

class FilterWriter {
 public:
  using FileNumber = FileLedger::FileNumber;
  using File = FileLedger::File;

  FilterWriter(SharedQuotientFilter* filter, FileLedger* ledger, std::mutex* ledger_mutex,
               KeyFileDirectory* key_files, uint64_t seed, const Faults& faults)
      : filter_(*filter),
        ledger_(*ledger),
        mutex_(*ledger_mutex),
        key_files_(*key_files),
        seed_(seed),
        faults_(faults) {}

  std::mutex& lock() { return writer_; }

  // --- key files: no lock is held --------------------------------------------------------------

  Result<KeyFile> OpenKeyFile(const File& file) const;
  // Sorts and writes; false when there is no key file now.
  bool WriteKeyFile(const File& file, std::vector<uint64_t>* hashes);

  // --- counting: lock() is held ----------------------------------------------------------------

  // Counts the keys of a file, and enters it in the ledger.
  void Count(const File& file, std::span<const uint64_t> hashes, bool has_keys,
             bool is_family_certain);
  // Copies of a file that is in the ledger already. The room that they take is not made again.
  void CountLate(std::span<const uint64_t> hashes);
  // Room for so many keys that are going to be counted.
  void MakeRoom(const SharedQuotientFilter::Counts& coming);
  // All of them are counted, or will not be.
  void EndRoom();
  // Whether the filter is, byte by byte, what the key files make. REQUIRES: reconciling, too.
  bool IsExact() { return filter_.IsExactly(Keys()); }

  // --- reconciliation: `reconciling` is held, and no other lock ----------------------------------

  // REQUIRES: none is under way; the mutex of the ledger is held.
  void Begin(FileLedger::Reconciliation reconciliation) {
    reconciliation_ = std::move(reconciliation);
  }
  // Applies the reconciliation that is under way, if any, from where it was broken off; part by
  // part, between which others may write.
  void ApplyReconciliation();

  // REQUIRES: the mutex of the ledger is held.
  uint64_t touched() const {
    return touched_;
  }  // copies that reconciliations have added and removed
  uint64_t compared() const { return compared_; }  // hashes read by reconciliations

 private:
  struct Source {
    FileNumber number;
    std::optional<KeyFile> keys;  // none: not known
  };
  using OpenedFiles = std::map<FileNumber, KeyFile>;

  KeyFileHeader HeaderOf(const File& file) const;
  void MarkBad(FileNumber number);  // its key file

  // REQUIRES for the following: lock() is held.
  SharedQuotientFilter::Keys Keys();
  bool AppendKeys(bool reconciled, uint32_t first, uint32_t last, OpenedFiles* opened,
                  std::vector<uint64_t>* hashes);
  // The files counted before the reconciliation that is under way, or after it. nullopt when the
  // keys of one are not known.
  std::optional<std::vector<File>> CountedFiles(bool reconciled) const;
  void Trim();

  // Adds the number of their hashes to *hashes.
  std::vector<Source> Open(const std::set<FileNumber>& numbers, uint64_t* hashes);
  // True when all of them could be read.
  bool Read(std::span<const Source> sources, uint32_t first, uint32_t last,
            std::vector<uint64_t>* out);
  void ApplySections(std::span<const Source> removed, std::span<const Source> added, uint32_t first,
                     uint32_t last);
  void EndReconciliation();
  void RemoveStale();

  SharedQuotientFilter& filter_;
  FileLedger& ledger_;
  std::mutex& mutex_;  // guards ledger_, and what follows it here
  KeyFileDirectory& key_files_;
  const uint64_t seed_;
  const Faults& faults_;

  std::mutex writer_;         // guards filter_, and the counting
  bool awaits_keys_ = false;  // room was made for keys that are being counted; by writer_
  std::optional<FileLedger::Reconciliation> reconciliation_;
  uint64_t touched_ = 0;
  uint64_t compared_ = 0;
};

}  // namespace tamis::lsm
