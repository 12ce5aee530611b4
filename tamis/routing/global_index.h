// GlobalIndex: the coordinator's end of routing. Which regions can hold a value?
//
// It keeps a copy of what every region server feeds: its open regions, placed by key in a
// TableLayout for each table, and for each complete index of a region the bit projection of its
// filter and the range of its values, side by side in IndexCopies for each index. A region is
// excluded only while all of this holds: the copy knows it as open, no other region of the copy
// overlaps it but such whose server has no lease, the index is complete and its bits are here, the
// lease of its server is live, and the filter (or the range of its values) says no. Every other key
// is a candidate.
//
// Threads: safe. Replies are taken in piece by piece, each of some ten microseconds, and searches
// come in between: after each piece the copy is as of some number of the server's sequence. Replies
// of one server wait for each other, those of different servers do not.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/faults.h"
#include "tamis/routing/filter_matrix.h"
#include "tamis/routing/key_ranges.h"
#include "tamis/routing/routing_term.h"

namespace tamis {

class GlobalIndex {
 public:
  struct Options {
    Duration lease_margin = std::chrono::milliseconds(20);  // taken off each lease
    uint64_t coordinator = 1;                               // this coordinator's number
    // Bound of all matrices together. Bits that do not fit are not requested; their regions stay
    // candidates.
    size_t max_bytes = size_t{16} << 30;
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
    KeyRanges excluded;  // proven to hold no matching row, as of `now`
  };
  // REQUIRES: now is at or after the start of the query.
  Route Find(uint32_t table_id, const KeyRanges& keys, const RoutingTerm& term, Time now) const;

  // Why each region that overlaps the asked keys was excluded, for people; a search does not need
  // it. Walks over all these regions.
  struct Reasons {
    uint64_t regions = 0;
    uint64_t excluded_by_filter = 0;
    uint64_t excluded_by_range = 0;
    // Asked since their filters are not known; or were not when they were asked: who asked a region
    // that would be excluded now had no lease on it then, or no bits.
    uint64_t unknown = 0;
    std::vector<std::string> candidates;  // start keys of the others that are asked
  };
  // `excluded` is what Find answered; ranges and filters are asked as they are now.
  Reasons Explain(uint32_t table_id, const KeyRanges& keys, const RoutingTerm& term,
                  const KeyRanges& excluded, Time now) const;

  // True when every key of the table lies in a region all of whose listed indexes could be used
  // now, but for those whose bits find no room.
  bool IsComplete(uint32_t table_id, const std::vector<uint32_t>& index_ids, Time now) const;

  struct Stats {
    uint64_t servers = 0;
    uint64_t regions = 0;
    uint64_t regions_aside = 0;     // overlapped by others: candidates, or history
    uint64_t indexes_missing = 0;   // of regions; their bits are to be asked for
    uint64_t indexes_left_out = 0;  // of these, those that max_bytes has no room for
    size_t matrix_bytes = 0;
    size_t max_bytes = 0;
  };
  Stats stats() const;
  // Memory of all matrices.
  size_t SizeBytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tamis
