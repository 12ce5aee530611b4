// Any bytes decode to a value or do not, in every encoding; what decodes has canonical bytes that
// decode to it. Any bytes are a row of cells or are refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/table/cell_encoding.h"
#include "tamis/table/stored_row.h"
#include "tamis/table/testing/random_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Type type : kAllTypes) {
    for (int i = 1; i <= static_cast<int>(CellEncoding::kBigDecimal); ++i) {
      const auto encoding = static_cast<CellEncoding>(i);
      if (!IsEncodingOf(type, encoding)) continue;
      const auto value = DecodeCell(type, encoding, bytes);
      if (!value) continue;
      const auto canonical = EncodeCell(encoding, *value);
      if (!canonical.ok()) std::abort();
      const auto again = DecodeCell(type, encoding, *canonical);
      if (!again || *again != *value) std::abort();
    }
  }
  if (const auto cells = DecodeCells(bytes); cells.ok()) {
    const auto again = DecodeCells(EncodeCells(*cells));
    if (!again.ok() || *again != *cells) std::abort();
  }
  return 0;
}
