// OpenRegions: the regions that one region server has open. Open takes a region over as its record
// in the catalog says and announces it in the feed; from then on the region follows the schema of
// its table, until Close.
//
// Threads: safe. The functions marked "alone" may be called only while no write is inside of the
// region (Region::Quiesce).
#pragma once

#include <google/protobuf/repeated_field.h>

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <vector>

#include "tamis/rocks/index_builder.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class OpenRegions : public std::enable_shared_from_this<OpenRegions> {
 public:
  OpenRegions(std::shared_ptr<ServerContext> context, std::shared_ptr<IndexBuilder> builder)
      : context_(std::move(context)), builder_(std::move(builder)) {}

  std::vector<std::shared_ptr<Region>> All() const;
  std::vector<std::shared_ptr<Region>> OfTable(uint32_t table_id) const;
  std::shared_ptr<Region> Find(uint64_t region_id) const;
  Status NotOpen(uint64_t region_id) const;

  // The region acknowledges no put before `not_before`. Returns nullptr when the record is older
  // than what is known of the region, or the table was dropped.
  std::shared_ptr<Region> Open(const pb::RegionRecord& record, Time not_before);
  // Alone. Returns the number of the event that announces the closing. After std::bad_alloc the
  // region is open as before.
  uint64_t Close(Region* region);
  // Alone. Takes over a newer schema.
  void Follow(const std::shared_ptr<Region>& region, SchemaPtr schema);

 private:
  Region::Indexes MakeIndexes(const RegionInfo& info, const TableSchema& schema,
                              const Region::Indexes& old,
                              const google::protobuf::RepeatedField<uint32_t>& complete);
  void FollowCatalog(const std::shared_ptr<Region>& region);
  uint64_t RowBytes(const RegionInfo& info) const;
  Status ClearEntries(uint64_t region_id, uint32_t index_id);
  void ReplaceSchema(Region* region, SchemaPtr schema);
  void BuildMissing(const std::shared_ptr<Region>& region);
  void ClearAgain(const std::shared_ptr<Region>& region);
  uint64_t TellOpened(const Region& region);

  const std::shared_ptr<ServerContext> context_;
  const std::shared_ptr<IndexBuilder> builder_;
  mutable std::shared_mutex mutex_;
  std::map<uint64_t, std::shared_ptr<Region>> regions_;
};

}  // namespace tamis
