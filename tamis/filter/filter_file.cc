#include "tamis/filter/filter_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tamis/base/random.h"

namespace tamis {
namespace {

Status Failed(const char* what, const std::string& path) {
  const int error = errno;
  std::string message = std::string("cannot ") + what + " \"" + path + "\": " + strerror(error);
  if (error == ENOENT) return NotFound(std::move(message));
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted(std::move(message));
  return FailedPrecondition(std::move(message));
}

// A new file beside the path; closed and removed in the end, unless it was kept.
struct Temporary {
  explicit Temporary(const std::string& beside) {
    // The mode is what the process gives new files; nothing here touches its umask, which belongs
    // to all threads.
    do {
      path = beside + "." + std::to_string(SeedFromSystem() % 1'000'000'000);
      file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (file < 0 && errno == EEXIST);
    keep = file < 0;
  }
  ~Temporary() {
    if (file >= 0) close(file);
    if (!keep) unlink(path.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  std::string path;
  int file;
  bool keep;  // there is nothing to remove
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
  Temporary temporary(path);
  if (temporary.file < 0) return Failed("write", path);
  while (!bytes.empty()) {
    const ssize_t written = write(temporary.file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return Failed("write", path);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  struct stat old {};
  if (stat(path.c_str(), &old) == 0 && fchmod(temporary.file, old.st_mode & 07777) != 0) {
    return Failed("write", path);
  }
  if (fsync(temporary.file) != 0) return Failed("write", path);
  if (rename(temporary.path.c_str(), path.c_str()) != 0) return Failed("replace", path);
  temporary.keep = true;
  return Status::Ok();
}

}  // namespace tamis
