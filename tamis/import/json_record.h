// One JSON object as a record.
#pragma once

#include <string_view>

#include "tamis/import/record.h"

namespace tamis {

// kInvalidArgument when the text is no JSON object, or is nested more than 100 deep.
Result<Record> ParseJsonRecord(std::string_view text);

}  // namespace tamis
