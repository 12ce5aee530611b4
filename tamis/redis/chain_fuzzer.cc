// Any bytes give a chain or an error; a chain that was accepted dumps to the same bytes and works.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tamis/redis/bloom_chain.h"
#include "tamis/redis/cuckoo_chain.h"

namespace tamis::redis {
namespace {

constexpr uint64_t kGreatestBytes = 1 << 22;

void Require(bool holds) {
  if (!holds) std::abort();
}

bool LoadChunk(BloomChain& chain, uint64_t at, std::string_view chunk) {
  return chain.LoadChunk(at, chunk) == BloomChain::Loaded::kOk;
}
bool LoadChunk(CuckooChain& chain, uint64_t at, std::string_view chunk) {
  return chain.LoadChunk(at, chunk);
}

// The first two bytes say how long the header is; what is after it are chunks.
template <class Chain>
void Try(std::string_view bytes) {
  if (bytes.size() < 2) return;
  const size_t size = static_cast<uint8_t>(bytes[0]) | static_cast<uint8_t>(bytes[1]) << 8;
  const std::string_view header = bytes.substr(2, size);
  std::string_view rest = bytes.substr(2 + header.size());
  auto chain = Chain::FromHeader(header, kGreatestBytes);
  if (!chain.ok()) return;
  Require(chain->Header() == header);
  Require(chain->partial());
  Require(chain->SizeBytes() <= kGreatestBytes + 40 + 64 * header.size() + 16 * (1 << 16));
  Require(chain->MayContain("absent"));
  uint64_t at = 0;
  while (!rest.empty()) {
    const std::string_view chunk = rest.substr(0, 1 + static_cast<uint8_t>(rest[0]) % 64);
    rest.remove_prefix(chunk.size());
    if (LoadChunk(*chain, at, chunk)) at += chunk.size();
    (void)LoadChunk(*chain, at * 0x9e3779b97f4a7c15u, chunk);
  }
  // Zeros for what is missing, and the chain is used.
  while (chain->partial()) {
    const std::string zeros(chain->Chunk(chain->present()).size(), '\0');
    Require(LoadChunk(*chain, chain->present(), zeros));
  }
  (void)chain->MayContain("absent");
  if constexpr (std::is_same_v<Chain, BloomChain>) {
    for (const char* item : {"a", "b", "c"}) {
      const auto added = chain->Add(item, kGreatestBytes);
      if (added == BloomChain::Added::kNew) Require(chain->MayContain(item));
    }
    (void)chain->Capacity();
  } else {
    for (const char* item : {"a", "b", "c"}) {
      if (chain->Insert(item, {.bytes = kGreatestBytes}) == CuckooChain::Inserted::kYes) {
        Require(chain->MayContain(item));
        Require(chain->Count(item) >= 1);
      }
    }
    for (const char* item : {"a", "b", "c"}) (void)chain->Erase(item);
    uint64_t pieces = chain->SizeBytes();
    for (uint64_t at = 0; (at = chain->Compact(at, 100, true).next) != 0;) Require(pieces-- > 0);
    (void)chain->Compact(bytes.size() * 0x9e3779b97f4a7c15u, 100, true);
  }
  auto copy = chain->Copy();
  Require(copy.has_value() && copy->Header() == chain->Header());
  auto again = Chain::FromHeader(chain->Header(), ~uint64_t{0});
  Require(again.ok());
}

}  // namespace
}  // namespace tamis::redis

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tamis::redis::Try<tamis::redis::BloomChain>(bytes);
  tamis::redis::Try<tamis::redis::CuckooChain>(bytes);
  return 0;
}
