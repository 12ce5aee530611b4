// OracleLife: one life of a process that does to a database whatever can be done to one, on many
// threads, and holds every answer of the filter against the database's own.
//
// It may be killed at any moment; the next life begins with what is found then.
#pragma once

#include <cstdint>

#include "tests/lsm/oracle_config.h"
#include "tests/lsm/oracle_counts.h"

namespace tamis::lsm {

// Runs for so long; false when an answer was wrong, which is said on stderr.
bool RunLife(const OracleConfig& config, uint64_t life, double seconds, OracleCounts* counts);

}  // namespace tamis::lsm
