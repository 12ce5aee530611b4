#include "tamis/filter/filter_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "tamis/base/random.h"

namespace tamis {
namespace {

Status Failed(const char* what, const std::string& path, int error = errno) {
  std::string message = std::string("cannot ") + what + " \"" + path + "\": " + strerror(error);
  if (error == ENOENT) return NotFound(std::move(message));
  if (error == ENOSPC || error == EDQUOT) return ResourceExhausted(std::move(message));
  return FailedPrecondition(std::move(message));
}

Status NotRegular(const char* what, const std::string& path, mode_t mode) {
  const char* is = S_ISDIR(mode)    ? "a directory"
                   : S_ISFIFO(mode) ? "a pipe"
                   : S_ISSOCK(mode) ? "a socket"
                                    : "a device";
  return FailedPrecondition(std::string("cannot ") + what + " \"" + path + "\": it is " + is +
                            ", not a regular file");
}

// A regular file, open for reading.
class InputFile {
 public:
  static Result<InputFile> Open(const std::string& path) {
    // Not to wait for a pipe's writer; regular files do not know the difference.
    InputFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file.number_ < 0) return Failed("open", path);
    struct stat info {};
    if (fstat(file.number_, &info) != 0) return Failed("read", path);
    if (!S_ISREG(info.st_mode)) return NotRegular("read", path, info.st_mode);
    file.size_ = static_cast<size_t>(info.st_size);
    return file;
  }
  ~InputFile() {
    if (number_ >= 0) close(number_);
  }
  InputFile(InputFile&& other) noexcept
      : number_(std::exchange(other.number_, -1)), size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;

  int number() const { return number_; }
  size_t size() const { return size_; }

 private:
  explicit InputFile(int number) : number_(number) {}

  int number_;
  size_t size_ = 0;
};

// The file that is to be replaced: the path, or where its symbolic links lead to, be there a file
// already or not.
Result<std::string> Destination(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode)) return NotRegular("replace", path, info.st_mode);
  } else if (errno != ENOENT) {
    return Failed("write", path);
  }
  std::filesystem::path file = path;
  std::error_code error;
  // The kernel follows forty at most.
  for (int links = 0; links <= 40; ++links) {
    if (!std::filesystem::is_symlink(file, error)) return file.string();
    const std::filesystem::path target = std::filesystem::read_symlink(file, error);
    if (error) return Failed("write", path, error.value());
    file = file.parent_path() / target;  // an absolute target stands alone
  }
  return Failed("write", path, ELOOP);
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

Result<std::string> ReadFile(const std::string& path) {
  TAMIS_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  std::string bytes(file.size(), '\0');
  size_t end = 0;
  while (end < bytes.size()) {
    const ssize_t size = read(file.number(), bytes.data() + end, bytes.size() - end);
    if (size < 0 && errno != EINTR) return Failed("read", path);
    if (size == 0) break;  // it has become shorter
    if (size > 0) end += static_cast<size_t>(size);
  }
  bytes.resize(end);
  return bytes;
}

Result<MappedFile> MappedFile::Open(const std::string& path) {
  TAMIS_ASSIGN_OR_RETURN(const InputFile file, InputFile::Open(path));
  if (file.size() == 0) return MappedFile(std::string_view());
  void* memory = mmap(nullptr, file.size(), PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) return Failed("map", path);
  return MappedFile(std::string_view(static_cast<const char*>(memory), file.size()));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Status ReplaceFile(const std::string& path, std::string_view bytes) {
  TAMIS_ASSIGN_OR_RETURN(const std::string file, Destination(path));
  Temporary temporary(file);
  if (temporary.file < 0) return Failed("write", path);
  while (!bytes.empty()) {
    const ssize_t written = write(temporary.file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return Failed("write", path);
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  struct stat old {};
  if (stat(file.c_str(), &old) == 0 && fchmod(temporary.file, old.st_mode & 07777) != 0) {
    return Failed("write", path);
  }
  if (fsync(temporary.file) != 0) return Failed("write", path);
  if (rename(temporary.path.c_str(), file.c_str()) != 0) return Failed("replace", path);
  temporary.keep = true;
  return Status::Ok();
}

}  // namespace tamis
