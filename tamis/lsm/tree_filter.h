// TreeFilter: one filter for all the files and memtables of a tree of sorted runs (an LSM-tree), as
// a state machine over plain events, which hooks.h delivers. It uses RocksDB's file system for its
// key files, and nothing else of RocksDB.
//
// The filter is the multiset of the hashes of (column family, key), one copy for each file that is
// *counted*. What compactions write holds only keys of its inputs, so it is not counted but
// *listed*; once the inputs are deleted, both are *reconciled*: their sorted hashes are compared,
// and only what differs touches the filter.
//
// Why no key is missed:
//   1. A key is in its memtable's filter before it is in the memtable, and a file that was not made
//      of counted ones is counted before it is installed.
//   2. Readers ask the memtables first, the filter afterwards: a flush moves keys the same way.
//   3. A file's copies leave only after its deletion was reported and all files made of it were
//      listed, and only while every live file is counted or listed: an unknown file may contain
//      keys of a deleted one. A listed file that was made of an unknown one joins every
//      reconciliation.
//   4. A family with a bypass reason passes through: every answer is "perhaps".
// Invariant: each key of a live file has a copy in the filter from a file that has not left yet.
//
// The keys of a file whose key file cannot be written are counted at once. When it goes, its copies
// stay, as false positives, until the filter is made again from the key files.
//
// Memory: a member that is not noexcept may throw std::bad_alloc. The event is not known then: the
// caller tells it again, or lets the family pass through. A reconciliation or a counting that was
// broken off goes on when it is called again.
//
// Threads: all members may be called from any thread at any time. Locks are taken in the order
// reconciling_, that of writer_, mutex_; readers take none.
#pragma once

#include <rocksdb/file_system.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/lsm/column_families.h"
#include "tamis/lsm/faults.h"
#include "tamis/lsm/file_ledger.h"
#include "tamis/lsm/filter_writer.h"
#include "tamis/lsm/grace_period.h"
#include "tamis/lsm/key_file.h"
#include "tamis/lsm/key_file_directory.h"
#include "tamis/lsm/shared_quotient_filter.h"

namespace tamis::lsm {

class TreeFilter {
 public:
  using FileNumber = FileLedger::FileNumber;
  using File = FileLedger::File;
  using Ticket = FileLedger::Ticket;

  struct Options {
    std::string directory;  // the directory of the key files; it is made with the first of them
    double fpr = 0.003;
    // nullopt: the seed of the key files in the directory, so that they can be used; if there are
    // none, a random one, so that a client cannot prepare keys that collide.
    std::optional<uint64_t> seed = 0;
    uint64_t shard_keys = 1 << 16;
    bool writes_files = true;  // else key files are only read
    Faults faults;
    std::shared_ptr<rocksdb::FileSystem> files = rocksdb::FileSystem::Default();
  };
  static Result<std::unique_ptr<TreeFilter>> Create(Options options);

  // --- questions: false is certain -------------------------------------------------------------

  bool MayContain(uint32_t family, std::string_view key) const;
  // answers[i] for keys[i].
  void MayContain(uint32_t family, std::span<const std::string_view> keys,
                  std::span<bool> answers) const;

  // Key files are neither written nor read any more: all is counted at once, as where they cannot
  // be written.
  void AbandonKeyFiles() { key_files_->Abandon(); }

  // For the figures: `count` of the keys that the filter let pass were not in the database.
  void NoteFalsePasses(uint32_t family, uint64_t count) const;

  ColumnFamilies& families() { return families_; }
  const ColumnFamilies& families() const { return families_; }
  uint64_t HashOf(uint32_t family, std::string_view key) const;

  // --- files -----------------------------------------------------------------------------------

  void CompactionBegan(int job, std::vector<FileNumber> inputs);
  void CompactionEnded(int job);
  // To be called before the file is installed. `hashes` in any order, repeated or not;
  // `compaction`: the job that made the file of live files; nullopt: it was not made so.
  void FileCreated(const File& file, std::vector<uint64_t> hashes, std::optional<int> compaction);
  void FileDeleted(FileNumber number);

  // Files that come from elsewhere: counted under a ticket, then installed or not.
  Ticket IngestionBegan(const File& file, std::vector<uint64_t> hashes);
  // False when there is no such ticket: the file is not counted.
  bool FileIngested(Ticket ticket, FileNumber number);
  // If it was not installed its keys leave; without memory for that they stay, as false positives.
  void IngestionEnded(Ticket ticket) noexcept;

