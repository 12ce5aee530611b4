// FailingEnv: a file system in memory whose logs take no more bytes while it is told so: because
// the disk fails, which ends a RocksDB, or because it is full, which does not, and which no other
// file has room on either.
#pragma once

#include <rocksdb/env.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace tamis {

class FailingEnv : public rocksdb::EnvWrapper {
 public:
  FailingEnv() : FailingEnv(std::unique_ptr<rocksdb::Env>(NewMemEnv(rocksdb::Env::Default()))) {}

  void set_failing(bool failing) { failing_ = failing; }
  bool failing() const { return failing_; }

  // After so many more pieces of logs have been taken there is no room for another, until
  // `MakeRoom`.
  void FillUpAfter(uint64_t pieces) { room_ = pieces; }
  void MakeRoom() { room_ = ~uint64_t{0}; }
  bool full() const { return room_ == 0; }

  // Files of index entries that are copied for a split take nothing: other files have room.
  void set_failing_copies(bool failing) { failing_copies_ = failing; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = rocksdb::EnvWrapper::NewWritableFile(name, file, options);
    const bool log = name.ends_with(".log"), copy = name.ends_with(".entries");
    if (copy && failing_copies_) return rocksdb::Status::NoSpace("no room for a copy");
    if (status.ok() && (log || copy || name.ends_with(".sst"))) {
      *file = std::make_unique<File>(std::move(*file), log, this);
    }
    return status;
  }

 private:
  class File : public rocksdb::WritableFileWrapper {
   public:
    File(std::unique_ptr<rocksdb::WritableFile> file, bool log, FailingEnv* env)
        : WritableFileWrapper(file.get()), file_(std::move(file)), log_(log), env_(*env) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (env_.failing_ && log_) return rocksdb::Status::IOError("the disk takes no more bytes");
      if (env_.room_ == 0) return rocksdb::Status::NoSpace("no room for more bytes");
      if (env_.room_ != ~uint64_t{0} && log_) --env_.room_;
      return WritableFileWrapper::Append(data);
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    const bool log_;
    FailingEnv& env_;
  };

  explicit FailingEnv(std::unique_ptr<rocksdb::Env> memory)
      : rocksdb::EnvWrapper(memory.get()), memory_(std::move(memory)) {}

  const std::unique_ptr<rocksdb::Env> memory_;
  std::atomic<bool> failing_ = false;
  std::atomic<uint64_t> room_ = ~uint64_t{0};
  std::atomic<bool> failing_copies_ = false;
};

}  // namespace tamis
