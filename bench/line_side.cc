#include "bench/line_side.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>

namespace tamis {
namespace {

double CpuSeconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

void AnswerLines(const LineWork& work) {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string what;
    int64_t count = 0;
    int64_t seed = 0;
    words >> what >> count >> seed;
    const double cpu = CpuSeconds();
    const auto begin = std::chrono::steady_clock::now();
    const std::optional<double> reported = work(what, count, seed);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    std::printf("%.6f %.6f\n", reported.value_or(time.count()), CpuSeconds() - cpu);
    std::fflush(stdout);
  }
}

}  // namespace tamis
