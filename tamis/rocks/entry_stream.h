// EntryStream: the entries of one index of one region that lie in given ranges, in their order or
// in the reverse order.
//
// Threads: exclusive access.
#pragma once

#include <optional>
#include <string>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/entry_queue.h"
#include "tamis/rocks/key_stream.h"

namespace tamis {

class EntryStream {
 public:
  // Reads the entries after `last` in its order; all entries when it is empty. `stream` must
  // outlive this.
  EntryStream(const Store& store, const rocksdb::ReadOptions& read_options,
              std::string index_prefix, const pb::IndexStream& stream, std::string last,
              bool descending, ReadCounters* counters);

  // Encoded values, then row key; nullopt when there are no more. Valid until the next call.
  std::optional<std::string_view> Next();
  // The included columns of the entry that Next returned last; valid until the next call.
  std::string_view value() const { return value_; }

  // Reads until `ahead` holds the next n entries, all that are left (then it returns true), or
  // EntryQueue::kMaxBytes. Next takes entries from there and reads none of them again.
  bool ReadAhead(size_t n);
  const EntryQueue& ahead() const { return ahead_; }

  Status status() const { return entries_.status(); }

 private:
  bool Advance();
  const pb::IndexRange& Range() const;
  // Whether the ends of the range, or `last`, leave it no entry.
  bool IsDone(const pb::IndexRange& range) const;
  void EnterRange(const pb::IndexRange& range);
  bool IsWithin(const pb::IndexRange& range) const;

  const pb::IndexStream& stream_;
  const std::string last_;
  const bool descending_;
  ReadCounters* const counters_;
  EntryCursor entries_;
  int ranges_passed_ = 0;
  bool in_range_ = false;  // the cursor is
  EntryQueue ahead_;
  EntryQueue::Item taken_;  // taken from `ahead_`
  std::string_view value_;
};

}  // namespace tamis
