// WriteBurst: writes that follow each other closely, to rows beside each other, with few names:
// what a single random write hardly ever meets.
#pragma once

#include <algorithm>
#include <string>

#include "tests/cluster/random_rows.h"

namespace tamis {

class WriteBurst {
 public:
  enum class Kind {
    kNewName,    // one that is new to the region, to several rows at nearly the same time
    kToggle,     // rows change to and fro between two names
    kShared,     // many rows take one name, one by one, and give it up again, one by one
    kPutDelete,  // one row comes and goes, so that bits are set, cleared and set
  };
  static constexpr uint64_t kKinds = 4;

  WriteBurst(Kind kind, int64_t key, std::string name)
      : kind_(kind), key_(key), name_(std::move(name)), left_(Length()) {}

  bool over() const { return left_ <= 0; }
  // Microseconds between two writes, at most.
  uint64_t pace() const {
    constexpr uint64_t kPaces[] = {200, 12'000, 2'000, 4'000};
    return kPaces[static_cast<size_t>(kind_)];
  }

  struct Next {
    int64_t key = 0;
    bool is_delete = false;
    std::string name;
  };
  Next Draw(Random& random) {
    --left_;
    Next next{.key = key_, .name = name_};
    switch (kind_) {
      case Kind::kNewName:
        next.key += static_cast<int64_t>(random.Uniform(6));
        break;
      case Kind::kToggle:
        next.key += static_cast<int64_t>(random.Uniform(2));
        next.name += random.OneIn(2) ? "a" : "b";
        break;
      case Kind::kShared:
        next.key += left_ % (Length() / 2);
        if (left_ < Length() / 2) next.name += std::to_string(left_);
        break;
      case Kind::kPutDelete:
        next.key += random.OneIn(4) ? 1 : 0;
        next.is_delete = left_ % 2 == 0;
        break;
    }
    next.key = std::min(next.key, RandomRows::kKeys - 1);
    return next;
  }

 private:
  int Length() const {
    constexpr int kLengths[] = {8, 60, 40, 30};
    return kLengths[static_cast<size_t>(kind_)];
  }

  Kind kind_;
  int64_t key_;
  std::string name_;
  int left_;
};

}  // namespace tamis
