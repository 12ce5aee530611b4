// Runs a fuzz target without a fuzzer: every file of the given directories, then seeded mutations
// of them. A target aborts when a property does not hold.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tamis/base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutationsPerFile = 2000;

void Run(const std::string& bytes) {
  // A copy of the exact size, so that a sanitizer sees a read after its end.
  const std::vector<uint8_t> data(bytes.begin(), bytes.end());
  LLVMFuzzerTestOneInput(data.data(), data.size());
}

std::string Mutate(std::string bytes, const std::vector<std::string>& others,
                   tamis::Random& random) {
  const uint64_t changes = 1 + random.Uniform(4);
  for (uint64_t i = 0; i < changes; ++i) {
    const size_t at = random.Uniform(bytes.size() + 1);
    switch (random.Uniform(5)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        bytes.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        bytes.erase(at, random.Uniform(8));
        break;
      case 3: {
        const std::string& other = others[random.Uniform(others.size())];
        bytes.insert(at, other.substr(random.Uniform(other.size() + 1), random.Uniform(32)));
        break;
      }
      default:
        if (at < bytes.size()) bytes[at] ^= static_cast<char>(1 << random.Uniform(8));
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  if (files.empty()) {
    std::fprintf(stderr, "no corpus files; give directories that hold some\n");
    return 1;
  }
  tamis::Random random(1);
  Run("");
  for (const std::string& file : files) {
    Run(file);
    for (int i = 0; i < kMutationsPerFile; ++i) Run(Mutate(file, files, random));
  }
  std::printf("%zu files, %d mutations each\n", files.size(), kMutationsPerFile);
  return 0;
}
