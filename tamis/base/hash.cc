#include "tamis/base/hash.h"

#include <xxhash.h>

namespace tamis {

uint64_t Hash(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace tamis
