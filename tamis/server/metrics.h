// Metrics: what this server did since it began, as OpenMetrics text.
//
// Threads: safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tamis/query/engine.h"
#include "tamis/query/explain.h"

namespace tamis::server {

class Metrics {
 public:
  using Seconds = std::chrono::duration<double>;

  // A request was answered. `route` is one of the server's patterns, so their number is bounded.
  void CountRequest(const std::string& route, int http_status, Seconds time);
  // A statement ended: "complete", "cancelled", "timed out", "failed", "refused".
  void CountStatement(const std::string& outcome, uint64_t rows);
  void CountSearch(const Explain& search);

  struct Now {
    Engine::Knowledge known;
    Engine::Totals totals;
    uint64_t connections = 0;
    uint64_t event_streams = 0;
    uint64_t statements = 0;  // that run
  };
  std::string Text(const Now& now) const;

  struct Totals {
    uint64_t statements = 0;
    uint64_t rows = 0;
    uint64_t searches = 0;
    Explain sums;  // sums of the searches; numbers only
  };
  Totals totals() const;

 private:
  // The number of durations up to each bound.
  struct Histogram {
    static constexpr std::array<double, 12> kBounds = {.0001, .0003, .001, .003, .01, .03,
                                                       .1,    .3,    1,    3,    10,  30};
    std::array<uint64_t, kBounds.size()> counts{};
    uint64_t count = 0;
    double sum = 0;

    void Add(double seconds);
    void AppendTo(std::string* out, const std::string& name, const std::string& labels) const;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;  // by route and status
  std::map<std::string, Histogram> request_times_;            // by route
  std::map<std::string, uint64_t> statements_;                // by outcome
  uint64_t rows_ = 0;
  uint64_t searches_ = 0;
  Explain sums_;
  Histogram routing_, servers_, merging_;
};

}  // namespace tamis::server
