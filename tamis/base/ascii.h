// Classes of ASCII characters, whatever the locale is. Threads: pure functions.
#pragma once

namespace tamis {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace tamis
