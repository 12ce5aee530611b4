// OutgrowsCells: whether an index has so many values outside of its cells that they are to be
// fitted again.
//
// Cells are fitted to the values that an index holds at one time. Time stamps and numbers that
// grow come to lie above all cells, or below, and fall into the last cell, or the first one, which
// then excludes no region from a range there. The index is asked for its largest and its smallest
// rows, a bounded number of them: they are its own, so that one region or a few answer by entries.
// Values that have become denser between two others are not noticed.
//
// Threads: safe; blocks.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "tamis/base/executor.h"
#include "tamis/query/engine.h"
#include "tamis/table/schema.h"

namespace tamis {

// The number of rows at one end of the index, all in its last or first cell, that are too many.
inline constexpr uint64_t kRowsOutsideOfCells = 1000;

// A report asks for this time at most, all of its indexes together, while regions do not answer.
inline constexpr Duration kCellFitTime = std::chrono::seconds(3);

// False for an index that has no cells. nullopt: it is not known, since no answer came until the
// deadline, or the search failed, for want of the right to read for example.
std::optional<bool> OutgrowsCells(Engine* engine, const SchemaPtr& schema, const IndexSpec& index,
                                  Time deadline, uint64_t most_rows = kRowsOutsideOfCells);

}  // namespace tamis
