// LsmBench: lookups in a user's database with and without the filter, in one run, by turns.
//
// Times are processor time of the one thread that looks up, so that other programs disturb little;
// what carries over to another machine is the ratios.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/lsm/stored_database.h"

namespace tamis {

struct LsmBench {
  std::string keys_file;  // "" = keys that are there, and such that are not
  std::string family = "default";
  uint64_t lookups = 20'000;
  uint64_t rounds = 7;
  uint64_t cache_bytes = uint64_t{1} << 30;

  struct Line {
    std::string what;
    double stock_ns = 0;  // medians
    double filtered_ns = 0;
    double ratio = 0;  // stock : filtered, the median of the rounds
    double least = 0;
    double greatest = 0;
  };
  struct Report {
    std::string database;
    std::string family;
    uint64_t entries = 0;
    uint64_t sorted_runs = 0;
    uint64_t filter_bytes = 0;
    std::vector<Line> lines;
    struct Blocks {
      std::string what;
      uint64_t lookups = 0;
      uint64_t found = 0;
      double stock = 0;  // blocks that one lookup touched
      double filtered = 0;
    };
    std::vector<Blocks> blocks;

    std::string AsText() const;
    std::string AsJson() const;
  };
  // REQUIRES: the database was opened with a filter, which has counted it.
  Result<Report> Run(const lsm::StoredDatabase& database, std::atomic<bool>* cancelled) const;
};

}  // namespace tamis
