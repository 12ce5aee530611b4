// Any bytes give a key file or an error, with the checksums as they come and with right ones.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/base/hash.h"
#include "tamis/lsm/key_file.h"

namespace tamis::lsm {
namespace {

constexpr size_t kTable = 48;
constexpr size_t kHeadSize = kTable + KeyFile::kSections * 12 + 8;

// Puts right checksums into the header, so that damage after them is reached.
std::string Reseal(std::string bytes) {
  if (bytes.size() < kHeadSize) return bytes;
  size_t offset = kHeadSize;
  for (uint32_t section = 0; section < KeyFile::kSections; ++section) {
    const size_t at = kTable + section * 12;
    const uint32_t size = Reader(std::string_view(bytes).substr(at)).Fixed32();
    std::string checksum;
    const std::string_view body =
        offset <= bytes.size() ? std::string_view(bytes).substr(offset, size) : std::string_view();
    PutFixed32(&checksum, static_cast<uint32_t>(Hash(body, section)));
    bytes.replace(at + 8, 4, checksum);
    offset += size;
  }
  std::string checksum;
  PutFixed64(&checksum, Hash(std::string_view(bytes).substr(0, kHeadSize - 8), 0));
  bytes.replace(kHeadSize - 8, 8, checksum);
  return bytes;
}

void Try(const std::string& bytes) {
  const auto file = KeyFile::Borrow(bytes);
  if (!file.ok()) return;
  std::vector<uint64_t> hashes;
  if (!file->Append(0, KeyFile::kSections, &hashes).ok()) return;
  if (hashes.size() != file->count()) std::abort();
  for (size_t i = 1; i < hashes.size(); ++i) {
    if (hashes[i - 1] >= hashes[i]) std::abort();
  }
}

}  // namespace
}  // namespace tamis::lsm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  tamis::lsm::Try(bytes);
  tamis::lsm::Try(tamis::lsm::Reseal(bytes));
  return 0;
}
