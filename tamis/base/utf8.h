// UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no longer form than needed.
#pragma once

#include <cstddef>
#include <string_view>

namespace tamis {

// Where the first byte stands that begins no character; npos when all of the text is UTF-8.
size_t FindInvalidUtf8(std::string_view text);

}  // namespace tamis
