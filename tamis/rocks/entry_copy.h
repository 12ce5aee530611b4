// EntryCopy: the index entries of the upper half of a region, written under the id of its upper
// daughter before the region is split. The daughter's indexes are complete from its first moment.
//
//   Prepare   the daughter has an id; the region knows of the copy (Region::SetEntryCopy)
//   Begin     no write is inside of the region, and its fence is excluded: a snapshot is taken.
//             From here on each batch that changes entries is noted before it is written
//             (WriteEntries)
//   Copy      in steps, while writes go on: entries of the snapshot go into a file
//   TakeIn    the file goes into the store, and then the changes that were noted until then
//   Complete  under the same conditions as Begin: the changes since then. The split follows
//
// Entries are copied, not made from rows, so only those of indexes that are complete in the region
// at the begin. A copy is spoilt by a noted batch whose outcome is unknown, by a lack of memory
// while noting, and by more changes than options.copied_change_bytes: then the builder writes the
// daughter's entries (IndexBuilder), as it does for other indexes.
//
// Threads: Note and Spoil are safe; the rest is called by one thread at a time.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "tamis/base/status.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/entry_file.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class EntryCopy {
 public:
  // A copy for the rows from `split_key` on. nullptr: no index is complete, so there is nothing to
  // copy.
  static Result<std::shared_ptr<EntryCopy>> Prepare(const ServerContext& context,
                                                    const Region& region,
                                                    const std::string& split_key);
  // The entries that were written are garbage, unless a region of daughter_id() is in the catalog
  // by then.
  ~EntryCopy();
  EntryCopy(const EntryCopy&) = delete;
  EntryCopy& operator=(const EntryCopy&) = delete;

  uint64_t daughter_id() const { return daughter_id_; }

  void Begin(const Region& region);
  // Whether the entries of the index are copied. REQUIRES: Begin was called.
  bool Has(uint32_t index_id) const { return indexes_.contains(index_id); }
  // Copies up to so many entries; false when there are no more.
  Result<bool> Copy(uint64_t entries);
  Status TakeIn();
  // kUnavailable if the copy is spoilt, or TakeIn was not called or failed.
  Status Complete();
  // The batch is about to be written to the region. Ignored before Begin.
  void Note(const rocksdb::WriteBatch& batch) noexcept;
  void Spoil() noexcept;

 private:
  class Notes;
  EntryCopy(const ServerContext& context, const Region& region, std::string split_key,
            uint64_t daughter_id);
  static bool HasCompleteIndex(const Region& region);
  Result<bool> IsUpper(uint32_t index_id, std::string_view entry) const;  // and no garbage
  std::string DaughterKey(std::string_view key) const;
  void NoteChange(std::string_view key, std::optional<std::string> value);
  void SpoilLocked() noexcept;
  Status WriteChanges();

  Catalog* const catalog_;
  Store* const store_;
  const RegionInfo region_;
  const uint64_t daughter_id_;
  const std::string split_key_;
  const uint64_t most_bytes_;
  const bool forgets_changes_;  // a fault
  SchemaPtr schema_;
  std::map<uint32_t, std::shared_ptr<IndexFilter>> indexes_;  // the copied ones

  std::shared_ptr<const rocksdb::Snapshot> snapshot_;  // until all is copied
  std::map<uint32_t, std::shared_ptr<IndexFilter>>::const_iterator at_;
  std::unique_ptr<EntryCursor> cursor_;  // reads the index of at_, once it is begun
  EntryFile file_;
  bool taken_in_ = false;

  std::mutex mutex_;
  bool begun_ = false;
  bool spoilt_ = false;
  uint64_t bytes_ = 0;
  std::map<std::string, std::optional<std::string>> changes_;  // by the daughter's keys
};

// Writes a batch that changes entries of the region, whose fence the caller holds.
Status WriteEntries(Store* store, const Region& region, rocksdb::WriteBatch* batch);

}  // namespace tamis
