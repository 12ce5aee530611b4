// BranchStreams: the index streams of one branch in one region, and which of them has the fewest
// entries.
//
// The filter's counters bound an equality while its entries are few. The others are read side by
// side, a few entries at a time, until one has ended: that one has the fewest. When none ends
// within probe_entries, RocksDB's estimates decide. What was read ahead is not read again by the
// stream that leads.
//
// Threads: exclusive access.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tamis/rocks/entry_stream.h"
#include "tamis/rocks/key_stream.h"
#include "tamis/rocks/server_context.h"
#include "tamis/routing/index_filter.h"

namespace tamis {

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
    uint64_t expected = 0;            // the same, of one that leads, as far as it was known then
    std::optional<KeyStream> by_key;  // once opened, of an equality
    std::optional<EntryStream> by_entry;  // once opened, of others
    uint64_t rows_in = 0;  // of the rows looked at, those with an entry in this stream
    bool led = false;
    bool joined = false;

    bool equality() const { return plan->equality(); }
    rocksdb::Status status() const;
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
  // among them. nullptr when none may.
  Stream* Lead(uint32_t prefer);
  // Entries to come; exact while there are few. Reads at most probe_entries ahead.
  uint64_t SizeOf(Stream* stream);
  void Open(Stream* stream);

 private:
  bool ReadAhead(Stream* stream, size_t n);
  static size_t Ahead(const Stream& stream);
  std::optional<uint64_t> Bound(const Stream& stream) const;
  uint64_t Estimate(const Stream& stream) const;
  Stream* Smallest();

  const ServerContext& context_;
  const rocksdb::ReadOptions& read_options_;
  const uint64_t region_id_;
  std::deque<Stream> streams_;  // they are pointed to
};

}  // namespace tamis
