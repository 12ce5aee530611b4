// The times that publications quote, beside those of our filters here and now.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tamis {

struct PublishedTime {
  std::string work;
  std::string quoted;  // microseconds of one call, such as "200 to 300"
  double here_us = 0;
  double times = 0;  // the least of the quoted times, divided by `here_us`
};

// Takes some seconds.
std::vector<PublishedTime> MeasurePublishedTimes(uint64_t seed);

// A table for a terminal.
std::string TableOf(const std::vector<PublishedTime>& times);

}  // namespace tamis
