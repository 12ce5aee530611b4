// GlobalIndex: the coordinator's end of routing. Which regions can hold a value?
//
// It keeps a copy of the state that every region server sends in its feed: the open regions,
// ordered by key in one TableLayout a table; and for each complete index of a region, the bits of
// its filter and the range of its values, in one IndexCopies an index. A search may skip a region
// (the region is excluded) only while all of the following hold:
//
//   the copy has the region as open
//   the lease of its server is live
//   no other region of the copy, whose server has a live lease, overlaps it
//   the index is complete and its bits have arrived
//   the filter, the cells, or the range of the values says that the region has no such value
//
// Every key that is in no excluded region is a candidate: the search must ask its region.
//
// Threads: safe. A reply is applied in pieces of about ten microseconds, and searches can run
// between two pieces: after each piece the copy corresponds to one number of the server's sequence.
// Replies of one server are applied one after the other, replies of different servers
// independently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/faults.h"
#include "tamis/routing/exclusion_reasons.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/routing/region_bounds.h"
#include "tamis/routing/routing_term.h"

namespace tamis {

class GlobalIndex {
 public:
  struct Options {
    Duration lease_margin = std::chrono::milliseconds(20);  // subtracted from each lease
    uint64_t coordinator = 1;                               // this coordinator's number
    // Bound of all matrices together. Where bits do not fit, filters keep fewer slices, the same of
    // all regions of an index that have filters of one size, down to one slice. Bits that do not
    // fit then are not requested; their regions stay candidates. Slices do not come back until all
    // filters of that size are dropped.
    size_t max_bytes = size_t{16} << 30;
    Faults faults;
  };

  explicit GlobalIndex(Options options);
  ~GlobalIndex();

  GlobalIndex(const GlobalIndex&) = delete;
  GlobalIndex& operator=(const GlobalIndex&) = delete;

  // The next poll for a server.
  pb::PollRequest NextPoll(const std::string& server, Duration wait) const;
  // Applies the reply to a poll that was sent at `sent`. Any content is safe: a reply that does not
  // follow from the copy is ignored, and the next poll requests what is missing.
  void Apply(const std::string& server, const pb::PollReply& reply, Time sent, Time now);

  // Removes the server and all of its regions from the copy.
  void Forget(const std::string& server, Time now);

  struct Route {
    KeyRanges excluded;  // proven to hold no matching row, as of `now`
  };
  // REQUIRES: now is at or after the start of the query.
  Route Find(uint32_t table_id, const KeyRanges& keys, const RoutingTerm& term, Time now) const;

  using Bound = RegionBound;
  using Wanted = WantedValues;
  // The bounds of the regions that overlap the keys, in key order, as of `now`. A bound holds while
  // a filter would: regions that Find could not exclude, whatever it is asked, are not here.
  // REQUIRES: now is at or after the start of the query.
  std::vector<Bound> Bounds(uint32_t table_id, const KeyRanges& keys, uint32_t index_id,
                            bool largest, Time now, const Wanted& wanted = {}) const;

  using Reason = ExclusionReasons::Reason;
  using Reasons = ExclusionReasons;
  // For each region that overlaps the searched keys: why it was excluded, or that it was not.
  // `excluded` is the result of Find. Ranges and filters are evaluated as they are now.
  Reasons Explain(uint32_t table_id, const KeyRanges& keys, const RoutingTerm& term,
                  const KeyRanges& excluded, Time now, bool each_excluded = false) const;

  // True when every key of the table lies in a known region of a server with a live lease, and each
  // listed index of each region is usable now, or its bits find no room within Options::max_bytes.
  bool IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids, Time now) const;
  // The numbers of the table's regions that a search by any of the indexes may be able to exclude:
  // their servers have live leases, and the bits of each index are here.
  std::vector<uint64_t> Routed(uint32_t table_id, const std::vector<uint32_t>& index_ids,
                               Time now) const;

  struct Stats {
    uint64_t servers = 0;
    uint64_t regions = 0;
    uint64_t regions_unplaced = 0;  // not used since other regions overlap them (TableLayout)
    uint64_t indexes_missing = 0;   // pairs of region and index whose bits have not arrived
    uint64_t indexes_left_out = 0;  // the pairs among these whose bits max_bytes has no room for
    uint64_t filters_coarse = 0;    // filters, by layers, that keep fewer slices than they have
    size_t matrix_bytes = 0;
    size_t max_bytes = 0;
    uint64_t servers_without_lease = 0;  // at `now`: their regions are always asked
    uint64_t events = 0;                 // events of servers, taken in since the start
  };
  Stats stats(Time now = Time::min()) const;
  // Memory of all matrices.
  size_t SizeBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tamis
