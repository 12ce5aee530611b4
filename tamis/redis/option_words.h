// Option words: what stands in a command behind its fixed words, in any order and any case: `NAME`
// alone, or `NAME value`. Each command says in a table which there are and what is answered when
// one is wrong, since programs know these errors by heart.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "tamis/redis/command.h"

namespace tamis::redis {

inline constexpr char kUnknownWord[] = "Unknown argument received";

struct Option {
  const char* name;
  // Where it goes: true when the word is there; or the word behind it, as a number when it is one.
  std::variant<bool*, const String**, std::optional<long long>*, double*> value;
  const char* bad = nullptr;           // the error when it is no number, and
  const char* out_of_range = nullptr;  // when it is not between these; without one, `bad`
  long long least = std::numeric_limits<long long>::min();
  long long greatest = std::numeric_limits<long long>::max();
  const char* no_value = nullptr;  // when it is the last word; without one, wrong arity
};

// An error rate is greater than 0 and less than 1, whatever `least` and `greatest` say.
bool IsRate(double rate);

// How to treat a word that is no option. Other servers ignore some, so that they appear in logs.
enum class OtherWords { kRefused, kIgnored };

// Reads words[begin] and what follows up to the word `end`, or all when `end` is empty. Answers the
// position behind the last one read; nullopt, and the error is sent, when one is wrong. An option
// that is there twice counts the last time, and without `end` the first time, as in RedisBloom.
std::optional<size_t> ReadOptions(Ctx* ctx, Words words, size_t begin,
                                  std::span<const Option> options, std::string_view end = {},
                                  OtherWords others = OtherWords::kRefused);

}  // namespace tamis::redis
