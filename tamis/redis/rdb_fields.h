// RdbFields: reads the fields of a value that is being loaded. After a short read all fields are
// zero and failed() is true, so that a loop whose count is a field ends at once.
#pragma once

#include <cstdint>

#include "tamis/redis/byte_array.h"
#include "tamis/redis/server.h"
#include "tamis/redis/server_memory.h"

namespace tamis::redis {

class RdbFields {
 public:
  explicit RdbFields(RedisModuleIO* io) : io_(io) {}

  uint64_t Unsigned() {
    const uint64_t value = failed() ? 0 : server.LoadUnsigned(io_);
    return failed() ? 0 : value;
  }

  double Double() {
    const double value = failed() ? 0 : server.LoadDouble(io_);
    return failed() ? 0 : value;
  }

  // The server's buffer itself.
  ByteArray Bytes() {
    if (failed()) return {};
    size_t size = 0;
    char* bytes = server.LoadStringBuffer(io_, &size);
    if (bytes == nullptr) {
      null_ = true;
      return {};
    }
    ArrayTaken(bytes, size);
    return ByteArray::Adopt(bytes, size);
  }

  // The key of the value; nullptr = none.
  const String* key() const { return server.GetKeyNameFromIO(io_); }
  int database() const { return server.GetDbIdFromIO(io_); }

  bool failed() const { return null_ || server.IsIOError(io_) != 0; }

 private:
  RedisModuleIO* io_;
  bool null_ = false;
};

}  // namespace tamis::redis
