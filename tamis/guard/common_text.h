// CommonText: the text that printed keys have in common: how all of them begin and end, and which
// separators are in each of them. Programs print keys within other text, such as `id = 5`, `5|x`
// or `{"id":5},`, which a filter must not be loaded with.
//
// Threads: exclusive access.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tamis {

class CommonText {
 public:
  void Add(std::string_view key);

  uint64_t keys() const { return keys_; }
  // The text at the beginning or end of all keys that does not belong to them; "": there is none.
  std::string Frame() const;
  // A separator that each key has within; '\0': there is none.
  char Separator() const;

 private:
  static constexpr std::string_view kSeparators = "|\t;,";

  uint64_t keys_ = 0;
  std::string beginning_;
  std::string end_;
  uint32_t separators_ = ~uint32_t{0};  // a bit for each of kSeparators
};

}  // namespace tamis
