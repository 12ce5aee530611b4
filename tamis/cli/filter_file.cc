#include "tamis/cli/filter_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tamis {
namespace {

Status Failed(const char* what, const std::string& path) {
  const int error = errno;
  std::string message = std::string("cannot ") + what + " \"" + path + "\": " + strerror(error);
  if (error == ENOENT) return NotFound(std::move(message));
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted(std::move(message));
  return FailedPrecondition(std::move(message));
}

// Closes the file and removes the path, unless it was kept.
struct Temporary {
  std::string path;
  int file;
  bool keep = false;
  ~Temporary() {
    if (file >= 0) close(file);
    if (!keep) unlink(path.c_str());
  }
};

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Failed("open", path);
  struct stat info {};
  if (fstat(file, &info) != 0 || S_ISDIR(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) errno = EISDIR;
    const Status status = Failed("read", path);
    close(file);
    return status;
  }
  if (info.st_size == 0) {
    close(file);
    return MappedFile(std::string_view());
  }
  const auto size = static_cast<size_t>(info.st_size);
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  const Status status = memory == MAP_FAILED ? Failed("map", path) : Status::Ok();
  close(file);
  if (!status.ok()) return status;
  return MappedFile(std::string_view(static_cast<const char*>(memory), size));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  // The mode of the file that is replaced, or what the process would give a new one.
  struct stat old {};
  const mode_t mask = umask(0);
  umask(mask);
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 07777 : 0666 & ~mask;
  Temporary temporary{path + ".XXXXXX", -1};
  temporary.file = mkstemp(temporary.path.data());
  if (temporary.file < 0) {
    temporary.keep = true;  // there is nothing to remove
    return Failed("write", path);
  }
  while (!bytes.empty()) {
    const ssize_t written = write(temporary.file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return Failed("write", path);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  if (fchmod(temporary.file, mode) != 0 || fsync(temporary.file) != 0) return Failed("write", path);
  if (rename(temporary.path.c_str(), path.c_str()) != 0) return Failed("replace", path);
  temporary.keep = true;
  return Status::Ok();
}

}  // namespace tamis
