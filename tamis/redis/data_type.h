// RegisterDataType: registers a data type of the server whose values are of one class: how the
// server saves, loads, copies, moves and frees them. Methods has the functions that differ between
// classes:
//
//   using Value
//   kName, kEncoding       as the server saves them
//   Decode(ctx, fields, encoding) -> Result<Value>
//   Encode(io, value)
//   Rewrite(io, key, value)           commands that make the value
//   Digest(digest, value)
//   Copy(value) -> std::optional<Value>
//   MemoryBytes(value)                what the allocator takes for it
//   Arrays(value) -> how many; Array(value, i) -> ByteArray&: those that may be moved
//   Unlinked(database, name, value)   optional: its key is gone under its name; the value itself
//                          may live on under another name or in another database (RENAME, MOVE)
#pragma once

#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "tamis/redis/command.h"
#include "tamis/redis/rdb_fields.h"
#include "tamis/redis/server.h"
#include "tamis/redis/server_memory.h"
#include "tamis/redis/settings.h"

namespace tamis::redis {

// The server's handle for the type of these values.
template <class Value>
inline RedisModuleType* data_type = nullptr;

template <class Methods>
int RegisterDataType(Ctx* ctx) {
  using Value = typename Methods::Value;
  TypeMethods methods{};
  methods.version = 4;
  methods.rdb_load = [](RedisModuleIO* io, int encoding) noexcept -> void* {
    try {
      RdbFields fields(io);
      auto value = Methods::Decode(server.GetContextFromIO(io), fields, encoding);
      if (value.ok()) return new Value(std::move(*value));
      server.LogIOError(io, "warning", "%s", value.status().message().c_str());
    } catch (const std::bad_alloc&) {
      server.LogIOError(io, "warning", "memory does not suffice for a %s", Methods::kName);
    }
    return nullptr;
  };
  methods.rdb_save = [](RedisModuleIO* io, void* value) noexcept {
    Methods::Encode(io, *static_cast<const Value*>(value));
  };
  methods.aof_rewrite = [](RedisModuleIO* io, String* key, void* value) noexcept {
    Methods::Rewrite(io, key, *static_cast<const Value*>(value));
  };
  methods.digest = [](RedisModuleDigest* digest, void* value) noexcept {
    Methods::Digest(digest, *static_cast<const Value*>(value));
    server.DigestEndSequence(digest);
  };
  methods.mem_usage = [](const void* value) noexcept -> size_t {
    return Methods::MemoryBytes(*static_cast<const Value*>(value));
  };
  methods.free = [](void* freed) noexcept {
    std::unique_ptr<Value> value(static_cast<Value*>(freed));
    const size_t bytes = value->SizeBytes();
    FreeLater(std::move(value), bytes);
  };
  if constexpr (requires(Value & value) { Methods::Unlinked(0, {}, value); }) {
    // Called before the server takes the key out of its database, for whatever reason. The server
    // declares the value const; it is ours.
    methods.unlink2 = [](RedisModuleKeyOptCtx* key, const void* value) noexcept {
      Methods::Unlinked(server.GetDbIdFromOptCtx(key), TextOf(server.GetKeyNameFromOptCtx(key)),
                        *static_cast<Value*>(const_cast<void*>(value)));
    };
  }
  // The server frees what costs more than 64 in the background.
  methods.free_effort = [](String*, const void* value) noexcept -> size_t {
    return 1 + static_cast<const Value*>(value)->SizeBytes() / 4096;
  };
  methods.copy = [](String*, String*, const void* value) noexcept -> void* {
    if (static_cast<const Value*>(value)->SizeBytes() > GreatestCopiedBytes(nullptr)) {
      server.Log(nullptr, "warning", "COPY of a %s: it is greater than tamis-max-copied-bytes",
                 Methods::kName);
      return nullptr;
    }
    try {
      auto copy = Methods::Copy(*static_cast<const Value*>(value));
      if (copy) return new Value(std::move(*copy));
    } catch (const std::bad_alloc&) {
    }
    return nullptr;
  };
  // Moves the arrays that the allocator wants elsewhere; 1 = time is up, more is left.
  methods.defrag = [](RedisModuleDefragCtx* defrag, String*, void** value) noexcept -> int {
    Value& filter = *static_cast<Value*>(*value);
    unsigned long i = 0;
    server.DefragCursorGet(defrag, &i);
    for (; i < Methods::Arrays(filter); ++i) {
      if (i % 64 == 63 && server.DefragShouldStop(defrag) != 0 &&
          server.DefragCursorSet(defrag, i) == kOk) {
        return 1;
      }
      ByteArray& array = Methods::Array(filter, i);
      if (void* moved = server.DefragAlloc(defrag, array.data())) {
        ArrayMoved(array.data(), moved, array.size());
        array.MovedTo(moved);
      }
    }
    return 0;
  };
  data_type<Value> = server.CreateDataType(ctx, Methods::kName, Methods::kEncoding, &methods);
  return data_type<Value> == nullptr ? kErr : kOk;
}

}  // namespace tamis::redis
