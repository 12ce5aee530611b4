// CheckReport: the result of comparing every row of a table with its index entries and filters, as
// `tamis check` prints it.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tamis {

struct CheckReport {
  uint64_t regions = 0;
  uint64_t rows = 0;
  uint64_t entries = 0;         // expected and found
  uint64_t filter_lookups = 0;  // entries looked up in published filters
  uint64_t garbage = 0;         // entries outside of the region's key range; harmless
  uint64_t incomplete = 0;      // indexes of regions that are still being built, not compared
  uint64_t missing_entries = 0;
  uint64_t foreign_entries = 0;  // entries that no row gives, or that cannot be read
  uint64_t missing_in_filter = 0;
  uint64_t undecodable_cells = 0;     // they count as NULL; a fact of tables that others write
  uint64_t unparsed_rows = 0;         // their keys are not of the table's format: not its rows
  uint64_t damaged_keys = 0;          // the same in a table that only we write
  std::vector<std::string> problems;  // the first ones, as text

  bool ok() const {
    return missing_entries + foreign_entries + missing_in_filter + damaged_keys == 0;
  }
  void Note(std::string problem);  // unless there are many already
  void Add(const CheckReport& other);
  std::string ToString() const;
  std::string Summary() const;  // the faults, in a line
};

}  // namespace tamis
