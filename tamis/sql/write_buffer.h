// WriteBuffer: the writes of one table that have not been sent yet.
//
// In an explicit transaction everything waits for COMMIT, up to a bound; savepoints cut the buffer
// back. A statement of its own is sent in batches as it runs and at its end. Rows are atomic, the
// batch is not: what stood before a failure stands, and the message says how much that was.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tamis/query/engine.h"

namespace tamis {

class WriteBuffer {
 public:
  // Rows that one transaction may hold back.
  static constexpr size_t kMaxTransactionWrites = 1'000'000;

  struct Options {
    bool ignore_existing = false;      // INSERT OR IGNORE: an existing row stays, and is no error
    std::string conflict;              // the message when the row is there already
    bool only_after_previous = false;  // done only when the write added before it was done
  };

  // Adds nothing when it throws std::bad_alloc.
  void Add(std::string key, Write write, const Options& options);
  // The row has a write that has not been sent.
  bool Holds(const std::string& key) const { return last_.contains(key); }
  // The kind of the last such write.
  std::optional<Write::Kind> LastKind(const std::string& key) const;
  size_t size() const { return writes_.size(); }

  // Sends everything, in order: a write never overtakes an earlier one of the same row. Nothing
  // more is sent once `cancelled` is true. Empty afterwards, also after an exception; what was sent
  // before it may stand.
  Status Send(Engine* engine, const SchemaPtr& schema, const std::atomic<bool>& cancelled);
  void Clear();

  // Numbered as SQLite numbers them, from 0; rolling back to -1 rolls back to the begin of the
  // transaction. A table that joins late hears of the innermost savepoint only: the buffer is empty
  // then, and was so at the outer ones.
  void Savepoint(int number);
  void RollbackTo(int number);
  void Release(int number);

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  struct Entry {
    std::string key;
    Write write;
    Options options;
    size_t previous = kNone;  // the write of this key before this one
  };
  std::vector<Entry> writes_;
  std::unordered_map<std::string, size_t> last_;  // the last write of each key
  std::vector<size_t> marks_;                     // by savepoint: the size of writes_ then
};

}  // namespace tamis
