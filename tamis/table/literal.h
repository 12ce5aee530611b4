// Literal: a value as SQL writes it: 'games', 42, x'00ff', NULL. For people, and for SQL.
#pragma once

#include <string>

#include "tamis/table/value.h"

namespace tamis {

std::string Literal(const Value& value);

}  // namespace tamis
