// Command: one row of the command tables, from which commands are registered and described, and
// what all commands share.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tamis/redis/server.h"

namespace tamis::redis {

// Where a command has its keys.
enum class Keys { kFirst, kNone, kFirstIsMadeOfOthers };

struct Command {
  const char* name;
  CommandFunction run;
  int arity;               // the server's count: with the name; negative = at least
  const char* flags;       // flags of CreateCommand
  const char* categories;  // for servers that let modules name them
  const char* since;
  const char* complexity;
  const char* summary;
  // The words behind the name: `key` and `source` are keys, `x:double` and `x:integer` have types,
  // `item...` is repeated, [WORD x] and [WORD] are options, [A|B] is a choice, <A x [B]|C> one that
  // must be made, WORD alone stands for itself.
  const char* syntax;
  const char* tips = nullptr;
  Keys keys = Keys::kFirst;
};

// kErr when the server refuses one.
int RegisterCommands(Ctx* ctx, std::span<const Command> commands);

using Words = std::span<String* const>;  // the first one is the command's name

// Run<function> is the function that the server calls for a command: it calls function(ctx, words),
// and turns an exception into an error reply.
void ReplyOutOfMemory(Ctx* ctx) noexcept;
template <void (*function)(Ctx*, Words)>
int Run(Ctx* ctx, String** words, int count) noexcept {
  try {
    function(ctx, Words(words, static_cast<size_t>(count)));
  } catch (...) {  // only memory that is not there
    ReplyOutOfMemory(ctx);
  }
  return kOk;
}

inline std::string_view TextOf(const String* string) {
  size_t size = 0;
  const char* data = server.StringPtrLen(string, &size);
  return {data, size};
}

// `word` is `name` in any case.
bool Is(const String* word, std::string_view name);

bool ParseInteger(const String* word, long long* value);
bool ParseDouble(const String* word, double* value);

inline constexpr char kWrongType[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr char kNotFound[] = "ERR not found";
inline constexpr char kNoMemory[] = "ERR Insufficient memory";
inline constexpr char kTooLargeToCopy[] =
    "ERR greater than tamis-max-copied-bytes: the server would stop answering while it is copied";
inline constexpr char kPartial[] = "ERR the filter is being loaded: chunks are missing";

void ReplyText(Ctx* ctx, std::string_view text);
bool Resp3(Ctx* ctx);
// A keyspace event of class `d`.
void Notify(Ctx* ctx, const char* event, String* key);

}  // namespace tamis::redis
