// The times that publications quote, beside those of our filters here and now.
#pragma once

#include <cstdint>
#include <string>

namespace tamis {

// A table for a terminal.
std::string PublishedTimes(uint64_t seed);

}  // namespace tamis
