#include "tamis/redis/byte_array.h"

#include <cstdlib>

namespace tamis::redis {
namespace {

ByteAllocator allocator = {[](size_t size) { return std::calloc(size, 1); }, std::free};

}  // namespace

void SetByteAllocator(ByteAllocator a) { allocator = a; }

ByteArray::~ByteArray() {
  if (data_ != nullptr) allocator.free(data_);
}

ByteArray ByteArray::Zeroed(size_t size) {
  ByteArray result;
  result.data_ = static_cast<uint8_t*>(allocator.allocate_zeroed(size));
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
