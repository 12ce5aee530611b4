// Bytes as text for messages: bytes that are not printable ASCII become \xNN, as in HBase's shell.
#pragma once

#include <string>
#include <string_view>

namespace tamis::hbase {

// Returns the first 200 bytes at most, in quotes.
std::string Printable(std::string_view bytes);

}  // namespace tamis::hbase
