// Implies: whether one condition is true only in rows in which another one is.
//
// A partial index has entries for the rows in which its condition is true. A search may use it, and
// routing may exclude regions by its filter, only if the search's condition implies the index's.
// NULL makes a comparison unknown, which is not true: `a <> 1` implies `a IS NOT NULL`, and is
// implied by `a > 1`, but not by `a IS NULL`.
//
// Threads: pure functions.
#pragma once

#include "tamis/table/predicate.h"

namespace tamis {

// False where it is not sure: conjunct by conjunct, values and ranges inside of ranges.
// REQUIRES: both are normalized, and valid for one schema.
bool Implies(const Predicate& query, const Predicate& condition);

}  // namespace tamis
