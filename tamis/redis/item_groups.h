// Item groups: the items of a command, a group at a time, so that a filter can fetch ahead for all
// items of a group and nothing has to be allocated for them.
//
// Threads: the server's own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "tamis/redis/command.h"

namespace tamis::redis {

constexpr size_t kGroup = 256;

// Calls visit(texts, begin) for items[begin, begin + texts.size()), group by group.
template <class Visit>
void ForGroups(Words items, Visit&& visit) {
  std::string_view texts[kGroup];
  for (size_t begin = 0; begin < items.size(); begin += kGroup) {
    const size_t count = std::min(kGroup, items.size() - begin);
    for (size_t i = 0; i < count; ++i) texts[i] = TextOf(items[begin + i]);
    visit(std::span<const std::string_view>(texts, count), begin);
  }
}

// Calls reply(may_contain) for each item in turn.
template <class Chain, class Reply>
void ForAnswers(const Chain& chain, Words items, Reply&& reply) {
  ForGroups(items, [&](std::span<const std::string_view> texts, size_t) {
    bool answers[kGroup];
    chain.MayContain(texts, answers);
    for (size_t i = 0; i < texts.size(); ++i) reply(answers[i]);
  });
}

}  // namespace tamis::redis
