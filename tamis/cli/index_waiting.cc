#include "tamis/cli/index_waiting.h"

#include <cstdio>

#include "tamis/base/terminal_text.h"

namespace tamis {

Result<IndexProgress> WaitForIndex(Session* session, const std::string& table,
                                   const std::string& index) {
  return session->AwaitIndex(table, index, [&](const IndexProgress& progress) {
    const std::string line =
        "waiting for index \"" + index + "\" of table \"" + table + "\", " + progress.ToString();
    std::fprintf(stderr, "tamis: %s\n", TerminalText(line).c_str());
  });
}

}  // namespace tamis
