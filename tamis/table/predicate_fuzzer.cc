// Any bytes are a condition or are refused; a condition that fits the schema can be normalized,
// printed and evaluated, and its normal form has the same truth.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"
#include "tamis/table/testing/random_values.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  static const TableSchema* schema = new TableSchema(SchemaOfAllTypes());
  const auto predicate = ParsePredicate({reinterpret_cast<const char*>(data), size});
  if (!predicate.ok()) return 0;
  const auto again = ParsePredicate(SerializePredicate(*predicate));
  if (!again.ok() || *again != *predicate) std::abort();
  if (!predicate->Validate(*schema).ok()) return 0;
  const Predicate normal = predicate->Normalized();
  if (normal.ToString(*schema).empty()) std::abort();
  Random random(size);
  for (int i = 0; i < 4; ++i) {
    const Row row = RandomRow(*schema, random);
    if (predicate->Matches(row) != normal.Matches(row)) std::abort();
  }
  return 0;
}
