// Any bytes are a value, a key, a row or an index entry, or are refused; what is accepted is
// written back as the same bytes.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/table/codec.h"
#include "tamis/table/testing/random_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  static const TableSchema* schema = new TableSchema(SchemaOfAllTypes());
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Type type : kAllTypes) {
    std::string_view rest = bytes;
    if (const auto value = ReadOrdered(type, &rest); value.ok()) {
      std::string again;
      AppendOrdered(*value, &again);
      if (again != bytes.substr(0, size - rest.size())) std::abort();
    }
  }
  Row row;
  if (DecodeKey(*schema, bytes, &row).ok() && EncodeKey(*schema, row) != bytes) std::abort();
  if (DecodeRow(*schema, bytes, &row).ok()) {
    Row again;
    if (!DecodeRow(*schema, EncodeRow(*schema, row), &again).ok()) std::abort();
    for (const uint32_t column : schema->key) again[column] = row[column];
    if (again != row) std::abort();
  }
  for (const IndexSpec& index : schema->indexes) {
    if (const auto parts = SplitIndexEntry(*schema, index, bytes); parts.ok()) {
      if (parts->first.size() + parts->second.size() != size) std::abort();
    }
  }
  return 0;
}
