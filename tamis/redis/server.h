// The server's module interface, declared here and resolved by name when the module is loaded: no
// header of a server is needed, and one binary loads on every server that has the functions.
//
// `server.X(...)` is RedisModule_X. Those under TAMIS_OPTIONAL_FUNCTIONS are nullptr on servers
// that do not have them.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
struct RedisModuleCtx;
struct RedisModuleKey;
struct RedisModuleString;
struct RedisModuleType;
struct RedisModuleIO;
struct RedisModuleDigest;
struct RedisModuleDefragCtx;
struct RedisModuleInfoCtx;
struct RedisModuleKeyOptCtx;
struct RedisModuleCommand;
}

namespace tamis::redis {

using Ctx = RedisModuleCtx;
using Key = RedisModuleKey;
using String = RedisModuleString;

inline constexpr int kOk = 0;
inline constexpr int kErr = 1;

inline constexpr int kRead = 1;
inline constexpr int kWrite = 2;

inline constexpr int kKeyEmpty = 0;
inline constexpr int kKeyModule = 6;

// The flags of GetContextFlags.
inline constexpr int kFlagLua = 1 << 0;
inline constexpr int kFlagLoading = 1 << 13;
inline constexpr int kFlagReplicated = 1 << 12;
inline constexpr int kFlagSlave = 1 << 3;
inline constexpr int kFlagActiveChild = 1 << 18;
inline constexpr int kFlagResp3 = 1 << 22;

inline constexpr int kHandleIoErrors = 1;        // an option of SetModuleOptions
inline constexpr int kHandleSlotMigration = 32;  // the same, of Valkey 9
inline constexpr int kNotifyModule = 1 << 13;    // class "d" of keyspace events
inline constexpr long kPostponedLength = -1;

using CommandFunction = int (*)(Ctx*, String**, int);

struct TypeMethods {
  uint64_t version;
  void* (*rdb_load)(RedisModuleIO*, int);
  void (*rdb_save)(RedisModuleIO*, void*);
  void (*aof_rewrite)(RedisModuleIO*, String*, void*);
  size_t (*mem_usage)(const void*);
  void (*digest)(RedisModuleDigest*, void*);
  void (*free)(void*);
  int (*aux_load)(RedisModuleIO*, int, int);
  void (*aux_save)(RedisModuleIO*, int);
  int aux_save_triggers;
  size_t (*free_effort)(String*, const void*);
  void (*unlink)(String*, const void*);
  void* (*copy)(String*, String*, const void*);
  int (*defrag)(RedisModuleDefragCtx*, String*, void**);
  void* mem_usage2;
  void* free_effort2;
  void (*unlink2)(RedisModuleKeyOptCtx*, const void*);
  void* copy2;
};

struct CommandHistory {
  const char* since;
  const char* changes;
};

struct CommandKeySpec {
  const char* notes;
  uint64_t flags;
  int begin_search_type;
  union {
    int index;
    struct {
      const char* keyword;
      int start;
    } keyword;
  } begin_search;
  int find_keys_type;
  union {
    struct {
      int last;
      int step;
      int limit;
    } range;
    struct {
      int number;
      int first;
      int step;
    } key_number;
  } find_keys;
};

struct CommandArg {
  const char* name;
  int type;
  int key_spec_index;
  const char* token;
  const char* summary;
  const char* since;
  int flags;
  const char* deprecated_since;
  CommandArg* subargs;
};

struct CommandInfoVersion {
  int version;
  size_t history_size;
  size_t key_spec_size;
  size_t arg_size;
};

struct CommandInfo {
  const CommandInfoVersion* version;
  const char* summary;
  const char* complexity;
  const char* since;
  CommandHistory* history;
  const char* tips;
  int arity;
  CommandKeySpec* key_specs;
  CommandArg* args;
};

using GetNumber = long long (*)(const char* name, void* privdata);
using SetNumber = int (*)(const char* name, long long value, void* privdata, String** error);
using GetText = String* (*)(const char* name, void* privdata);
using SetText = int (*)(const char* name, String* value, void* privdata, String** error);
using GetFlag = int (*)(const char* name, void* privdata);
using SetFlag = int (*)(const char* name, int value, void* privdata, String** error);
struct ServerEvent {
  uint64_t id;
  uint64_t version;
};
// The data of the event that a database is emptied.
struct FlushInfo {
  uint64_t version;
  int32_t is_synchronous;
  int32_t database;  // -1 = all
};
using TimerCallback = void (*)(Ctx*, void* data);
using EventCallback = void (*)(Ctx*, ServerEvent, uint64_t subevent, void* data);

using ApplyConfig = int (*)(Ctx*, void* privdata, String** error);

#define TAMIS_SERVER_FUNCTIONS(F)                                                                \
  F(void, SetModuleAttribs, (Ctx*, const char* name, int version, int api_version))              \
  F(void*, Alloc, (size_t))                                                                      \
  F(void*, TryAlloc, (size_t))                                                                   \
  F(void*, Calloc, (size_t, size_t))                                                             \
  F(void, Free, (void*))                                                                         \
  F(size_t, MallocSize, (void*))                                                                 \
  F(int, CreateCommand,                                                                          \
    (Ctx*, const char* name, CommandFunction, const char* flags, int first, int last, int step)) \
  F(RedisModuleCommand*, GetCommand, (Ctx*, const char* name))                                   \
  F(int, SetCommandInfo, (RedisModuleCommand*, const CommandInfo*))                              \
  F(int, WrongArity, (Ctx*))                                                                     \
  F(const char*, StringPtrLen, (const String*, size_t*))                                         \
  F(int, StringToLongLong, (const String*, long long*))                                          \
  F(int, StringToDouble, (const String*, double*))                                               \
  F(String*, CreateString, (Ctx*, const char*, size_t))                                          \
  F(void, FreeString, (Ctx*, String*))                                                           \
  F(int, ReplyWithError, (Ctx*, const char*))                                                    \
  F(int, ReplyWithSimpleString, (Ctx*, const char*))                                             \
  F(int, ReplyWithLongLong, (Ctx*, long long))                                                   \
  F(int, ReplyWithBool, (Ctx*, int))                                                             \
  F(int, ReplyWithDouble, (Ctx*, double))                                                        \
  F(int, ReplyWithNull, (Ctx*))                                                                  \
  F(int, ReplyWithArray, (Ctx*, long))                                                           \
  F(int, ReplyWithMap, (Ctx*, long))                                                             \
  F(int, ReplyWithStringBuffer, (Ctx*, const char*, size_t))                                     \
  F(void, ReplySetArrayLength, (Ctx*, long))                                                     \
  F(int, GetContextFlags, (Ctx*))                                                                \
  F(void*, OpenKey, (Ctx*, String*, int mode))                                                   \
  F(void, CloseKey, (Key*))                                                                      \
  F(int, DeleteKey, (Key*))                                                                      \
  F(int, KeyType, (Key*))                                                                        \
  F(RedisModuleType*, ModuleTypeGetType, (Key*))                                                 \
  F(void*, ModuleTypeGetValue, (Key*))                                                           \
  F(int, ModuleTypeSetValue, (Key*, RedisModuleType*, void*))                                    \
  F(RedisModuleType*, CreateDataType, (Ctx*, const char* name, int encver, TypeMethods*))        \
  F(void, SaveUnsigned, (RedisModuleIO*, uint64_t))                                              \
  F(uint64_t, LoadUnsigned, (RedisModuleIO*))                                                    \
  F(void, SaveDouble, (RedisModuleIO*, double))                                                  \
  F(double, LoadDouble, (RedisModuleIO*))                                                        \
  F(void, SaveStringBuffer, (RedisModuleIO*, const char*, size_t))                               \
  F(char*, LoadStringBuffer, (RedisModuleIO*, size_t*))                                          \
  F(Ctx*, GetContextFromIO, (RedisModuleIO*))                                                    \
  F(int, IsIOError, (RedisModuleIO*))                                                            \
  F(void, LogIOError, (RedisModuleIO*, const char* level, const char* format, ...))              \
  F(void, SetModuleOptions, (Ctx*, int))                                                         \
  F(void, EmitAOF, (RedisModuleIO*, const char* command, const char* format, ...))               \
  F(void, DigestAddStringBuffer, (RedisModuleDigest*, const char*, size_t))                      \
  F(void, DigestAddLongLong, (RedisModuleDigest*, long long))                                    \
  F(void*, DefragAlloc, (RedisModuleDefragCtx*, void*))                                          \
  F(int, DefragShouldStop, (RedisModuleDefragCtx*))                                              \
  F(int, DefragCursorSet, (RedisModuleDefragCtx*, unsigned long))                                \
  F(int, DefragCursorGet, (RedisModuleDefragCtx*, unsigned long*))                               \
  F(void, DigestEndSequence, (RedisModuleDigest*))                                               \
  F(int, Replicate, (Ctx*, const char* command, const char* format, ...))                        \
  F(int, ReplicateVerbatim, (Ctx*))                                                              \
  F(int, NotifyKeyspaceEvent, (Ctx*, int type, const char* event, String* key))                  \
  F(int, RegisterNumericConfig,                                                                  \
    (Ctx*, const char* name, long long by_default, unsigned flags, long long least,              \
     long long greatest, GetNumber, SetNumber, ApplyConfig, void* privdata))                     \
  F(int, RegisterStringConfig,                                                                   \
    (Ctx*, const char* name, const char* by_default, unsigned flags, GetText, SetText,           \
     ApplyConfig, void* privdata))                                                               \
  F(int, LoadConfigs, (Ctx*))                                                                    \
  F(int, RegisterBoolConfig,                                                                     \
    (Ctx*, const char* name, int by_default, unsigned flags, GetFlag, SetFlag, ApplyConfig,      \
     void* privdata))                                                                            \
  F(int, SubscribeToServerEvent, (Ctx*, ServerEvent, EventCallback))                             \
  F(uint64_t, CreateTimer, (Ctx*, long long milliseconds, TimerCallback, void* data))            \
  F(void, Log, (Ctx*, const char* level, const char* format, ...))                               \
  F(int, RegisterInfoFunc, (Ctx*, void (*)(RedisModuleInfoCtx*, int for_crash_report)))          \
  F(int, InfoAddSection, (RedisModuleInfoCtx*, const char* name))                                \
  F(int, InfoAddFieldULongLong, (RedisModuleInfoCtx*, const char* name, unsigned long long))     \
  F(void*, GetServerInfo, (Ctx*, const char* section))                                           \
  F(const char*, ServerInfoGetFieldC, (void* info, const char* field))                           \
  F(void, FreeServerInfo, (Ctx*, void* info))                                                    \
  F(long long, Milliseconds, ())                                                                 \
  F(int, GetServerVersion, ())                                                                   \
  F(float, GetUsedMemoryRatio, ())                                                               \
  F(int, GetSelectedDb, (Ctx*))                                                                  \
  F(int, SelectDb, (Ctx*, int))                                                                  \
  F(int, SignalModifiedKey, (Ctx*, String*))                                                     \
  F(const String*, GetKeyNameFromIO, (RedisModuleIO*))                                           \
  F(int, GetDbIdFromIO, (RedisModuleIO*))                                                        \
  F(const String*, GetKeyNameFromOptCtx, (RedisModuleKeyOptCtx*))                                \
  F(int, GetDbIdFromOptCtx, (RedisModuleKeyOptCtx*))

#define TAMIS_OPTIONAL_FUNCTIONS(F)                \
  F(int, AddACLCategory, (Ctx*, const char* name)) \
  F(int, SetCommandACLCategories, (RedisModuleCommand*, const char* categories))

struct Server {
#define TAMIS_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
  TAMIS_SERVER_FUNCTIONS(TAMIS_DECLARE)
  TAMIS_OPTIONAL_FUNCTIONS(TAMIS_DECLARE)
#undef TAMIS_DECLARE
  bool is_valkey = false;  // which has every function under a second name

  // nullptr when all functions are there that must be, else the name of one that is not.
  const char* Resolve(Ctx* ctx);
};

extern Server server;

}  // namespace tamis::redis
