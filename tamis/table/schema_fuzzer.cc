// Any bytes are a valid schema, which reads back as itself, or are refused.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tamis/table/schema.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto schema = tamis::ParseSchema({reinterpret_cast<const char*>(data), size});
  if (!schema.ok()) return 0;
  if (!schema->Validate().ok() || schema->ToString().empty()) std::abort();
  const std::string bytes = tamis::SerializeSchema(*schema);
  const auto again = tamis::ParseSchema(bytes);
  if (!again.ok() || tamis::SerializeSchema(*again) != bytes) std::abort();
  return 0;
}
