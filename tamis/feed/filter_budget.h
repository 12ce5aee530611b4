// FilterBudget: the memory that the filters of one region server may take together.
//
// A counter takes four bits; coordinators need one bit. A filter whose counters do not fit the
// budget keeps bits alone. It excludes regions as well as before, but a removed value keeps its
// bits until so many removals were ignored that the filter is counted again (RecountRule). It gets
// counters again once they fit. Memory for bits is never refused, so the budget can be exceeded by
// the size of the bits.
//
// Threads: safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace tamis {

class FilterBudget {
 public:
  explicit FilterBudget(size_t max_bytes) : max_bytes_(max_bytes) {}

  size_t max_bytes() const { return max_bytes_; }
  size_t used_bytes() const { return used_bytes_; }

  // The memory that one filter takes from the budget; destroying the share gives it back.
  class Share {
   public:
    explicit Share(std::shared_ptr<FilterBudget> budget) : budget_(std::move(budget)) {}
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    ~Share() { Set(0); }

    void Set(size_t bytes) {
      budget_->used_bytes_ += bytes - bytes_;  // modulo 2^64
      bytes_ = bytes;
    }
    // Whether `bytes` instead of its own would fit into so many quarters of all.
    bool Fits(size_t bytes, size_t quarters) const {
      return budget_->used_bytes_ - bytes_ + bytes <= budget_->max_bytes_ / 4 * quarters;
    }

   private:
    const std::shared_ptr<FilterBudget> budget_;
    size_t bytes_ = 0;
  };

 private:
  const size_t max_bytes_;
  std::atomic<size_t> used_bytes_ = 0;
};

}  // namespace tamis
