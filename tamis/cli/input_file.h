// InputFile: a file, a pipe or standard input as the buffer of a std::istream. Waiting for input
// ends when the user asks to stop.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <streambuf>
#include <string>

#include "tamis/base/status.h"

namespace tamis {

class InputFile : public std::streambuf {
 public:
  // "-" is standard input.
  static Result<std::unique_ptr<InputFile>> Open(const std::string& name);
  ~InputFile() override;

  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // From now on the input ends when `cancelled` becomes true.
  void StopWhen(const std::atomic<bool>* cancelled) { cancelled_ = cancelled; }

  uint64_t size_bytes() const { return size_bytes_; }  // the size of a regular file; 0 = not known
  // Why reading ended before the end; ok when it did not.
  const Status& status() const { return status_; }

 protected:
  int_type underflow() override;

 private:
  InputFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  const std::string name_;
  const int fd_;
  uint64_t size_bytes_ = 0;
  const std::atomic<bool>* cancelled_ = nullptr;
  Status status_;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace tamis
