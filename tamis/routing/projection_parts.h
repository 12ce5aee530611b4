// ProjectionParts: puts the bits of one index of one region together, which arrive in one part or
// several.
//
// Each part holds the bits as of its own number of the server's sequence. A flip with a later
// number is applied to the bits that have arrived, so that they are always as of the last number
// that the coordinator has applied. A flip of a bit that has not arrived yet is left out: the part
// that brings the bit includes it.
//
// Threads: exclusive access.
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
  // Adds the next part. False, and nothing is changed, when it does not follow the parts before it.
  // Any bytes are safe; memory is proportional to what has arrived.
  [[nodiscard]] bool Add(const pb::Projection& part);
  void Flip(uint64_t layer, uint64_t position, bool bit);

  // True when all layers have arrived that the filter had as of the last part.
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
