// KeysAlike: what all keys share that no key has by itself: text before or behind each, a separator
// within each, numbers as a locale prints them.
//
// The first key and the last one may be a head and a foot, so they count only where there are few
// keys.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tamis/guard/common_text.h"
#include "tamis/guard/number_form.h"

namespace tamis {

class KeysAlike {
 public:
  // REQUIRES: the key is not empty.
  void Add(std::string_view key);

  bool empty() const { return count_ == 0; }
  uint64_t count() const { return count_; }
  const std::string& first() const { return first_; }
  const std::string& last() const { return last_; }

  // "every key has \" | \" within, as several columns have"; empty: they share nothing. REQUIRES:
  // not empty.
  std::string Fault() const;

 private:
  bool AreFew() const;

  uint64_t count_ = 0;
  CommonText common_;       // text of the keys between the first and the last
  NumberForm number_form_;  // the form of the same keys
  std::string first_;
  std::string last_;
};

}  // namespace tamis
