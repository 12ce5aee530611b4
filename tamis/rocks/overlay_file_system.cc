#include "tamis/rocks/overlay_file_system.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tamis {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;

class SharedLock : public rocksdb::FileLock {
 public:
  explicit SharedLock(int file) : file_(file) {}
  ~SharedLock() override {
    if (file_ >= 0) (void)::close(file_);
  }

 private:
  const int file_;  // -1: there is no file to lock
};

IOStatus NotHere(const std::string& name) {
  return IOStatus::PathNotFound(name, "No such file or directory");
}

IOStatus Refused(const std::string& name) {
  return IOStatus::NotSupported("the store is open for reading only", name);
}

}  // namespace

OverlayFileSystem::OverlayFileSystem(rocksdb::Env* below)
    : FileSystemWrapper(below->GetFileSystem()),
      memory_env_(rocksdb::NewMemEnv(below)),
      memory_(*memory_env_->GetFileSystem()) {}

bool OverlayFileSystem::IsInMemory(const std::string& name) {
  return memory_.FileExists(name, IOOptions(), nullptr).ok();
}

bool OverlayFileSystem::IsDeleted(const std::string& name) {
  std::lock_guard lock(mutex_);
  return deleted_.contains(name);
}

rocksdb::FileSystem* OverlayFileSystem::Of(const std::string& name) {
  if (IsInMemory(name)) return &memory_;
  return IsDeleted(name) ? nullptr : target();
}

// ---- Reading

IOStatus OverlayFileSystem::NewSequentialFile(const std::string& name, const FileOptions& options,
                                              std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                              IODebugContext* debug) {
  rocksdb::FileSystem* const of = Of(name);
  return of == nullptr ? NotHere(name) : of->NewSequentialFile(name, options, file, debug);
}

IOStatus OverlayFileSystem::NewRandomAccessFile(const std::string& name, const FileOptions& options,
                                                std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                IODebugContext* debug) {
  rocksdb::FileSystem* const of = Of(name);
  return of == nullptr ? NotHere(name) : of->NewRandomAccessFile(name, options, file, debug);
}

IOStatus OverlayFileSystem::FileExists(const std::string& name, const IOOptions& options,
                                       IODebugContext* debug) {
  rocksdb::FileSystem* const of = Of(name);
  return of == nullptr ? NotHere(name) : of->FileExists(name, options, debug);
}

IOStatus OverlayFileSystem::GetChildren(const std::string& directory, const IOOptions& options,
                                        std::vector<std::string>* names, IODebugContext* debug) {
  IOStatus below = target()->GetChildren(directory, options, names, debug);
  if (!below.ok()) return below;
  std::erase_if(*names, [&](const std::string& name) { return IsDeleted(directory + "/" + name); });
  std::vector<std::string> added;
  if (!memory_.GetChildren(directory, options, &added, debug).ok()) return IOStatus::OK();
  names->insert(names->end(), added.begin(), added.end());
  std::ranges::sort(*names);
  names->erase(std::unique(names->begin(), names->end()), names->end());
  return IOStatus::OK();
}

IOStatus OverlayFileSystem::GetChildrenFileAttributes(
    const std::string& directory, const IOOptions& options,
    std::vector<rocksdb::FileAttributes>* attributes, IODebugContext* debug) {
  // By GetChildren and GetFileSize, as the base class of all file systems does it.
  return FileSystem::GetChildrenFileAttributes(  // NOLINT(bugprone-parent-virtual-call)
      directory, options, attributes, debug);
}

IOStatus OverlayFileSystem::GetFileSize(const std::string& name, const IOOptions& options,
                                        uint64_t* bytes, IODebugContext* debug) {
  rocksdb::FileSystem* const of = Of(name);
  return of == nullptr ? NotHere(name) : of->GetFileSize(name, options, bytes, debug);
}

IOStatus OverlayFileSystem::GetFileModificationTime(const std::string& name,
                                                    const IOOptions& options, uint64_t* time,
                                                    IODebugContext* debug) {
  rocksdb::FileSystem* const of = Of(name);
  return of == nullptr ? NotHere(name) : of->GetFileModificationTime(name, options, time, debug);
}

// ---- Changes