  // --- counting what was there before, or came without an event --------------------------------

  // All families pass through from the making of a TreeFilter to its first EndCounting. Between
  // BeginCounting and EndCounting: ask which files are live, count each that is not covered, until
  // all are. One thread at a time.
  void BeginCounting();
  // The live files whose keys are not certain to be in the filter: a file that is not known, was
  // counted under another family's name, or was made of files that are not known. A file that is
  // gone, but was live when the list was made, is not covered: its successor may not be covered
  // either, so the live files must be listed again. Takes time linear in the files of both.
  std::vector<File> Uncovered(std::vector<File> files) const;
  bool Covers(const File& file) const { return Uncovered({file}).empty(); }
  // Returns the files that could not be counted: their key files are missing, of another file, or
  // damaged.
  std::vector<File> CountFromKeyFiles(const std::vector<File>& files);
  void CountFromHashes(const File& file, std::vector<uint64_t> hashes);
  // Room for so many keys that are going to be counted, at once rather than file by file, which
  // leaves more of it free.
  void MakeRoom(uint64_t keys);
  void EndCounting();
  bool IsCounting() const { return families_.IsCounting(); }

  // --- reconciliation ----------------------------------------------------------------------------

  bool HasUnreconciled() const;
  // Whether some of the inputs of a compaction are deleted and others are not, or not yet:
  // reconciled now, the keys of the others are in the filter twice until they are gone, too.
  bool IsPartlyDeleted() const;
  // Reconciles the files that were deleted before this call. It calls `live_files` for the live
  // files (those of families that pass through may be left out). If some of these are not known, it
  // reconciles nothing and returns them: they are to be counted first.
  std::vector<FileNumber> Reconcile(const std::function<std::vector<FileNumber>()>& live_files);

  struct Figures {
    SharedQuotientFilter::Figures filter;
    uint64_t asked = 0;         // keys, about
    uint64_t excluded = 0;      // keys that were denied, about
    uint64_t false_passes = 0;  // the number that NoteFalsePasses reported, about
    uint64_t disturbed = 0;
    uint64_t files = 0;
    uint64_t unreconciled = 0;  // files
    uint64_t stale = 0;         // copies of keys of files that are gone
    uint64_t touched = 0;       // copies that reconciliations have added and removed
    uint64_t compared = 0;      // hashes read by reconciliations
    uint64_t walked = 0;        // files looked at to tell which are covered
    uint64_t written = 0;       // key files
    uint64_t unwritten = 0;     // key files that could not be written
    uint64_t memtable_bytes = 0;
    uint64_t retired = 0;  // lists of memtables' filters that are not freed yet
  };
  Figures figures() const;
  // Whether the filter is, byte by byte, the one that the key files of the counted files make.
  // REQUIRES: no key file is missing.
  bool IsExact();

  const Options& options() const { return options_; }
  const Faults& faults() const { return options_.faults; }

 private:
  struct alignas(64) Counters {
    std::atomic<uint64_t> asked{0};
    std::atomic<uint64_t> excluded{0};
    std::atomic<uint64_t> false_passes{0};
  };

  explicit TreeFilter(Options options);

  // Neither covered nor gone.
  std::vector<File> Uncounted(std::vector<File> files) const;
  // How many of the keys, kMost at most, are not there. REQUIRES: a guard is held, since before
  // the family's reasons were looked at.
  template <size_t kMost>
  size_t Ask(const MemtableFilters& memtables, std::span<const uint64_t> hashes,
             bool* answers) const;
  void Note(uint64_t asked, uint64_t excluded) const;

  const Options options_;
  uint64_t seed_ = 0;
  const bool has_faults_;  // faults of readers
  mutable GracePeriod grace_;
  std::unique_ptr<SharedQuotientFilter> filter_;
  std::unique_ptr<KeyFileDirectory> key_files_;
  std::unique_ptr<FilterWriter> writer_;  // changes filter_, and counts
  ColumnFamilies families_;
  mutable std::array<Counters, GracePeriod::kSlots> counters_;  // a thread's own

  mutable std::mutex reconciling_;
  mutable std::mutex mutex_;  // guards all below
  FileLedger ledger_;
  std::vector<std::vector<uint64_t>> late_;  // for the fault count_after_install
};

}  // namespace tamis::lsm
