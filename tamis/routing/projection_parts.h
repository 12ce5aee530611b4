// ProjectionParts: the bits of one index of one region while they arrive, in one part or in many.
//
// Each part is as of a number of its own. Flips behind that number are applied to what is here, so
// that the parts together are as of the last number that the coordinator has applied; a flip of a
// bit that is still to come is in the part that brings it.
//
// Threads: none of its own.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/filter/split_geometry.h"

namespace tamis {

class ProjectionParts {
 public:
  ProjectionParts(SplitGeometry geometry, uint64_t generation, uint32_t max_layers)
      : geometry_(geometry), generation_(generation), max_layers_(max_layers) {}

  // Says in a request where the next part is to begin.
  void Describe(pb::ColumnId* wanted) const;
  // False, and nothing is taken, when the part does not follow on what is here. Any bytes are
  // survived; memory grows with what has arrived.
  [[nodiscard]] bool Add(const pb::Projection& part);
  void Flip(uint64_t layer, uint64_t position, bool bit);

  // All layers that there were as of the last part are here.
  bool complete() const { return complete_; }
  std::span<const std::vector<uint64_t>> layers() const { return layers_; }

 private:
  const SplitGeometry geometry_;
  const uint64_t generation_;
  const uint32_t max_layers_;
  bool complete_ = false;
  std::vector<std::vector<uint64_t>> layers_;  // the last one maybe in part
};

}  // namespace tamis
