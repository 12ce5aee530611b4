// Values and bytes that golden files are written of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tamis/table/value.h"

namespace tamis {

// Bytes that do not repeat.
std::string Pattern(size_t size);

std::span<const char* const> DecimalTexts();

// Values of a type, the edges of the encodings among them.
std::vector<Value> Values(Type type);

}  // namespace tamis
