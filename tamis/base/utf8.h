// UTF-8 as RFC 3629 has it: no surrogates, nothing above U+10FFFF, no longer form than needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tamis {

// The size of the character at the front of the text, which is not empty; 0 when there is none.
size_t Utf8Size(std::string_view text);

// REQUIRES: a character, so at most U+10FFFF and no surrogate.
void AppendUtf8(uint32_t character, std::string* out);

// Where the first byte stands that begins no character; npos when all of the text is UTF-8.
size_t FindInvalidUtf8(std::string_view text);

}  // namespace tamis
