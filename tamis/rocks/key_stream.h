// KeyStream: the row keys of the index entries with given values, in row-key order; several values
// are merged.
//
// Threads: exclusive access.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tamis/cluster/cluster.pb.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/entry_queue.h"
#include "tamis/table/key_range.h"

namespace tamis {

struct ReadCounters {
  uint64_t index_seeks = 0;
  uint64_t entries_read = 0;  // only entries that lie in the stream
  uint64_t rows_read = 0;
  uint64_t rows_from_entries = 0;
  uint64_t cells_undecodable = 0;
  uint64_t rows_unparsed = 0;
};

class KeyStream {
 public:
  // Reads the entries of the row keys in `keys`.
  KeyStream(const Store& store, const rocksdb::ReadOptions& read_options,
            const std::string& index_prefix, const pb::IndexStream& stream, KeyRange keys,
            ReadCounters* counters);

  // The first row key >= target; nullopt when there is none. Targets must not fall.
  std::optional<std::string> Seek(const std::string& target);
  // The encoded values, and the included columns, of an entry with the key that Seek returned last.
  std::string_view values() const { return found_->value; }
  std::string_view included() const { return found_->ahead.front().value; }

  // Reads ahead until n keys are held, all values together, or all that are left (then it returns
  // true), or EntryQueue::kMaxBytes. Seek reads none of them again.
  bool ReadAhead(size_t n);
  size_t ahead() const;

  Status status() const;

 private:
  struct KeysOfValue {
    KeysOfValue(const Store& store, const std::string& index_prefix, std::string value,
                const rocksdb::ReadOptions& read_options)
        : value(std::move(value)), entries(store, index_prefix + this->value, read_options) {}

    const std::string value;  // encoded
    EntryCursor entries;      // the row key follows the value
    EntryQueue ahead;         // keys read and not passed
    bool started = false;
    bool ended = false;  // no keys are left except those in `ahead`
  };
  void Advance(KeysOfValue* keys, const std::string& target);
  void SeekTo(KeysOfValue* keys, const std::string& target);
  void Take(KeysOfValue* keys);

  const KeyRange keys_;
  const KeysOfValue* found_ = nullptr;
  std::deque<KeysOfValue> values_;
  ReadCounters* const counters_;
};

}  // namespace tamis
