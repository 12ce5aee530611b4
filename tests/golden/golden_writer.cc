// Writes the golden files: what the byte formats of tables, filters and messages are, as text that
// a test in another language reads. A change of one of these bytes is a change of a format.
//
//   golden_writer DIRECTORY            writes the files
//   golden_writer --check DIRECTORY    says which ones differ from what it would write
//
// One case a line, its fields separated by single spaces; lines that begin with # are comments.
//
//   bytes    lower-case hexadecimal; none are "-"
//   value    NULL, or TYPE:TEXT: text and bytes in hexadecimal, int64 in digits, double as the
//            16 hexadecimal digits of its bits, bool 0 or 1, timestamp in microseconds, decimal as
//            its canonical text
//   refused  there are no such bytes
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/golden/formats.h"
#include "tests/golden/scenarios.h"

namespace tamis {
namespace {

struct Golden {
  const char* name;
  std::string (*text)();
};

constexpr Golden kFiles[] = {
    {"codec.txt", Codec},
    {"hashes.txt", Hashes},
    {"cells.txt", Cells},
    {"decimals.txt", Decimals},
    {"keys.txt", Keys},
    {"rows.txt", Rows},
    {"predicates.txt", Predicates},
    {"filters.txt", Filters},
    {"positions.txt", Positions},
    {"messages.txt", Messages},
    {"searches.txt", Searches},
    {"writes.txt", Writes},
    {"cell_maps.txt", CellMaps},
    {"expressions.txt", Expressions},
};

int Run(bool check, const std::string& directory) {
  int differing = 0;
  for (const Golden& golden : kFiles) {
    const std::string path = directory + "/" + golden.name;
    const std::string text = golden.text();
    if (!check) {
      std::ofstream(path, std::ios::binary) << text;
      continue;
    }
    std::ifstream in(path, std::ios::binary);
    std::ostringstream there;
    there << in.rdbuf();
    if (there.str() == text) continue;
    ++differing;
    std::istringstream old_lines(there.str());
    std::istringstream new_lines(text);
    std::string old_line;
    std::string new_line;
    int line = 1;
    while (std::getline(old_lines, old_line) && std::getline(new_lines, new_line) &&
           old_line == new_line) {
      ++line;
    }
    std::fprintf(stderr, "%s:%d: what was written before differs\n  was %s\n  is  %s\n",
                 path.c_str(), line, old_line.c_str(), new_line.c_str());
  }
  return differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 2 && !check) {
    std::fputs("usage: golden_writer [--check] DIRECTORY\n", stderr);
    return 2;
  }
  return tamis::Run(check, argv[argc - 1]);
}
