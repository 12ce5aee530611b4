// Row: the values of one row, in the order of TableSchema::columns.
#pragma once

#include <vector>

#include "tamis/table/value.h"

namespace tamis {

using Row = std::vector<Value>;

}  // namespace tamis
