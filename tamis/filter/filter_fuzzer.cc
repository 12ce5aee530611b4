// Any bytes give a filter or an error, with the checksums as they come and with right ones.
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/filter/any_filter.h"

namespace tamis {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Puts right length and checksums into the header, so that damage after them is reached.
std::string Reseal(std::string_view bytes) {
  if (bytes.size() < kFilterHeaderSize) return std::string(bytes);
  FilterHeader header;
  Reader reader(bytes.substr(12));
  header.kind = static_cast<FilterKind>(reader.Fixed32());
  header.seed = reader.Fixed64();
  reader.Fixed64();
  for (uint64_t& parameter : header.parameters) parameter = reader.Fixed64();
  std::vector<uint64_t> payload((bytes.size() - kFilterHeaderSize) / sizeof(uint64_t));
  Reader words(bytes.substr(kFilterHeaderSize));
  for (uint64_t& word : payload) word = words.Fixed64();
  return SealFilter(header, payload);
}

template <class F>
void Try(const std::string& bytes) {
  for (const OpenMode mode : {OpenMode::kCopy, OpenMode::kBorrow}) {
    auto filter = F::Deserialize(bytes, mode);
    if (!filter.ok()) continue;
    if (mode == OpenMode::kCopy) Require(filter->Serialize() == bytes);
    // Bytes that were borrowed were not checked: wrong answers, and nothing worse.
    const bool checked = mode == OpenMode::kCopy;
    std::vector<uint64_t> hashes;
    for (uint64_t i = 0; i < 70; ++i) hashes.push_back(Mix(i));
    const std::span<const uint64_t> span(hashes);
    for (const uint64_t hash : span) (void)filter->MayContain(hash);
    if constexpr (requires { filter->MayContain(span); }) (void)filter->MayContain(span);
    (void)filter->Fill();
    (void)filter->ExpectedFpr();
    (void)filter->Serialize();
    if constexpr (requires { filter->Insert(uint64_t{}); }) {
      for (const uint64_t hash : span.first(8)) {
        if (filter->Insert(hash)) Require(!checked || filter->MayContain(hash));
      }
    }
    if constexpr (requires { filter->Insert(span); }) (void)filter->Insert(span);
    if constexpr (requires { filter->Merge(*filter); }) (void)filter->Merge(F(*filter));
    if constexpr (requires { filter->Erase(uint64_t{}); }) {
      for (const uint64_t hash : span.first(16)) (void)filter->Erase(hash);
    }
    if constexpr (requires { filter->Erase(span); }) (void)filter->Erase(span);
    if constexpr (requires { filter->Grow(); }) (void)filter->Grow();
    if constexpr (requires { filter->Shrink(); }) (void)filter->Shrink();
    (void)filter->Serialize();
  }
}

template <class... Fs>
void TryAll(const std::string& bytes, std::variant<Fs...>*) {
  (Try<Fs>(bytes), ...);
}

}  // namespace
}  // namespace tamis

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr tamis::FilterVariant* kAll = nullptr;
  tamis::TryAll(bytes, kAll);
  tamis::TryAll(tamis::Reseal(bytes), kAll);
  return 0;
}
