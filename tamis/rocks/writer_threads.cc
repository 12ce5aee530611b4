#include "tamis/rocks/writer_threads.h"

#include <atomic>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <system_error>

#include "tamis/base/waits_for_memory.h"

namespace tamis {
namespace {

namespace asio = boost::asio;

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

}  // namespace

struct WriterThreads::Pool {
  // Throws std::system_error when no thread can be started, as std::thread does.
  explicit Pool(int threads) try : threads(static_cast<size_t>(threads)) {
  } catch (const boost::system::system_error& error) {
    throw std::system_error(error.code());
  }
  ~Pool() { threads.join(); }
  asio::thread_pool threads;
};

WriterThreads::WriterThreads(rocksdb::DB* db, const Options& options)
    : db_(db), options_(options), id_(NewId()) {}

WriterThreads::~WriterThreads() = default;

WriterThreads::Pool& WriterThreads::pool() {
  std::lock_guard lock(mutex_);
  if (!pool_) pool_ = std::make_unique<Pool>(options_.max_threads);
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
  const auto write = [&]() noexcept {
    const WaitsForMemory waits;
    return db_->Write(write_options, batch);
  };
  if (!HandsOver(batch->Count())) return write();
  return asio::post(pool().threads, asio::use_future(write)).get();
}

}  // namespace tamis
