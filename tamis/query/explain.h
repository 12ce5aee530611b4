// Explain: what a search did and why: who was asked, who was not, how much was read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tamis/base/executor.h"

namespace tamis {

struct Explain {
  std::string table;
  std::string predicate;           // as text
  std::string index;               // names, "+" between streams that are intersected, "" = scan
  std::vector<std::string> terms;  // the conditions that were looked up in filters
  std::string reason;              // why this plan, in a sentence

  uint64_t regions_total = 0;
  uint64_t regions_asked = 0;
  uint64_t regions_excluded_by_filter = 0;
  uint64_t regions_excluded_by_range = 0;
  uint64_t regions_excluded_by_key = 0;
  uint64_t regions_unknown = 0;  // asked since their filters are not known (building, no lease)
  uint64_t regions_scanned = 0;  // asked and answered by a scan
  uint64_t false_positive_regions = 0;  // asked because of a filter, and had no row
  uint64_t servers_total = 0;
  uint64_t servers_asked = 0;
  uint64_t requests = 0;  // RPCs, pages and repeats included
  uint64_t index_seeks = 0;
  uint64_t entries_read = 0;
  uint64_t rows_read = 0;
  uint64_t rows_returned = 0;
  uint64_t cells_undecodable = 0;  // of the rows read, and taken for NULL
  uint64_t rows_unparsed = 0;      // read and left out, since their keys are not the table's
  Duration routing_time{};
  Duration server_time{};  // from sending to the last answer, summed over rounds
  Duration merge_time{};

  // Counters are added; texts are joined where they differ.
  void Add(const Explain& other);

  std::string ToLine() const;  // one line for people
  std::string ToText() const;  // many lines for people
  std::string ToJson() const;  // the field names above; times in microseconds
};

}  // namespace tamis
