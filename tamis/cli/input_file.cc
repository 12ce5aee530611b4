#include "tamis/cli/input_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tamis {
namespace {

constexpr int kLookAgainMs = 200;

Status Failure(const std::string& name, int error) {
  return NotFound("cannot read \"" + name + "\": " + std::strerror(error));
}

}  // namespace

Result<std::unique_ptr<InputFile>> InputFile::Open(const std::string& name) {
  const bool standard = name == "-";
  const int fd = standard ? STDIN_FILENO : open(name.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Failure(name, errno);
  std::unique_ptr<InputFile> file(new InputFile(standard ? "standard input" : name, fd));
  struct stat about = {};
  // The program opens a closed standard input so that it cannot be read.
  if (standard && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {  // NOLINT: variadic
    return NotFound("cannot read standard input: it is closed, or open for writing only");
  }
  if (fstat(fd, &about) != 0) return Failure(name, errno);
  if (S_ISDIR(about.st_mode)) return Failure(name, EISDIR);
  if (S_ISREG(about.st_mode)) file->size_bytes_ = static_cast<uint64_t>(about.st_size);
  return file;
}

InputFile::~InputFile() {
  if (fd_ != STDIN_FILENO) close(fd_);
}

InputFile::int_type InputFile::underflow() {
  while (status_.ok()) {
    if (cancelled_ != nullptr && cancelled_->load()) break;
    pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
    const int ready = poll(&waiting, 1, kLookAgainMs);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    const ssize_t size = read(fd_, buffer_.data(), buffer_.size());
    if (size == 0) break;
    if (size < 0) {
      if (errno != EINTR && errno != EAGAIN) status_ = Failure(name_, errno);
      continue;
    }
    setg(buffer_.data(), buffer_.data(), buffer_.data() + size);
    return traits_type::to_int_type(buffer_[0]);
  }
  return traits_type::eof();
}

}  // namespace tamis
