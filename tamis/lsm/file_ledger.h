// FileLedger: what a TreeFilter knows of the files of its database: which of them are counted and
// which are listed, of which files each listed one was made, which are deleted, and which of all
// that a reconciliation has to take.
//
// A *counted* file has a copy of each of its keys in the filter. A *listed* file was made of
// others, whose copies cover its keys. A file may be known under a ticket before it has a number.
//
// Threads: none of its own; TreeFilter's mutex guards it. A member that is not noexcept may throw
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tamis/lsm/key_file.h"

namespace tamis::lsm {

class FileLedger {
 public:
  using FileNumber = uint64_t;
  using Ticket = uint64_t;

  struct File {
    FileNumber number = 0;
    uint32_t family = 0;
    FileIdentity identity{};
  };
  // Shared by all that one compaction writes, so that it is walked once for them together.
  using Inputs = std::shared_ptr<const std::vector<FileNumber>>;
  struct Entry {
    File file;
    bool counted = false;   // or else listed
    bool has_keys = false;  // its key file was written and has not been found bad
    uint64_t keys = 0;
    Inputs inputs = nullptr;  // listed: of which it was made; none: not known
    // RocksDB itself named the family's id; else it was found by the family's name, which another
    // one may have had.
    bool is_family_certain = false;

    bool IsOf(uint32_t family) const { return is_family_certain || file.family == family; }
  };
  struct Reconciliation {
    std::set<FileNumber> removed;  // counted, and going
    std::set<FileNumber> added;    // listed, and staying
    std::set<FileNumber> dropped;  // listed, and going
    uint32_t done = 0;             // sections that are reconciled already
  };

  // --- entries -----------------------------------------------------------------------------------

  size_t size() const { return entries_.size(); }
  bool Has(FileNumber number) const { return entries_.contains(number); }
  Entry* Find(FileNumber number);
  Entry& At(FileNumber number) { return entries_[number]; }  // made if it is not there
  // Enters a file as counted. Copies that it had under another family become stale.
  void Enter(const File& file, bool has_keys, uint64_t keys, bool is_family_certain);
  void Put(FileNumber number, Entry entry) { entries_[number] = std::move(entry); }
  void Erase(FileNumber number) { entries_.erase(number); }
  void MarkBad(FileNumber number);  // its key file

  // Copies of keys of files that are gone.
  uint64_t stale() const { return stale_; }
  void AddStale(uint64_t copies) { stale_ += copies; }
  void RemoveStale(uint64_t copies) { stale_ -= copies; }

  // --- compactions and deletions -----------------------------------------------------------------

  void CompactionBegan(int job, Inputs inputs) { jobs_[job] = std::move(inputs); }
  void CompactionEnded(int job) { jobs_.erase(job); }
  Inputs InputsOf(int job) const;  // none: not known

  // Remembers what is deleted and not known, since it may just be being counted.
  void BeginCounting() { remembers_ = true; }
  void EndCounting();
  void Delete(FileNumber number);
  // A file that was gone is deleted as soon as it is known.
  void DeleteIfGone(FileNumber number);
  // Counting failed: it is not known again.
  void Withdraw(FileNumber number);
  bool IsDeleted(FileNumber number) const {
    return gone_.contains(number) || removed_.contains(number);
  }
  const std::set<FileNumber>& removed() const { return removed_; }

  Ticket NewTicket();
  void EndTicket(Ticket ticket) noexcept;

  // --- questions ---------------------------------------------------------------------------------

  // The files whose keys are not certain to be in the filter. Takes time linear in both.
  std::vector<File> Uncovered(std::vector<File> files) const;
  // Whether some of the inputs of a compaction are deleted and others are not.
  bool IsPartlyDeleted() const;
  // Returns the files that a reconciliation of these deletions takes.
  Reconciliation Choose(const std::set<FileNumber>& removed) const;
  // The counted files; with `after`, those that will be once it is reconciled. nullopt when the
  // keys of one are not known.
  std::optional<std::vector<File>> Counted(const Reconciliation* after) const;
  // A reconciled file is gone for good.
  void MarkReconciled(FileNumber number);

  uint64_t walked() const { return walked_; }  // files looked at to tell which are covered

 private:
  static constexpr Ticket kFirstTicket = Ticket{1} << 62;  // no file has such a number

  // Whether some, or all, of the inputs of a listed file are deleted, by the inputs' address: one
  // answer for all that one compaction has written.
  enum class Deleted { kNone, kSome, kAll };
  using DeletedInputs = std::unordered_map<const std::vector<FileNumber>*, Deleted>;
  Deleted DeletedOf(const Inputs& inputs, const std::set<FileNumber>& removed,
                    DeletedInputs* known) const;
  std::unordered_set<FileNumber> CoveredOfListed() const;

  std::map<FileNumber, Entry> entries_;
  bool remembers_ = true;  // keeps numbers of removed files, since one may just be being counted
  std::set<FileNumber> removed_;  // entries whose deletion was reported
  std::set<FileNumber> gone_;     // deleted, not known, and perhaps still to be counted
  std::map<int, Inputs> jobs_;
  std::set<Ticket> tickets_;
  Ticket next_ticket_ = kFirstTicket;
  uint64_t stale_ = 0;
  mutable uint64_t walked_ = 0;
};

}  // namespace tamis::lsm
