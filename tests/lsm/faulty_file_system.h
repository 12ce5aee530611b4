// A file system that for a while fails, or is full, for RocksDB's files and for key files.
#pragma once

#include <rocksdb/file_system.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "tests/lsm/foreign_assertions.h"

namespace tamis::lsm {

class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  enum class Mood { kWell, kFull, kFailing };

  FaultyFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }

  void SetMood(Mood mood) { mood_ = mood; }

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* file,
                                    rocksdb::IODebugContext* debug) override {
    if (const auto refused = Refusal(); !refused.ok()) return refused;
    auto status = FileSystemWrapper::NewWritableFile(name, options, file, debug);
    if (status.ok()) *file = std::make_unique<File>(std::move(*file), this);
    return status;
  }
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override {
    if (const auto refused = Refusal(); !refused.ok()) return refused;
    return FileSystemWrapper::RenameFile(from, to, options, debug);
  }

 private:
  class File : public rocksdb::FSWritableFileOwnerWrapper {
   public:
    File(std::unique_ptr<rocksdb::FSWritableFile> file, const FaultyFileSystem* system)
        : FSWritableFileOwnerWrapper(std::move(file)), system_(system) {}
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             rocksdb::IODebugContext* debug) override {
      if (const auto refused = system_->Refusal(); !refused.ok()) return refused;
      return FSWritableFileOwnerWrapper::Append(data, options, debug);
    }
    rocksdb::IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                             const rocksdb::DataVerificationInfo&,
                             rocksdb::IODebugContext* debug) override {
      return Append(data, options, debug);
    }
    rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override {
      if (const auto refused = system_->Refusal(); !refused.ok()) return refused;
      return FSWritableFileOwnerWrapper::Sync(options, debug);
    }

   private:
    const FaultyFileSystem* const system_;
  };

  rocksdb::IOStatus Refusal() const {
    const Mood mood = mood_.load(std::memory_order_relaxed);
    if (mood != Mood::kWell) NoteFault();
    switch (mood) {
      case Mood::kWell:
        return rocksdb::IOStatus::OK();
      case Mood::kFull:
        return rocksdb::IOStatus::NoSpace("no byte is left");
      case Mood::kFailing: {
        auto status = rocksdb::IOStatus::IOError("the disk fails");
        status.SetRetryable(true);
        return status;
      }
    }
    return rocksdb::IOStatus::OK();
  }

  std::atomic<Mood> mood_{Mood::kWell};
};

}  // namespace tamis::lsm
