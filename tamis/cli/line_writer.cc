#include "tamis/cli/line_writer.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tamis {

Status WriteOutput(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      const int error = errno;
      std::string message =
          std::string("cannot write to the standard output: ") + std::strerror(error);
      return error == ENOSPC || error == EDQUOT ? ResourceExhausted(std::move(message))
                                                : Unavailable(std::move(message));
    }
  }
  return Status::Ok();
}

Status LineWriter::Flush() {
  const Status status = WriteOutput(pending_);
  pending_.clear();
  return status;
}

}  // namespace tamis
