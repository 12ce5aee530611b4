// Explain: what a search did and why: which regions and servers were asked, which were not, how
// much was read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/executor.h"

namespace tamis {

// Every number of a search, by the name that it has everywhere: as a member, in JSON, as a column
// of tamis_explain. Sums, rows and documents are made of this table.
#define TAMIS_EXPLAIN_NUMBERS(X)                                                               \
  X(regions_total)                                                                             \
  X(regions_asked)                                                                             \
  X(regions_excluded_by_filter)                                                                \
  X(regions_excluded_by_cells)                                                                 \
  X(regions_excluded_by_range)                                                                 \
  X(regions_excluded_by_key)                                                                   \
  X(regions_unknown)        /* asked since their filters are not known (building, no lease) */ \
  X(regions_scanned)        /* asked and answered by a scan */                                 \
  X(false_positive_regions) /* asked because of a filter, and had no row */                    \
  X(servers_total)                                                                             \
  X(servers_asked)                                                                             \
  X(requests) /* RPCs, pages and repeats included */                                           \
  X(index_seeks)                                                                               \
  X(entries_expected) /* only of regions that chose between indexes, or counted entries */     \
  X(entries_read)                                                                              \
  X(rows_read)                                                                                 \
  X(rows_from_entries) /* made of index entries, without reading the rows */                   \
  X(groups)            /* of rows with the same columns, that rows came as */                  \
  X(groups_with_totals)                                                                        \
  X(regions_in_parts) /* whose groups came in several pages, each as of its own instant */     \
  X(rows_returned)                                                                             \
  X(cells_undecodable) /* of the rows read, and taken for NULL */                              \
  X(rows_unparsed)     /* read and left out, since their keys are not the table's */

struct Explain {
  std::string table;
  std::string predicate;           // the predicate's text
  std::string index;               // names, "|" between those that regions choose from, "" = scan
  std::vector<std::string> terms;  // the conditions that were looked up in filters
  std::string reason;              // why this plan, in a sentence

#define TAMIS_EXPLAIN_MEMBER(name) uint64_t name = 0;
  TAMIS_EXPLAIN_NUMBERS(TAMIS_EXPLAIN_MEMBER)
#undef TAMIS_EXPLAIN_MEMBER

  Duration routing_time{};
  Duration server_time{};  // from sending to the answers
  Duration merge_time{};

  // How the regions used each index.
  struct IndexUse {
    std::string index;
    uint64_t led = 0;     // regions whose rows were found by it
    uint64_t joined = 0;  // regions where it narrowed what another one found
    uint64_t entries_expected = 0;
    uint64_t entries_read = 0;
  };
  std::vector<IndexUse> uses;
  // The `index` of a use that read all rows of the regions.
  static constexpr std::string_view kRows = "the rows";

  // The outcome of the search in one region.
  enum class Outcome {
    kHit,      // asked, and had rows
    kInVain,   // asked, and had none
    kUnknown,  // asked since its filter is not known, and had none
    kByFilter,
    kByCells,
    kByRange,
    kByKey,
    kNotAsked,  // the search ended before, at its limit
  };
  static constexpr size_t kOutcomes = 8;
  static std::string_view OutcomeName(Outcome outcome);
  struct Region {
    uint64_t id = 0;
    Outcome outcome = Outcome::kNotAsked;
  };
  std::vector<Region> regions;  // in key order; only up to SearchOptions::explained_regions

  uint64_t searches = 0;  // that were added up; 0: this is one search

  struct Number {
    std::string_view name;
    uint64_t Explain::*value;
  };
  static std::span<const Number> Numbers();
  struct Time {
    std::string_view name;  // in microseconds
    Duration Explain::*value;
  };
  static std::span<const Time> Times();

  // All rows were made of index entries.
  bool IsIndexOnly() const { return rows_from_entries > 0 && rows_read == 0; }

  // Adds counters, so that servers and regions count once for each search; joins texts that differ.
  void Add(const Explain& other);
  // Adds counters and times alone: of requests that are a part of this search.
  void AddCounts(const Explain& other);

  std::string ToLine() const;  // one line for people
  std::string ToText() const;  // many lines for people
  std::string ByCells() const;
  std::string ToJson() const;  // the field names above; times in microseconds
};

}  // namespace tamis
