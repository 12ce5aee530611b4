// ByteArray: an owned array of bytes from ZeroedMemory: one link of a BloomChain, or one table of a
// CuckooChain. Threads: as a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace tamis::redis {

class ByteArray {
 public:
  ByteArray() = default;
  ByteArray(ByteArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  ByteArray& operator=(ByteArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~ByteArray();

  // Zeros; without data() when memory does not suffice. REQUIRES: size > 0.
  static ByteArray Zeroed(size_t size);
  // Takes ownership of an array that ZeroedMemory, or the server's allocator, gave.
  static ByteArray Adopt(void* data, size_t size);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

  // The bytes were moved by the allocator, which freed the old ones.
  void MovedTo(void* data) { data_ = static_cast<uint8_t*>(data); }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tamis::redis
