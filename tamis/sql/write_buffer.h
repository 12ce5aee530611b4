// WriteBuffer: the writes of one table that have not been sent yet.
//
// In an explicit transaction everything waits for COMMIT, up to a bound; savepoints cut the buffer
// back. A statement of its own is sent in batches as it runs and at its end. Rows are atomic, the
// batch is not: what stood before a failure stands, and the message says how much that was.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tamis/query/engine.h"

namespace tamis {

class WriteBuffer {
 public:
  // Rows that one transaction may hold back.
  static constexpr size_t kMaxTransactionWrites = 1'000'000;

  struct Options {
    bool ignore_existing = false;  // INSERT OR IGNORE: an existing row stays, and is no error
    std::string conflict;          // what the message says when the row is there already
  };

  void Add(std::string key, Write write, const Options& options);
  // The row has a write that has not been sent.
  bool Holds(const std::string& key) const { return keys_.contains(key); }
  size_t size() const { return writes_.size(); }

  // Sends everything, in order: a write never overtakes an earlier one of the same row.
  Status Send(Engine* engine, const SchemaPtr& schema);
  void Clear();

  void Savepoint(int number);
  void RollbackTo(int number);
  void Release(int number);

 private:
  struct Entry {
    std::string key;
    Write write;
    Options options;
  };
  std::vector<Entry> writes_;
  std::multiset<std::string> keys_;
  std::vector<std::pair<int, size_t>> savepoints_;  // number, size of writes_ then
};

}  // namespace tamis
