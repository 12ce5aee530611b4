// Any bytes have a value under every function, and a JSON text is one here exactly when it is one
// to another parser.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tamis/base/utf8.h"
#include "tamis/table/expression.h"

namespace tamis {
namespace {

// The other parser takes a byte order mark, and no number that a double cannot hold.
bool IsJsonElsewhere(const std::string& text) {
  return nlohmann::json::accept(text) && !text.starts_with("\xef\xbb\xbf");
}

bool MayHaveGreatNumber(const std::string& text) {
  return text.size() > 300 || text.find_first_of("eE") != std::string::npos;
}

void CheckJson(const std::string& text) {
  const JsonPath first{.steps = {uint32_t{0}}};
  // A zero in front shows whether the rest is JSON, whatever it holds.
  const std::string array = "[0," + text + "]";
  const bool here = first.Find(array).has_value();
  const bool elsewhere = IsJsonElsewhere(array);
  if (here && !elsewhere && !MayHaveGreatNumber(text)) std::abort();
  if (elsewhere && !here) std::abort();
  if (!here) return;
  const JsonPath second{.steps = {uint32_t{1}}};
  const auto found = second.Find(array);
  if (found.has_value() && FindInvalidUtf8(*found) != std::string::npos) std::abort();
  if (!elsewhere) return;
  const nlohmann::json value = nlohmann::json::parse(array).at(1);
  if (value.is_null() != !found.has_value()) std::abort();
  if (value.is_string() && value.get<std::string>() != *found) std::abort();
  if (!value.is_string() && found.has_value() && nlohmann::json::parse(*found) != value) {
    std::abort();
  }
}

}  // namespace
}  // namespace tamis

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tamis;  // NOLINT(google-build-using-namespace)
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  // Shallow enough that both parsers, and the arrays around it, are within their bounds.
  if (std::ranges::count_if(bytes, [](char c) { return c == '[' || c == '{'; }) < 90) {
    CheckJson(bytes);
  }
  const JsonPath path{.steps = {std::string("a"), uint32_t{1}}};
  if (path.Find(bytes) != path.Find(" " + bytes + "\n")) std::abort();
  if (const auto parsed = JsonPath::Parse(bytes); parsed.ok()) {
    const auto again = JsonPath::Parse(parsed->ToString());
    if (!again.ok() || *again != *parsed) std::abort();
  }
  const Value text = Value::Text(bytes);
  const Expression lower{.function = Expression::Function::kLower};
  if (lower.Evaluate(lower.Evaluate(text)) != lower.Evaluate(text)) std::abort();
  const Expression prefix{.function = Expression::Function::kSubstr, .length = 3};
  const Value three = prefix.Evaluate(text);
  if (!three.is_null() && !bytes.starts_with(three.str())) std::abort();
  if (three.is_null() && FindInvalidUtf8(bytes) == std::string::npos) std::abort();
  return 0;
}
