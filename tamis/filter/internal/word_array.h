// WordArray: the words a filter is made of, owned (zeroed, aligned to a cache line) or borrowed
// from bytes that their owner keeps alive, a mapped file for example. The first write to a
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

#include "tamis/base/zeroed_memory.h"

namespace tamis {

class WordArray {
 public:
  static constexpr size_t kAlignment = 64;

  WordArray() = default;
  explicit WordArray(size_t size)
      : owned_(AllocateZeroed(size)), data_(owned_.get()), size_(size) {}
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
  static bool Large(size_t size_bytes) { return size_bytes >= 2 * kHugePage; }
  static size_t LargeAlignment() { return TheZeroedMemory().huge_pages ? kHugePage : kAlignment; }

  struct Free {
    size_t alignment;
    void* zeroed;  // the block around the words, of ZeroedMemory; nullptr = operator new's
    void operator()(uint64_t* words) const {
      if (zeroed != nullptr) {
        TheZeroedMemory().free(zeroed);
      } else {
        ::operator delete[](words, std::align_val_t{alignment});
      }
    }
  };
  using Owned = std::unique_ptr<uint64_t[], Free>;

  static void WishForHugePages([[maybe_unused]] void* words, [[maybe_unused]] size_t size_bytes) {
#ifdef __linux__
    (void)madvise(words, size_bytes, MADV_HUGEPAGE);  // a wish, its refusal does no harm
#endif
  }

  static Owned Allocate(size_t size) {
    const size_t size_bytes = size * sizeof(uint64_t);
    const Free free = {Large(size_bytes) ? LargeAlignment() : kAlignment, nullptr};
    Owned owned(
        static_cast<uint64_t*>(::operator new[](size_bytes, std::align_val_t{free.alignment})),
        free);
    if (Large(size_bytes) && TheZeroedMemory().huge_pages) {
      WishForHugePages(owned.get(), size_bytes);
    }
    return owned;
  }

  // The pages of a large array are not touched.
  static Owned AllocateZeroed(size_t size) {
    const size_t size_bytes = size * sizeof(uint64_t);
    if (!Large(size_bytes)) {
      Owned owned = Allocate(size);
      std::memset(owned.get(), 0, size_bytes);
      return owned;
    }
    const size_t alignment = LargeAlignment();
    size_t space = size_bytes;
    void* words = TheZeroedMemory().allocate(space);
    if (reinterpret_cast<uintptr_t>(words) % alignment != 0) {
      TheZeroedMemory().free(words);
      space += alignment;
      words = TheZeroedMemory().allocate(space);
    }
    if (words == nullptr) throw std::bad_alloc();
    const Free free = {alignment, words};
    Owned owned(static_cast<uint64_t*>(std::align(alignment, size_bytes, words, space)), free);
    if (TheZeroedMemory().huge_pages) WishForHugePages(owned.get(), size_bytes);
    return owned;
  }

  Owned owned_{nullptr, Free{kAlignment, nullptr}};
  const uint64_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tamis
