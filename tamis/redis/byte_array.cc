#include "tamis/redis/byte_array.h"

#include "tamis/base/zeroed_memory.h"

namespace tamis::redis {

ByteArray::~ByteArray() {
  if (data_ != nullptr) TheZeroedMemory().free(data_);
}

ByteArray ByteArray::Zeroed(size_t size) {
  ByteArray result;
  result.data_ = static_cast<uint8_t*>(TheZeroedMemory().allocate(size));
  if (result.data_ != nullptr) result.size_ = size;
  return result;
}

ByteArray ByteArray::Adopt(void* data, size_t size) {
  ByteArray result;
  result.data_ = static_cast<uint8_t*>(data);
  result.size_ = size;
  return result;
}

}  // namespace tamis::redis
