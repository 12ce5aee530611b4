#include "tamis/guard/key_reader.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tamis/base/ascii.h"

namespace tamis {
namespace {

constexpr size_t kPiece = size_t{256} << 10;
constexpr int kWaitMs = 200;

int DigitOf(char c, int base) {
  const int digit = HexDigit(c);
  return digit < base ? digit : -1;
}

}  // namespace

Status KeyReader::Wrong(std::string_view what) const {
  return DataLoss("cannot read key " + std::to_string(lines_) + ": " + std::string(what));
}

// Waits until there is something to read. A signal that comes just before the wait is noticed at
// its end.
Status KeyReader::Await() const {
  pollfd input = {file_, POLLIN, 0};
  while (true) {
    if (cancelled_->load()) return Cancelled("stopped");
    if (while_waiting_ != nullptr) TAMIS_RETURN_IF_ERROR(while_waiting_());
    const int ready = poll(&input, 1, kWaitMs);
    if (ready > 0) return Status::Ok();
    if (ready < 0 && errno != EINTR) {
      return Unavailable(std::string("cannot wait for keys: ") + std::strerror(errno));
    }
  }
}

// Also sets lines_.
Result<std::optional<std::string_view>> KeyReader::NextLine() {
  const char delimiter = format_ == Format::kNull ? '\0' : '\n';
  size_t searched = begin_;
  while (true) {
    const void* found = end_ > searched
                            ? std::memchr(buffer_.data() + searched, delimiter, end_ - searched)
                            : nullptr;
    if (found != nullptr) {
      const size_t end = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
      const std::string_view line(buffer_.data() + begin_, end - begin_);
      begin_ = end + 1;
      ++lines_;
      return std::optional(line);
    }
    if (at_end_) {
      if (begin_ == end_) return std::optional<std::string_view>();
      ++lines_;
      is_cut_off_ = true;
      return Wrong("it is cut off, since the input ends within the line");
    }
    searched = end_ - begin_;
    if (searched > kGreatestKey) {
      ++lines_;
      return Wrong("it is longer than a MiB");
    }
    std::copy(buffer_.begin() + static_cast<ptrdiff_t>(begin_),
              buffer_.begin() + static_cast<ptrdiff_t>(end_), buffer_.begin());
    end_ = searched;
    begin_ = 0;
    buffer_.resize(end_ + kPiece);
    ssize_t size = 0;
    do {
      TAMIS_RETURN_IF_ERROR(Await());
      size = read(file_, buffer_.data() + end_, kPiece);
    } while (size < 0 && errno == EINTR);
    if (size < 0) return Unavailable(std::string("cannot read keys: ") + std::strerror(errno));
    end_ += static_cast<size_t>(size);
    at_end_ = size == 0;
  }
}

Result<std::string_view> KeyReader::Unescape(std::string_view line) {
  unescaped_.clear();
  if (line.ends_with('\r') && !as_is_) {
    return Wrong(
        "a carriage return ends its line, as on Windows; COPY prints one as \\r, mysql --batch as "
        "it stands: say --as-is when it belongs to the key");
  }
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\t') return Wrong("there are two columns; COPY one, the key");
    if (line[i] != '\\') {
      unescaped_ += line[i];
      continue;
    }
    if (++i == line.size()) return Wrong("a backslash ends it");
    constexpr std::string_view kLetters = "bfnrtv";
    constexpr std::string_view kMeant = "\b\f\n\r\t\v";
    if (line[i] == '0' && i + 1 < line.size() && DigitOf(line[i + 1], 8) >= 0) {
      return Wrong(
          "\\0 before a digit is a zero byte as mysql prints it, or an octal number; print the key "
          "as it stands, with --format lines or null");
    }
    const bool hexadecimal = line[i] == 'x' && i + 1 < line.size() && DigitOf(line[i + 1], 16) >= 0;
    if (const size_t letter = kLetters.find(line[i]); letter != kLetters.npos) {
      unescaped_ += kMeant[letter];
    } else if (hexadecimal || DigitOf(line[i], 8) >= 0) {
      const int base = hexadecimal ? 16 : 8;
      const size_t most = hexadecimal ? 2 : 3;
      if (hexadecimal) ++i;
      int byte = 0;
      size_t digits = 0;
      while (digits < most && i + digits < line.size() && DigitOf(line[i + digits], base) >= 0) {
        byte = byte * base + DigitOf(line[i + digits++], base);
      }
      unescaped_ += static_cast<char>(byte);
      i += digits - 1;
    } else {
      unescaped_ += line[i];
    }
  }
  return std::string_view(unescaped_);
}

Result<std::string_view> KeyReader::Decode(std::string_view line) {
  unescaped_.clear();
  for (size_t i = 0; i + 1 < line.size(); i += 2) {
    const int high = DigitOf(line[i], 16);
    const int low = DigitOf(line[i + 1], 16);
    if (high < 0 || low < 0) return Wrong("there are other characters than hexadecimal digits");
    unescaped_ += static_cast<char>(high * 16 + low);
  }
  if (line.size() % 2 != 0) return Wrong("it has an odd number of digits");
  return std::string_view(unescaped_);
}

Result<std::optional<std::string_view>> KeyReader::Next() {
  while (true) {
    TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> line, NextLine());
    const bool end_marker = line && *line == "\\." && (marked_end_ || format_ == Format::kCopy);
    if (end_marker) {
      TAMIS_ASSIGN_OR_RETURN(const std::optional<std::string_view> behind, NextLine());
      if (behind) return Wrong("it follows the line \"\\.\", which ends the keys");
      return std::optional<std::string_view>();
    }
    if (!line) {
      if (!marked_end_) return line;
      return DataLoss("the keys end after " + std::to_string(lines_) +
                      " lines without \"\\.\": their program may have failed midway; let it print "
                      "that line at the end of all keys");
    }
    if (format_ == Format::kCopy) {
      if (*line == "\\N") {
        ++nulls_;
        continue;
      }
      TAMIS_ASSIGN_OR_RETURN(const std::string_view key, Unescape(*line));
      return std::optional(key);
    }
    if (format_ == Format::kHex) {
      TAMIS_ASSIGN_OR_RETURN(const std::string_view key, Decode(*line));
      return std::optional(key);
    }
    if (format_ == Format::kPlain && line->find('\\') != line->npos) {
      return Wrong(
          "it has a backslash; say --format copy when a backslash is printed as two (COPY of "
          "PostgreSQL, mysql --batch), --format lines when a line is a key as it stands");
    }
    return line;
  }
}

}  // namespace tamis
