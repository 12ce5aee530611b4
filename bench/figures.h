// Figures of benchmarks.
//
// A benchmark prints a log for whoever watches it, and a line for each figure that
// docs/BENCHMARKS.md shows: bench/page.py reads these lines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace tamis {

inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The upper one of an even number. REQUIRES: there is a figure.
inline double Median(std::vector<double> figures) {
  std::ranges::sort(figures);
  return figures[figures.size() / 2];
}

// The text that std::printf would write.
[[gnu::format(printf, 1, 2)]] inline std::string Printed(const char* format, ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

struct BenchmarkFigure {
  std::string work;    // the work that is done
  std::string beside;  // the work that it is compared with; may be empty
  std::string now;     // measured, for both sides, with units; may be empty
  std::string ratio;   // the number that carries over to another machine, such as "1.13x"
  std::string goal;    // a bound of `ratio`, such as "<= 1.6x"; empty: there is none
};

// REQUIRES: no member contains '|' or a line end.
inline void Report(const BenchmarkFigure& figure) {
  std::printf("figure: %s | %s | %s | %s | %s\n", figure.work.c_str(), figure.beside.c_str(),
              figure.now.c_str(), figure.ratio.c_str(), figure.goal.c_str());
}

}  // namespace tamis
