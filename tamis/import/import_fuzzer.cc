// Any bytes are records and errors in each format, and the stream ends.
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tamis/import/record_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const auto format : {RecordFormat::kCsv, RecordFormat::kJson, RecordFormat::kDeb822}) {
    std::istringstream in(bytes);
    RecordReader reader(format, &in);
    // Each record and each error takes at least a byte.
    for (size_t n = 0;; ++n) {
      if (n > size + 1) std::abort();
      const auto record = reader.Next();
      if (!record.ok()) {
        if (!record.status().message().starts_with("line ")) std::abort();
        continue;
      }
      if (!record->has_value()) break;
      if ((*record)->line == 0) std::abort();
    }
  }
  return 0;
}
