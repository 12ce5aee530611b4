// RegionSplitter: cuts regions of one region server in two. The lower daughter keeps the id, and
// with it its entries. The entries of the upper half are copied under the id of the upper daughter
// before the split (EntryCopy), and become garbage under the old one. If they cannot be copied, the
// IndexBuilder makes them from the rows after the split.
//
// Threads: safe.
#pragma once

#include <memory>
#include <string>

#include "tamis/cluster/cluster.h"
#include "tamis/rocks/entry_copy.h"
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
  struct Order {
    std::shared_ptr<Region> region;
    std::string key;
    DoneCallback done;
    std::weak_ptr<EntryCopy> copy = {};  // which the region owns
  };
  using OrderPtr = std::shared_ptr<Order>;
  using Step = void (RegionSplitter::*)(const OrderPtr& order);

  Result<Rows> MeasureRows(const Region& region) const;
  void MeasureAndSplit(const std::shared_ptr<Region>& region);
  // An order whose step throws (std::bad_alloc) ends with the error.
  void Run(const OrderPtr& order, Step step) noexcept;
  // Runs the step while no write is inside of the region, or ends the order if it is closed.
  void RunAlone(const OrderPtr& order, Step step);
  void End(const OrderPtr& order, const Status& status);

  void PrepareCopy(const OrderPtr& order);
  void BeginCopy(const OrderPtr& order);
  void Copy(const OrderPtr& order);
  void SplitAlone(const OrderPtr& order);
  Status TrySplit(const OrderPtr& order);

  const std::shared_ptr<ServerContext> context_;
  const std::shared_ptr<OpenRegions> regions_;
};

}  // namespace tamis
