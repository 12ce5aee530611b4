#include "tamis/cli/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tamis/base/hash.h"
#include "tamis/cli/line_starts.h"

namespace tamis {
namespace {

// A batch, its hashes and the filter stay in the second-level cache while lines are hashed, asked
// for and printed.
constexpr size_t kReadSize = size_t{64} << 10;
constexpr size_t kMaxLineSize = size_t{2} << 30;
constexpr size_t kRoom = 1 + kLineStartsSlack;  // after what was read: for a last delimiter

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
      text_(kReadSize + kRoom),
      starts_(1 + kReadSize + kRoom) {}

LineReader::LineReader(LineReader&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      delimiter_(other.delimiter_),
      seed_(other.seed_),
      at_end_(other.at_end_),
      text_(std::move(other.text_)),
      end_(other.end_),
      starts_(std::move(other.starts_)),
      hashes_(std::move(other.hashes_)) {}

LineReader::~LineReader() {
  if (file_ > STDIN_FILENO) close(file_);
}

Result<bool> LineReader::Next() {
  // The unfinished line goes to the front.
  const size_t unfinished = starts_[hashes_.size()];
  std::memmove(text_.data(), text_.data() + unfinished, end_ - unfinished);
  end_ -= unfinished;
  starts_[0] = 0;
  hashes_.clear();
  size_t lines = 0;
  while (lines == 0) {
    if (at_end_) return false;
    if (end_ > kMaxLineSize) {
      return InvalidArgument("cannot use \"" + path_ + "\": it has a line of more than 2 GiB");
    }
    if (end_ + kReadSize + kRoom > text_.size()) text_.resize(2 * end_ + kReadSize + kRoom);
    const ssize_t size = read(file_, text_.data() + end_, kReadSize);
    if (size < 0) {
      if (errno == EINTR) continue;
      return Unavailable("cannot read \"" + path_ + "\": " + std::strerror(errno));
    }
    const size_t searched = end_;  // no delimiter before this
    end_ += static_cast<size_t>(size);
    at_end_ = size == 0;
    if (at_end_ && end_ > 0) text_[end_++] = delimiter_;  // which the last line lacks
    lines = FindLineStarts(text_.data(), searched, end_, delimiter_, starts_.data() + 1);
  }
  hashes_.resize(lines);
  HashPieces(text_.data(), starts_, seed_, hashes_);
  return true;
}

}  // namespace tamis
