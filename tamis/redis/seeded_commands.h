// BF.* of filters of valkey-bloom's kind (SeededChain), with its words, replies and errors. The
// commands of bloom_commands.h call these for a key that has such a filter, or is to get one.
#pragma once

#include <span>

#include "tamis/redis/command.h"

namespace tamis::redis {

// Whether a filter that a command makes is of that kind.
bool MakesSeeded(Ctx* ctx);
bool IsSeeded(Ctx* ctx, String* name);  // whether the key has one
// Whether words of BF.INSERT before ITEMS are those of valkey-bloom alone.
bool HasSeededWords(Words words);

void SeededReserve(Ctx* ctx, Words words);
void SeededAdd(Ctx* ctx, Words words);
void SeededAddMany(Ctx* ctx, Words words);
void SeededInsert(Ctx* ctx, Words words);
void SeededExists(Ctx* ctx, Words words);
void SeededExistMany(Ctx* ctx, Words words);
void SeededInfo(Ctx* ctx, Words words);
void SeededCard(Ctx* ctx, Words words);
// BF.DEBUG, BF.SCANDUMP and BF.LOADCHUNK, which such a filter does not have.
void SeededRefuse(Ctx* ctx, Words words);

std::span<const Command> SeededCommands();

}  // namespace tamis::redis
