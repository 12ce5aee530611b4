// Bytes as text for messages: what is not printable ASCII as \xNN, as HBase's own shell shows it.
#pragma once

#include <string>
#include <string_view>

namespace tamis::hbase {

// In quotes; no more than the first 200 bytes.
std::string Printable(std::string_view bytes);

}  // namespace tamis::hbase
