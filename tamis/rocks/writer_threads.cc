#include "tamis/rocks/writer_threads.h"

#include <atomic>
#include <future>

#include "tamis/base/waits_for_memory.h"

namespace tamis {
namespace {

uint64_t NewId() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// The bytes that the thread has written to the store that it wrote to last.
struct Written {
  uint64_t store = 0;
  uint64_t entries = 0;
};
thread_local Written written;

// The only calls of RocksDB's Write. A stack of the thread sanitizer has the calls of our functions
// and none of RocksDB's, so it ends in WriteToRocksDb, which tests/tsan.supp names.
[[gnu::noinline]] rocksdb::Status CallWrite(rocksdb::DB* db,
                                            const rocksdb::WriteOptions& write_options,
                                            rocksdb::WriteBatch* batch) {
  return db->Write(write_options, batch);
}

[[gnu::noinline]] rocksdb::Status WriteToRocksDb(rocksdb::DB* db,
                                                 const rocksdb::WriteOptions& write_options,
                                                 rocksdb::WriteBatch* batch) noexcept {
  const WaitsForMemory waits;
  return CallWrite(db, write_options, batch);
}

}  // namespace

WriterThreads::WriterThreads(rocksdb::DB* db, const Options& options)
    : db_(db), options_(options), id_(NewId()) {}

WriterThreads::~WriterThreads() = default;

ThreadExecutor& WriterThreads::pool() {
  std::lock_guard lock(mutex_);
  if (!pool_) pool_ = std::make_unique<ThreadExecutor>(options_.max_threads);
  return *pool_;
}

bool WriterThreads::HandsOver(uint64_t entries) const {
  if (written.store != id_) written = {.store = id_};
  if (written.entries >= options_.handed_entries) return false;
  written.entries += entries;
  return true;
}

rocksdb::Status WriterThreads::Write(const rocksdb::WriteOptions& write_options,
                                     rocksdb::WriteBatch* batch) {
  const auto write = [&]() noexcept { return WriteToRocksDb(db_, write_options, batch); };
  if (!HandsOver(batch->Count())) return write();
  const auto task = std::make_shared<std::packaged_task<rocksdb::Status()>>(write);
  std::future<rocksdb::Status> written_there = task->get_future();
  pool().Post([task] { (*task)(); });
  return written_there.get();
}

}  // namespace tamis
