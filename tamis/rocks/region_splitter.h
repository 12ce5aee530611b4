// RegionSplitter: cuts regions of one region server in two. The lower daughter keeps the id, and
// with it its entries; those of the upper half become garbage, and are written again under the id
// of the upper daughter.
//
// Threads: safe.
#pragma once

#include <memory>
#include <string>

#include "tamis/cluster/cluster.h"
#include "tamis/rocks/open_regions.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class RegionSplitter : public std::enable_shared_from_this<RegionSplitter> {
 public:
  RegionSplitter(std::shared_ptr<ServerContext> context, std::shared_ptr<OpenRegions> regions)
      : context_(std::move(context)), regions_(std::move(regions)) {}

  // At `key`, or near the middle when it is empty.
  void Split(const std::shared_ptr<Region>& region, std::string key, DoneCallback done);
  // Measures the region in the background, and splits it near the middle if it is larger than
  // split_bytes.
  void SplitIfGrown(const std::shared_ptr<Region>& region);

 private:
  struct Rows {
    uint64_t bytes = 0;
    std::string middle;  // the key of a row near the middle; empty when there are fewer than two
  };
  Result<Rows> MeasureRows(const Region& region) const;
  void MeasureAndSplit(const std::shared_ptr<Region>& region);
  Status SplitAlone(const std::shared_ptr<Region>& region, const std::string& key);

  const std::shared_ptr<ServerContext> context_;
  const std::shared_ptr<OpenRegions> regions_;
};

}  // namespace tamis
