// GlobalIndex: the coordinator's end of routing. Which regions can hold a value?
//
// It keeps a copy of what every region server feeds: its open regions, and for each complete index
// of a region the bit projection of its filter, all regions' projections bit-sliced in one
// FilterMatrix an index. A region is excluded only while all of this holds: the copy knows it as
// open, no other region of the copy overlaps it, the index is complete and its bits are here, the
// lease of its server is live, and the filter (or the range of its values) says no. Every other key
// is a candidate.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/routing/faults.h"
#include "tamis/routing/filter_matrix.h"
#include "tamis/routing/key_ranges.h"

namespace tamis {

// What routing needs of a predicate: hashes and encoded values instead of columns and values.
struct RoutingTerm {
  enum class Kind { kAll, kNone, kAnd, kOr, kValue, kRange };
  Kind kind = Kind::kAll;
  uint32_t index_id = 0;
  uint64_t hash = 0;      // kValue: of a leading prefix of the encoded values
  std::string first;      // kValue: the first encoded value
  std::string low, high;  // kRange: low <= first encoded value < high; empty high = no bound
  std::vector<RoutingTerm> children;

  static RoutingTerm All() { return {}; }
};

class GlobalIndex {
 public:
  struct Options {
    Duration lease_margin = std::chrono::milliseconds(20);  // taken off each lease
    uint64_t coordinator = 1;                               // this coordinator's number
    Faults faults;
  };

  explicit GlobalIndex(Options options);
  ~GlobalIndex();

  GlobalIndex(const GlobalIndex&) = delete;
  GlobalIndex& operator=(const GlobalIndex&) = delete;

  // The next poll for a server.
  pb::PollRequest NextPoll(const std::string& server, Duration wait) const;
  // Takes in the answer to a poll that was sent at `sent`. Any bytes are survived: an answer that
  // does not fit is ignored, and the next poll asks for everything.
  void Apply(const std::string& server, const pb::PollReply& reply, Time sent, Time now);

  // The server is gone: what it told is forgotten.
  void Forget(const std::string& server, Time now);

  struct Route {
    KeyRanges excluded;    // proven to hold no matching row, as of `now`
    uint64_t regions = 0;  // known regions that lie in the asked keys, at least in part
    uint64_t excluded_by_filter = 0;
    uint64_t excluded_by_range = 0;
    uint64_t unknown = 0;                 // candidates since their filters are not known
    std::vector<std::string> candidates;  // start keys of candidate regions, for EXPLAIN
  };
  // REQUIRES: now is at or after the start of the query.
  Route Find(uint32_t table_id, const KeyRanges& keys, const RoutingTerm& term, Time now) const;

  // True when every key of the table lies in a region all of whose listed indexes could be used
  // now.
  bool IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids, Time now) const;

  // Memory of all matrices.
  size_t SizeBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tamis
