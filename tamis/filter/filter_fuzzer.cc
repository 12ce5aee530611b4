// Any bytes give a filter or an error, with the checksums as they come and with right ones.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/filter/any_filter.h"

namespace tamis {
namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

// Puts right length and checksums into the header, so that damage behind them is reached.
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
    for (uint64_t i = 0; i < 8; ++i) (void)filter->MayContain(Mix(i));
    if (mode == OpenMode::kBorrow) continue;
    if constexpr (requires { filter->Insert(uint64_t{}); }) {
      for (uint64_t i = 0; i < 8; ++i) {
        if (filter->Insert(Mix(i))) Require(filter->MayContain(Mix(i)));
      }
    }
    if constexpr (requires { filter->Erase(uint64_t{}); }) {
      for (uint64_t i = 0; i < 16; ++i) (void)filter->Erase(Mix(i));
    }
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
