// SipHash-1-3, which is in the public domain, of two parts one behind the other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tamis::redis {

// Hashes the eight bytes of `prefix`, little-endian, and `data`.
uint64_t SipHash13(std::span<const uint8_t, 16> key, uint64_t prefix, std::string_view data);

}  // namespace tamis::redis
