// WordArray: the words a filter is made of, owned (zeroed, aligned to a cache line) or borrowed
// from bytes that somebody else keeps alive, a mapped file for example. The first write to a
// borrowed array copies it.
#pragma once

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace tamis {

class WordArray {
 public:
  static constexpr size_t kAlignment = 64;

  WordArray() = default;
  explicit WordArray(size_t size) : owned_(Allocate(size)), data_(owned_.get()), size_(size) {
    std::memset(owned_.get(), 0, size * sizeof(uint64_t));
  }
  static WordArray Borrow(std::span<const uint64_t> words) {
    WordArray array;
    array.data_ = words.data();
    array.size_ = words.size();
    return array;
  }

  WordArray(const WordArray& other) { *this = other; }
  WordArray& operator=(const WordArray& other) {
    if (this != &other) *this = CopyOf({other.data_, other.size_});
    return *this;
  }
  WordArray(WordArray&& other) noexcept { *this = std::move(other); }
  WordArray& operator=(WordArray&& other) noexcept {
    owned_ = std::move(other.owned_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  size_t size() const { return size_; }
  uint64_t operator[](size_t i) const { return data_[i]; }
  const uint64_t* data() const { return data_; }
  uint64_t* MutableData() {
    if (owned_ == nullptr && size_ != 0) *this = CopyOf({data_, size_});
    return owned_.get();
  }
  std::span<const uint64_t> words() const { return {data_, size_}; }
  size_t size_bytes() const { return size_ * sizeof(uint64_t); }

  static WordArray CopyOf(std::span<const uint64_t> words) {
    WordArray array;
    array.owned_ = Allocate(words.size());
    array.data_ = array.owned_.get();
    array.size_ = words.size();
    if (!words.empty()) std::memcpy(array.owned_.get(), words.data(), words.size_bytes());
    return array;
  }

 private:
  // Where an array is large, pages of 2 MB are asked for: a filter jumps about in it, and with
  // pages of 4 KB most jumps would walk the page table too.
  static constexpr size_t kHugePage = size_t{2} << 20;
  static std::align_val_t AlignmentFor(size_t size_bytes) {
    return std::align_val_t{size_bytes >= 2 * kHugePage ? kHugePage : kAlignment};
  }

  struct Free {
    std::align_val_t alignment;
    void operator()(uint64_t* words) const { ::operator delete[](words, alignment); }
  };
  using Owned = std::unique_ptr<uint64_t[], Free>;

  static Owned Allocate(size_t size) {
    const size_t size_bytes = size * sizeof(uint64_t);
    const auto alignment = AlignmentFor(size_bytes);
    Owned owned(static_cast<uint64_t*>(::operator new[](size_bytes, alignment)), Free{alignment});
#ifdef __linux__
    if (alignment == std::align_val_t{kHugePage}) {
      (void)madvise(owned.get(), size_bytes, MADV_HUGEPAGE);  // a wish, its refusal does no harm
    }
#endif
    return owned;
  }

  Owned owned_{nullptr, Free{std::align_val_t{kAlignment}}};
  const uint64_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tamis
