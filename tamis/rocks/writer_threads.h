// WriterThreads: writes batches to a RocksDB from threads that live as long as the store.
//
// RocksDB's memtable is a skip list. How high an entry stands in it is drawn by a generator that
// belongs to the writing thread and is seeded by the thread's id; the system uses ids again. So
// threads that come and go, one a batch or one a request, all draw the same first heights: the list
// stays low, and finding a place in it becomes linear in its length.
//
// The first entries of each thread are therefore handed to threads of the store's own, and the
// caller waits. A thread that has written more has shown that it stays, and writes on its own:
// handing over costs two changes of thread. With `handed` entries handed over and m written after
// that, all threads of one id have their m in the same heights, but between them stand the handed
// ones: a search steps over at most m / handed of them, or over one for each such thread that wrote
// to the memtable, whichever is less.
//
// Threads: safe.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "tamis/base/thread_executor.h"

namespace tamis {

class WriterThreads {
 public:
  struct Options {
    uint64_t handed_entries = 4096;  // entries of each thread; 0: every thread writes on its own
    // RocksDB can commit this many batches as one group, with one write to the log.
    int max_threads = 32;
  };

  // Starts no thread before one is needed. The database must outlive the writers.
  WriterThreads(rocksdb::DB* db, const Options& options);
  // Waits for what was begun.
  ~WriterThreads();

  rocksdb::Status Write(const rocksdb::WriteOptions& write_options, rocksdb::WriteBatch* batch);

 private:
  // Whether the thread that calls has to hand over a batch of so many entries.
  bool HandsOver(uint64_t entries) const;
  // Throws std::system_error when its threads cannot be started.
  ThreadExecutor& pool();

  rocksdb::DB* const db_;
  const Options options_;
  const uint64_t id_;  // the id of this object, never given twice
  std::mutex mutex_;
  std::unique_ptr<ThreadExecutor> pool_;
};

}  // namespace tamis
