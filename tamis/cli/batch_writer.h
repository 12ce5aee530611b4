// BatchWriter: puts rows into a table, in batches: one is written by a thread of its own while the
// next one is gathered.
//
// Errors name the line of the record. After an error nothing more is to be added.
//
// Threads: exclusive access, but for written().
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/query/engine.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

class BatchWriter {
 public:
  static constexpr size_t kBatchBytes = size_t{8} << 20;

  // `cancelled`, which may be null, ends the writing of a batch. The engine outlives this.
  BatchWriter(Engine* engine, SchemaPtr schema, const std::atomic<bool>* cancelled)
      : engine_(*engine), schema_(std::move(schema)), cancelled_(cancelled) {}

  // `size_bytes`: the memory of the row, about. An error is one of an earlier row.
  Status Add(std::string key, Row row, uint64_t line, size_t size_bytes);
  // Drops the rows that were gathered, unless one before them is being written already.
  void DropUnlessWriting() {
    if (written_ == 0 && !writing_.valid()) batch_ = {};
  }
  // Writes the rest, and waits for it.
  Status Finish();

  uint64_t added() const { return added_; }                            // rows
  uint64_t written() const { return written_; }                        // rows
  uint64_t replaced() const { return replaced_; }                      // rows whose key came again
  bool knows_all_keys() const { return keys_.size() < kCountedKeys; }  // else more were replaced

  static Status Interrupted() {
    return Cancelled("interrupted; run the same command again to go on");
  }

 private:
  static constexpr size_t kBatch = 1000;
  static constexpr size_t kCountedKeys = 1'000'000;  // some 40 bytes each

  struct Batch {
    std::vector<Write> writes;
    std::vector<uint64_t> lines;  // lines of the records
    std::set<std::string> keys;
    size_t size_bytes = 0;
  };

  void NoteKey(const std::string& key);
  // Hands the batch to the thread, once it has done with the one before.
  Status Flush();
  Status Deliver(Batch batch);

  Engine& engine_;
  const SchemaPtr schema_;
  const std::atomic<bool>* const cancelled_;
  Batch batch_;
  std::unordered_set<uint64_t> keys_;  // hashes of those put so far, kCountedKeys at most
  uint64_t added_ = 0;
  uint64_t replaced_ = 0;
  std::atomic<uint64_t> written_ = 0;
  std::future<Status> writing_;
  boost::asio::thread_pool thread_{1};
};

}  // namespace tamis
