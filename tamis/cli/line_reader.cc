#include "tamis/cli/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tamis/base/hash.h"

namespace tamis {
namespace {

// A batch stays in the second-level cache while its lines are hashed, asked for and printed.
constexpr size_t kBufferSize = size_t{256} << 10;

}  // namespace

Result<LineReader> LineReader::Open(const std::string& path, char delimiter, uint64_t seed) {
  const int file = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return NotFound("cannot open \"" + path + "\": " + std::strerror(errno));
  return LineReader(path, file, delimiter, seed);
}

LineReader::LineReader(std::string path, int file, char delimiter, uint64_t seed)
    : path_(std::move(path)),
      file_(file),
      delimiter_(delimiter),
      seed_(seed),
      buffer_(kBufferSize) {}

LineReader::LineReader(LineReader&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      delimiter_(other.delimiter_),
      seed_(other.seed_),
      at_end_(other.at_end_),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      end_(other.end_) {}

LineReader::~LineReader() {
  if (file_ > STDIN_FILENO) close(file_);
}

Result<bool> LineReader::Next() {
  lines_.clear();
  hashes_.clear();
  while (lines_.empty()) {
    if (at_end_) return false;
    // The unfinished line goes to the front; when it fills the buffer, the buffer grows.
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
    const ssize_t size = read(file_, buffer_.data() + end_, buffer_.size() - end_);
    if (size < 0) {
      if (errno == EINTR) continue;
      return Unavailable("cannot read \"" + path_ + "\": " + std::strerror(errno));
    }
    const size_t searched = end_;
    end_ += static_cast<size_t>(size);
    at_end_ = size == 0;
    const char* from = buffer_.data() + searched;  // no delimiter before this
    while (const void* found = std::memchr(from, delimiter_, buffer_.data() + end_ - from)) {
      const char* stop = static_cast<const char*>(found);
      lines_.emplace_back(buffer_.data() + begin_, stop - (buffer_.data() + begin_));
      begin_ = stop + 1 - buffer_.data();
      from = stop + 1;
    }
    if (at_end_ && begin_ < end_) {
      lines_.emplace_back(buffer_.data() + begin_, end_ - begin_);
      begin_ = end_;
    }
  }
  for (const std::string_view line : lines_) hashes_.push_back(Hash(line, seed_));
  return true;
}

}  // namespace tamis
