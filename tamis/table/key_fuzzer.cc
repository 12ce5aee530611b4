// Any bytes are a key of a format or do not parse; a key that parses is written as the same bytes,
// and lies where each condition that its values fulfil says. The first byte chooses the format.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/table/testing/random_keys.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  if (size == 0) return 0;
  static const auto* formats = new std::vector<TableSchema>(SchemasOfAllKeys());
  const TableSchema& schema = (*formats)[data[0] % formats->size()];
  const KeyFormat format(schema);
  const std::string key(reinterpret_cast<const char*>(data) + 1, size - 1);
  Row row;
  if (!format.Decode(key, &row).ok()) return 0;
  const auto again = format.Encode(row);
  if (!again.ok() || *again != key) std::abort();
  std::string prefix;
  for (size_t i = 0; i < schema.key.size(); ++i) {
    for (const Predicate& leaf : LeavesAbout(schema.key[i], row[schema.key[i]])) {
      if (leaf.Matches(row) && !Allows(format.SpansOf(i, leaf, prefix), key)) std::abort();
    }
    if (!format.Append(i, row[schema.key[i]], &prefix).ok() || !key.starts_with(prefix)) {
      std::abort();
    }
  }
  return 0;
}
