// StoreLog: RocksDB's own log, the file LOG of a store. Unlike RocksDB's logger it does not mind
// that it cannot be written: on a full disk that one ends the process, where RocksDB is built with
// assertions (Debian's is).
#pragma once

#include <rocksdb/env.h>

#include <cstdio>
#include <mutex>
#include <string>

namespace tamis {

class StoreLog : public rocksdb::Logger {
 public:
  // The log of the opening before becomes LOG.old. An empty directory: nothing is logged.
  explicit StoreLog(const std::string& directory);
  ~StoreLog() override;

  using rocksdb::Logger::Logv;
  void Logv(const char* format, va_list arguments) override;

 private:
  std::mutex mutex_;
  FILE* file_ = nullptr;
};

}  // namespace tamis
