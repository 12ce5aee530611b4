// Checker: compares every row of a region with its index entries and filters, for `tamis check`.
// The region's writes wait meanwhile.
//
// Threads: the functions hold no state; see what CheckRegion requires.
#pragma once

#include <vector>

#include "tamis/cluster/check_report.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/store.h"
#include "tamis/rocks/store.pb.h"

namespace tamis {

// Adds the report of one part of a check to `all`. If either is an error, `all` is one.
void AddTo(const Result<CheckReport>& part, Result<CheckReport>* all);

// kDataLoss unless the regions, in key order, hold each key once.
Status CheckTiling(const std::vector<pb::RegionRecord>& regions);

// REQUIRES: no write is under way in the region (Region::Quiesce).
Result<CheckReport> CheckRegion(const Store& store, const Region& region);

}  // namespace tamis
