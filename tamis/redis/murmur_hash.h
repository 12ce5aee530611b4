// MurmurHash64A (Austin Appleby, public domain): what the compatible filters hash with. Everything
// of our own hashes with tamis/base/hash.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace tamis::redis {

uint64_t MurmurHash64A(std::string_view bytes, uint64_t seed);
// The older one of 32 bits, MurmurHash2.
uint32_t MurmurHash2(std::string_view bytes, uint32_t seed);

}  // namespace tamis::redis
