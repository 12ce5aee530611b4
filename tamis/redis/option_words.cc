#include "tamis/redis/option_words.h"

#include <algorithm>

namespace tamis::redis {
namespace {

// Whether the word was there before.
bool HasValue(const Option& option) {
  const auto* number = std::get_if<std::optional<long long>*>(&option.value);
  return number != nullptr && (*number)->has_value();
}

// nullptr, or the error.
const char* ReadValue(const Option& option, const String* word) {
  if (const auto* text = std::get_if<const String**>(&option.value)) {
    **text = word;
    return nullptr;
  }
  bool in_range = false;
  if (const auto* to = std::get_if<std::optional<long long>*>(&option.value)) {
    long long number = 0;
    if (!ParseInteger(word, &number)) return option.bad;
    **to = number;
    in_range = number >= option.least && number <= option.greatest;
  } else {
    double* rate = *std::get_if<double*>(&option.value);
    if (!ParseDouble(word, rate)) return option.bad;
    in_range = IsRate(*rate);
  }
  if (in_range) return nullptr;
  return option.out_of_range != nullptr ? option.out_of_range : option.bad;
}

}  // namespace

bool IsRate(double rate) { return rate > 0 && rate < 1; }  // not when it is no number

std::optional<size_t> ReadOptions(Ctx* ctx, Words words, size_t begin,
                                  std::span<const Option> options, std::string_view end,
                                  OtherWords others) {
  size_t i = begin;
  for (; i < words.size() && (end.empty() || !Is(words[i], end)); ++i) {
    const auto option = std::ranges::find_if(
        options, [&](const Option& known) { return Is(words[i], known.name); });
    if (option == options.end()) {
      if (others == OtherWords::kIgnored) continue;
      server.ReplyWithError(ctx, kUnknownWord);
      return std::nullopt;
    }
    if (const auto* flag = std::get_if<bool*>(&option->value)) {
      **flag = true;
      continue;
    }
    if (++i == words.size()) {
      if (option->no_value == nullptr) {
        server.WrongArity(ctx);
      } else {
        server.ReplyWithError(ctx, option->no_value);
      }
      return std::nullopt;
    }
    if (end.empty() && HasValue(*option)) continue;
    if (const char* wrong = ReadValue(*option, words[i])) {
      server.ReplyWithError(ctx, wrong);
      return std::nullopt;
    }
  }
  return i;
}

}  // namespace tamis::redis
