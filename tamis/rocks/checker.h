// Checker: compares every row of a region with every index entry and every filter: what `tamis
// check` runs. The region's writes wait meanwhile.
//
// Threads: see Check.
#pragma once

#include <vector>

#include "tamis/cluster/check_report.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/store.h"
#include "tamis/rocks/store.pb.h"

namespace tamis {

// Adds what one part of a check says; an error of one is the error of all.
void AddTo(const Result<CheckReport>& part, Result<CheckReport>* all);

// kDataLoss unless the regions, in key order, hold each key once.
Status CheckTiling(const std::vector<pb::RegionRecord>& regions);

// REQUIRES: no write is under way in the region (Region::Quiesce).
Result<CheckReport> CheckRegion(const Store& store, const Region& region);

}  // namespace tamis
