// Shared by the commands of both chains.
#pragma once

#include <new>
#include <optional>
#include <vector>

#include "tamis/redis/command.h"
#include "tamis/redis/faults.h"
#include "tamis/redis/filter_key.h"
#include "tamis/redis/item_groups.h"
#include "tamis/redis/settings.h"
#include "tamis/redis/trust.h"

namespace tamis::redis {

// False, and an error is sent, where there is no filter and the settings do not want a 0.
template <class Chain>
bool Answers(Ctx* ctx, const FilterKey<Chain>& key) {
  if (key.get() != nullptr || !settings.missing_is_error) return true;
  server.ReplyWithError(ctx, key.missing() ? kNotFound : kWrongType);
  return false;
}

template <class Chain>
void ReplyExists(Ctx* ctx, const FilterKey<Chain>& key, Words words) {
  if (!Answers(ctx, key)) return;
  server.ReplyWithBool(ctx, key.get() != nullptr && key->MayContain(TextOf(words[2])));
}

template <class Chain>
void Exists(Ctx* ctx, Words words) {
  ReplyExists(ctx, FilterKey<Chain>(ctx, words[1], kRead), words);
}

template <class Chain>
void ReplyExistMany(Ctx* ctx, const FilterKey<Chain>& key, Words words) {
  const Words items = words.subspan(2);
  if (!Answers(ctx, key)) return;
  server.ReplyWithArray(ctx, static_cast<long>(items.size()));
  const auto reply = [ctx](bool may_contain) { server.ReplyWithBool(ctx, may_contain); };
  if (key.get() != nullptr) return ForAnswers(*key, items, reply);
  for (size_t i = 0; i < items.size(); ++i) reply(false);
}

template <class Chain>
void ExistMany(Ctx* ctx, Words words) {
  ReplyExistMany(ctx, FilterKey<Chain>(ctx, words[1], kRead), words);
}

// Memory did not suffice for an add that another server has done: the filter here answers "perhaps"
// to everything from now on. Does nothing for a command of a client.
template <class Chain>
void ItemLost(Ctx* ctx, FilterKey<Chain>& key) {
  if (LimitsApply(ctx)) return;
  if (key.get() != nullptr && !faults.incomplete_is_believed) key->Spoil();
  CommandLost(ctx, key.get() != nullptr);
}

// Room to note which items a replica has to add. False, and the error is sent, when there is none.
template <class Chain>
bool MakeRoom(Ctx* ctx, FilterKey<Chain>& key, size_t items, std::vector<String*>* added) try {
  added->reserve(items);
  return true;
} catch (const std::bad_alloc&) {
  ItemLost(ctx, key);
  server.ReplyWithError(ctx, kNoMemory);
  return false;
}

// The filter that items are added to, which create(key) makes when it is missing and may be made:
// it answers an error, or nullptr. False, and the error is sent, when there is none.
template <class Chain, class Create>
bool OpenForItems(Ctx* ctx, FilterKey<Chain>& key, bool may_create, Create&& create) {
  const char* wrong = nullptr;
  if (key.other_type()) {
    wrong = kWrongType;
  } else if (key.missing()) {
    wrong = may_create && MayCreate(ctx) ? create(key) : kNotFound;
  }
  if (wrong != nullptr) server.ReplyWithError(ctx, wrong);
  return wrong == nullptr;
}

}  // namespace tamis::redis