IOStatus OverlayFileSystem::NewWritableFile(const std::string& name, const FileOptions& options,
                                            std::unique_ptr<rocksdb::FSWritableFile>* file,
                                            IODebugContext* debug) {
  return memory_.NewWritableFile(name, options, file, debug);
}

IOStatus OverlayFileSystem::NewDirectory(const std::string& name, const IOOptions& options,
                                         std::unique_ptr<rocksdb::FSDirectory>* directory,
                                         IODebugContext* debug) {
  (void)memory_.CreateDirIfMissing(name, options, debug);
  return memory_.NewDirectory(name, options, directory, debug);
}

IOStatus OverlayFileSystem::CreateDir(const std::string& name, const IOOptions& options,
                                      IODebugContext* debug) {
  if (target()->FileExists(name, options, debug).ok()) {
    return IOStatus::IOError(name, "it exists already");
  }
  return memory_.CreateDir(name, options, debug);
}

IOStatus OverlayFileSystem::CreateDirIfMissing(const std::string& name, const IOOptions& options,
                                               IODebugContext* debug) {
  if (target()->FileExists(name, options, debug).ok()) return IOStatus::OK();
  return memory_.CreateDirIfMissing(name, options, debug);
}

IOStatus OverlayFileSystem::DeleteFile(const std::string& name, const IOOptions& options,
                                       IODebugContext* debug) {
  const bool was_in_memory = memory_.DeleteFile(name, options, debug).ok();
  const bool is_below = !IsDeleted(name) && target()->FileExists(name, options, debug).ok();
  if (is_below) {
    std::lock_guard lock(mutex_);
    deleted_.insert(name);
  }
  return was_in_memory || is_below ? IOStatus::OK() : NotHere(name);
}

IOStatus OverlayFileSystem::RenameFile(const std::string& from, const std::string& to,
                                       const IOOptions& options, IODebugContext* debug) {
  return IsInMemory(from) ? memory_.RenameFile(from, to, options, debug) : Refused(from);
}

IOStatus OverlayFileSystem::LockFile(const std::string& name, const IOOptions& /*options*/,
                                     rocksdb::FileLock** lock, IODebugContext* /*debug*/) {
  const int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 && errno != ENOENT) return IOStatus::IOError(name, std::strerror(errno));
  auto held = std::make_unique<SharedLock>(file);
  struct flock shared = {};
  shared.l_type = F_RDLCK;
  shared.l_whence = SEEK_SET;
  // File systems without locks cannot have a writer with one.
  if (file >= 0 && ::fcntl(file, F_SETLK, &shared) != 0 && errno != ENOLCK && errno != ENOTSUP) {
    return IOStatus::IOError("While lock file: " + name, std::strerror(errno));
  }
  *lock = held.release();
  return IOStatus::OK();
}

IOStatus OverlayFileSystem::UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/,
                                       IODebugContext* /*debug*/) {
  delete lock;
  return IOStatus::OK();
}

// ---- Changes that are not supported

IOStatus OverlayFileSystem::ReopenWritableFile(const std::string& name,
                                               const FileOptions& /*options*/,
                                               std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                               IODebugContext* /*debug*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::ReuseWritableFile(const std::string& name,
                                              const std::string& /*old_name*/,
                                              const FileOptions& /*options*/,
                                              std::unique_ptr<rocksdb::FSWritableFile>* /*file*/,
                                              IODebugContext* /*debug*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::NewRandomRWFile(const std::string& name, const FileOptions& /*options*/,
                                            std::unique_ptr<rocksdb::FSRandomRWFile>* /*file*/,
                                            IODebugContext* /*debug*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::NewMemoryMappedFileBuffer(
    const std::string& name, std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* /*buffer*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::Truncate(const std::string& name, size_t /*size*/,
                                     const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::DeleteDir(const std::string& name, const IOOptions& /*options*/,
                                      IODebugContext* /*debug*/) {
  return Refused(name);
}

IOStatus OverlayFileSystem::LinkFile(const std::string& from, const std::string& /*to*/,
                                     const IOOptions& /*options*/, IODebugContext* /*debug*/) {
  return Refused(from);
}

}  // namespace tamis
