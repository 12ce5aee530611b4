// Text for a terminal, which acts on control characters: they would move its cursor, set its title
// or change the order of what is shown.
#pragma once

#include <string>
#include <string_view>

namespace tamis {

// C0 and C1 control characters, DEL, and the controls of text direction (U+202A to U+202E, U+2066
// to U+2069). `character` is one character in UTF-8.
bool IsTerminalControl(std::string_view character);

// The text with ? for each such character but line feed and tab, and for bytes that are not UTF-8
// and that terminals of other encodings take for C1.
std::string TerminalText(std::string_view text);

}  // namespace tamis
