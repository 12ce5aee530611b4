// Catalog: the tables and regions of an embedded cluster, stored in the store's "meta" column
// family. It is the counterpart of HBase's table hbase:meta. Changes are atomic and durable.
//
//   "F"            -> StoreRecord: format version and the next ids
//   "T" table id   -> SerializeSchema
//   "R" region id  -> RegionRecord
//
// Threads: safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/cluster/region_id.h"
#include "tamis/rocks/store.h"
#include "tamis/rocks/store.pb.h"
#include "tamis/table/schema.h"

namespace tamis {

inline constexpr uint32_t kStoreFormatVersion = 1;

class Catalog {
 public:
  // Makes the format record in a new store; kFailedPrecondition for a store of another format.
  static Result<std::unique_ptr<Catalog>> Load(Store* store);

  std::vector<TableSchema> Tables() const;
  Result<TableSchema> Table(const std::string& name) const;
  std::optional<TableSchema> Table(uint32_t id) const;
  // False once the index is dropped; from then on compactions may drop its entries.
  bool HasIndex(uint32_t table_id, uint32_t index_id) const;
  std::vector<pb::RegionRecord> Regions() const;
  size_t region_count() const;
  std::vector<pb::RegionRecord> Regions(uint32_t table_id) const;  // in key order
  std::optional<pb::RegionRecord> Region(uint64_t id) const;

  // New numbers. The next Commit makes them durable, whatever it changes. A number that was given
  // after the last Commit of a process, and so stands in no record, may be given again by the next.
  uint64_t NewRegionId();
  uint64_t NewEpoch();
  uint32_t NewTableId();

  // A new region id under which entries may be written before a Commit puts the region: the id is
  // on the disk, so that it is never given again, and compactions keep what stands under it. That
  // ends when the region is put, by Discard, or with the process.
  Result<uint64_t> PrepareRegion();
  // There will be no region of this id: what was written under it is garbage. Does nothing if the
  // region was put.
  void Discard(uint64_t prepared_id);

  uint64_t openings() const;

  struct Change {
    std::vector<TableSchema> put_tables;
    std::vector<uint32_t> erase_tables;  // with their rows and regions
    std::vector<pb::RegionRecord> put_regions;
    std::vector<uint64_t> erase_regions;
  };
  // Writes the whole change, or nothing. kUnavailable when it would put a region of a table that
  // does not exist (any more).
  Status Commit(const Change& change);

  // Notes that all entries of the index stand under the region's id. False, and nothing is written,
  // when the region has another epoch by now.
  Result<bool> MarkComplete(uint64_t region_id, uint64_t epoch, uint32_t index_id);

 private:
  explicit Catalog(Store* store) : store_(store) {}
  template <class T>
  T TakeId(T (pb::StoreRecord::*next)() const, void (pb::StoreRecord::*set_next)(T));
  Status CommitLocked(const Change& change, bool sync = false);
  // The regions that have garbage after the change, and had none of that kind before.
  std::vector<uint64_t> GarbageOf(const Change& change, const std::vector<uint64_t>& erased) const;
  void PublishGarbage();

  Store* const store_;
  mutable std::mutex mutex_;
  pb::StoreRecord record_;
  std::map<uint32_t, TableSchema> tables_;
  std::map<uint64_t, pb::RegionRecord> regions_;
  std::set<uint64_t> prepared_;  // ids of PrepareRegion that no region has
};

}  // namespace tamis
