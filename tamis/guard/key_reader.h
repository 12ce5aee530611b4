// KeyReader: reads the keys that a program prints, one a line.
//
// A key that is read wrongly is missing in the filter, which then denies its row. PostgreSQL's COPY
// and `mysql --batch` print a backslash as two, so the format has to be known to read a line with
// one. A line that is cut off is no key.
//
// Threads: exclusive access.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"

namespace tamis {

class KeyReader {
 public:
  enum class Format {
    kPlain,  // a line is a key; one with a backslash is refused, since its meaning is not known
    kLines,  // a line is a key, whatever is in it
    kNull,   // likewise, but each ends with a zero byte
    kCopy,   // output of COPY TO STDOUT with one column: \\ \n \t \x41 \101; \N is no key and left
             // out
    kHex,    // two hexadecimal digits a byte
  };
  static constexpr size_t kGreatestKey = size_t{1} << 20;

  // Reads what `file` gives until its end or, with `marked_end`, until the line "\.", which must
  // come. Reading stops soon after `cancelled` becomes true, and when `while_waiting` fails, which
  // is called before each read and several times a second while there is nothing to read. `as_is`:
  // a carriage return at the end of a line belongs to its key in kCopy, too.
  KeyReader(int file, Format format, bool marked_end, const std::atomic<bool>* cancelled,
            std::function<Status()> while_waiting = nullptr, bool as_is = false)
      : file_(file),
        format_(format),
        marked_end_(marked_end),
        cancelled_(cancelled),
        while_waiting_(std::move(while_waiting)),
        as_is_(as_is) {}

  // The next key, valid until the next call; nullopt at the end.
  Result<std::optional<std::string_view>> Next();

  uint64_t lines() const { return lines_; }
  // True if the last error is that the input ends within a line.
  bool is_cut_off() const { return is_cut_off_; }
  // True if the next call of Next may return without reading from the file.
  bool has_more() const { return begin_ < end_; }
  uint64_t nulls() const { return nulls_; }  // left out

 private:
  Result<std::optional<std::string_view>> NextLine();
  Result<std::string_view> Unescape(std::string_view line);
  Result<std::string_view> Decode(std::string_view line);
  Status Await() const;
  Status Wrong(std::string_view what) const;

  int file_;
  Format format_;
  bool marked_end_;
  const std::atomic<bool>* cancelled_;
  std::function<Status()> while_waiting_;
  bool as_is_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // begin of the bytes in buffer_ that Next has not returned yet
  size_t end_ = 0;
  bool at_end_ = false;
  bool is_cut_off_ = false;
  uint64_t lines_ = 0;
  uint64_t nulls_ = 0;
  std::string unescaped_;
};

}  // namespace tamis
