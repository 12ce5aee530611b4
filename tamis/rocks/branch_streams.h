// BranchStreams: the index streams of one branch in one region, and which of them has the fewest
// entries.
//
// The filter's counters bound an equality while its entries are few. The other streams are read
// side by side, some entries at a time, until one has ended: that one has the fewest. A stream of
// many ranges joins in when the others are as long as it costs to open it. When none ends within
// the entries that may be read for this, RocksDB's estimates decide; they are good for files and
// say little about memtables. The driving stream does not read again what was read ahead.
//
// Threads: exclusive access.
#pragma once

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/feed/index_filter.h"
#include "tamis/rocks/entry_groups.h"
#include "tamis/rocks/entry_rows.h"
#include "tamis/rocks/entry_stream.h"
#include "tamis/rocks/key_stream.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

// Whether the entry (encoded values, row key) lies in one of the stream's ranges.
bool IsInRanges(const pb::IndexStream& stream, std::string_view entry);

class BranchStreams {
 public:
  struct Stream {
    const pb::IndexStream* plan = nullptr;
    const IndexSpec* index = nullptr;
    std::shared_ptr<IndexFilter> filter;  // may be null
    bool may_lead = false;                // may drive the search (see Lead)
    KeyRange keys;
    std::string last;
    bool descending = false;
    ReadCounters read;
    std::optional<uint64_t> size;     // entries to come; nullopt: not looked for yet
    bool is_exact = false;            // `size` is counted or a bound by the filter; else estimated
    uint64_t probed = 0;              // entries read ahead to find `size`
    uint64_t expected = 0;            // for the driving stream: `size` when it was chosen
    std::optional<KeyStream> by_key;  // set by Open, if the stream is an equality
    std::optional<EntryStream> by_entry;  // set by Open, if it is not
    std::optional<EntryRows> rows;        // its entries give the rows of the branch, unread
    std::optional<EntryGroups> groups;    // rows are counted by the values of its entries
    uint64_t rows_in = 0;  // the number of rows looked at that have an entry in this stream
    bool led = false;      // was the driving stream
    bool joined = false;   // was joined with the driving stream (stream_joins.h)

    bool equality() const { return plan->equality(); }
    // All entries of the index, which serve a search only if they give the rows.
    bool IsWhole() const {
      return plan->ranges_size() == 1 && plan->ranges(0).low().empty() &&
             plan->ranges(0).high().empty();
    }
    Status status() const;
  };

  BranchStreams(const ServerContext& context, const rocksdb::ReadOptions& read_options,
                uint64_t region_id)
      : context_(context), read_options_(read_options), region_id_(region_id) {}

  // `stream` and `index` must outlive this; `keys` are the row keys that are still to come, `last`
  // the last entry that is done, in the order of a stream that is no equality.
  Stream* Add(const pb::IndexStream& stream, const IndexSpec& index,
              std::shared_ptr<IndexFilter> filter, bool may_lead, KeyRange keys, std::string last,
              bool descending);
  std::deque<Stream>& all() { return streams_; }

  // Chooses and opens the driving stream: of the streams that may lead, that of index `prefer` if
  // there is one, else the cheapest; nullptr when none may. Reads at most `probe` entries of each
  // ahead.
  Stream* Lead(uint32_t prefer, uint64_t probe);
  // Entries to come; exact up to `probe`, which are read ahead for that.
  uint64_t SizeOf(Stream* stream, uint64_t probe);
  void Open(Stream* stream);

  // Cost of the seek to the begin of a range, in entries read.
  static constexpr uint64_t kSeekCost = 8;
  // Cost of the seeks to all ranges of a stream but the first.
  static uint64_t OpeningCost(const Stream& stream) {
    return kSeekCost * static_cast<uint64_t>(std::max(stream.plan->ranges_size() - 1, 0));
  }

 private:
  bool ReadAhead(Stream* stream, size_t n);
  static size_t Ahead(const Stream& stream);
  std::optional<uint64_t> Bound(const Stream& stream) const;
  void NoteBound(Stream* stream) const;
  // Entries of the stream, without reading any.
  struct Estimate {
    uint64_t likely = ~uint64_t{0};
    uint64_t least = 0;
    uint64_t most = ~uint64_t{0};
  };
  Estimate EstimateOf(const Stream& stream) const;
  void LeaveOutLarger(uint64_t probe, std::vector<Stream*>* streams) const;
  static uint64_t Handicap(const Stream& stream);
  Stream* Smallest(uint64_t probe);

  const ServerContext& context_;
  const rocksdb::ReadOptions& read_options_;
  const uint64_t region_id_;
  std::deque<Stream> streams_;  // they are pointed to
};

}  // namespace tamis
