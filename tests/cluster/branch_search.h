// SearchBranches: sends given branches to region servers, without a plan of the coordinator, and
// adds up how much the servers read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/region_server.h"
#include "tamis/table/schema.h"

namespace tamis {

struct BranchWork {
  std::vector<std::string> keys;  // keys of the rows given, each time that one was
  uint64_t entries = 0;
  uint64_t seeks = 0;
  uint64_t rows_read = 0;
  uint64_t rows_scanned = 0;            // the rows among these that were read one after the other
  uint64_t expected = 0;                // entries, of the streams that led
  uint64_t pages = 0;                   // pages of all regions
  std::map<uint32_t, uint64_t> led;     // by index, of how many regions; 0: a scan
  std::map<uint32_t, uint64_t> joined;  // by index, in how many pages
  std::string error;                    // the error of the first that failed
  bool ok() const { return error.empty(); }

  // Counted in entries: to begin a range costs eight, a row eight when it is looked up, two when
  // all are read in turn.
  uint64_t cost() const {
    return entries + 8 * seeks + 8 * (rows_read - rows_scanned) + 2 * rows_scanned;
  }
};

inline pb::SearchRequest RequestOf(const TableSchema& table, const RegionInfo& region,
                                   const std::vector<pb::Branch>& branches) {
  pb::SearchRequest request;
  request.set_table_id(table.id);
  request.set_schema_version(table.version);
  pb::SearchRange* range = request.add_ranges();
  range->set_region_id(region.id.number());
  range->set_epoch(region.epoch);
  range->set_start(region.start);
  range->set_end(region.end);
  for (const pb::Branch& branch : branches) *request.add_branches() = branch;
  for (const Column& column : table.columns) request.add_columns(column.id);
  return request;
}

// Region after region, page after page.
inline BranchWork SearchBranches(Cluster* cluster, Executor* executor, const TableSchema& table,
                                 const std::vector<RegionInfo>& regions,
                                 const std::vector<pb::Branch>& branches) {
  BranchWork work;
  for (const RegionInfo& region : regions) {
    const auto server = cluster->Server(region.server);
    pb::SearchRequest request = RequestOf(table, region, branches);
    for (bool first = true; first || !request.ranges(0).resume().empty(); first = false) {
      const auto reply = AwaitResult<pb::SearchReply>(
          executor, {}, [&](auto done) { server->Search(request, done); });
      if (!reply.ok()) {
        work.error = reply.status().ToString();
        return work;
      }
      const pb::RangeResult& result = reply->results(0);
      if (result.has_error()) {
        work.error = result.error().message();
        return work;
      }
      for (const pb::FoundRow& row : result.rows()) work.keys.push_back(row.key());
      work.entries += result.counters().entries_read();
      work.seeks += result.counters().index_seeks();
      work.rows_read += result.counters().rows_read();
      bool scanned = result.counters().scanned_regions() > 0;
      for (const pb::IndexUse& use : result.counters().uses()) {
        work.expected += use.entries_expected();
        scanned |= use.index_id() == 0;
        if (first) work.led[use.index_id()] += use.led();
        work.joined[use.index_id()] += use.joined();
      }
      for (const pb::Branch& branch : branches) scanned |= branch.streams().empty();
      if (scanned) work.rows_scanned += result.counters().rows_read();
      ++work.pages;
      request.mutable_ranges(0)->set_resume(result.resume());
    }
  }
  return work;
}

}  // namespace tamis
