#include "tamis/redis/sip_hash.h"

#include <bit>
#include <cstring>

namespace tamis::redis {
namespace {

uint64_t Load(const void* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

struct State {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }

  void Take(uint64_t word) {
    v3 ^= word;
    Round();
    v0 ^= word;
  }
};

}  // namespace

uint64_t SipHash13(std::span<const uint8_t, 16> key, uint64_t prefix, std::string_view data) {
  const uint64_t k0 = Load(key.data());
  const uint64_t k1 = Load(key.data() + 8);
  State state = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du, k0 ^ 0x6c7967656e657261u,
                 k1 ^ 0x7465646279746573u};
  state.Take(prefix);
  const uint64_t last = static_cast<uint64_t>(sizeof(prefix) + data.size()) << 56;
  for (; data.size() >= 8; data.remove_prefix(8)) state.Take(Load(data.data()));
  uint64_t rest = 0;
  if (!data.empty()) std::memcpy(&rest, data.data(), data.size());
  state.Take(last | rest);
  state.v2 ^= 0xff;
  for (int i = 0; i < 3; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace tamis::redis
