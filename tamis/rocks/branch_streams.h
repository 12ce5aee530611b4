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
    bool may_lead = false;
    KeyRange keys;
    std::string last;
    ReadCounters read;
    std::optional<uint64_t> size;     // entries to come, as they were known first
    bool is_exact = false;            // the size: bounded by the filter, or counted
    uint64_t probed = 0;              // entries read ahead to find it out
    uint64_t expected = 0;            // the same, of one that leads, as far as it was known then
    std::optional<KeyStream> by_key;  // once opened, of an equality
    std::optional<EntryStream> by_entry;  // once opened, of others
    uint64_t rows_in = 0;  // of the rows looked at, those with an entry in this stream
    bool led = false;
    bool joined = false;

    bool equality() const { return plan->equality(); }
    Status status() const;
  };

  BranchStreams(const ServerContext& context, const rocksdb::ReadOptions& read_options,
                uint64_t region_id)
      : context_(context), read_options_(read_options), region_id_(region_id) {}

  // `stream` and `index` must outlive this; `keys` are the row keys that are still to come, `last`
  // the last entry that is done, in the order of a stream that is no equality.
  void Add(const pb::IndexStream& stream, const IndexSpec& index,
           std::shared_ptr<IndexFilter> filter, bool may_lead, KeyRange keys, std::string last);
  std::deque<Stream>& all() { return streams_; }

  // The one that costs least of those that may lead, opened; the one of index `prefer` if that is
  // among them. nullptr when none may. Reads at most so many entries of each ahead.
  Stream* Lead(uint32_t prefer, uint64_t probe);
  // Entries to come; exact up to `probe`, which are read ahead for that.
  uint64_t SizeOf(Stream* stream, uint64_t probe);
  void Open(Stream* stream);

  // To begin a range costs as much as reading so many entries.
  static constexpr uint64_t kSeekCost = 8;
  // To begin the ranges of a stream behind the first.
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
