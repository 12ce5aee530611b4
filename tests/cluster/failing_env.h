// FailingEnv: a file system in memory whose logs take no more bytes while it is told so.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace tamis {

class FailingEnv : public rocksdb::EnvWrapper {
 public:
  FailingEnv() : FailingEnv(std::unique_ptr<rocksdb::Env>(NewMemEnv(rocksdb::Env::Default()))) {}

  void set_failing(bool failing) { failing_ = failing; }
  bool failing() const { return failing_; }

  rocksdb::Status NewWritableFile(const std::string& name,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    const rocksdb::Status status = rocksdb::EnvWrapper::NewWritableFile(name, file, options);
    if (status.ok() && name.ends_with(".log")) {
      *file = std::make_unique<Log>(std::move(*file), &failing_);
    }
    return status;
  }

 private:
  class Log : public rocksdb::WritableFileWrapper {
   public:
    Log(std::unique_ptr<rocksdb::WritableFile> file, const bool* failing)
        : WritableFileWrapper(file.get()), file_(std::move(file)), failing_(*failing) {}
    using rocksdb::WritableFileWrapper::Append;
    rocksdb::Status Append(const rocksdb::Slice& data) override {
      if (failing_) return rocksdb::Status::IOError("the disk takes no more bytes");
      return WritableFileWrapper::Append(data);
    }

   private:
    const std::unique_ptr<rocksdb::WritableFile> file_;
    const bool& failing_;
  };

  explicit FailingEnv(std::unique_ptr<rocksdb::Env> memory)
      : rocksdb::EnvWrapper(memory.get()), memory_(std::move(memory)) {}

  const std::unique_ptr<rocksdb::Env> memory_;
  bool failing_ = false;
};

}  // namespace tamis
