// Detects a coordinator that leaves out an acknowledged row.
#pragma once

#include <optional>
#include <string>

#include "tamis/query/engine.h"

namespace tamis {

// Conditions that the row meets, by every index of the schema: each column, each leading part,
// equalities and ranges.
std::vector<Predicate> ConditionsMetBy(const TableSchema& schema, const Row& row);

// Names an engine that would skip the row's region now, and the condition that the row meets by
// which it would; nullopt when no engine would.
std::optional<std::string> LeftOut(const std::vector<Engine*>& engines, const TableSchema& schema,
                                   const Row& row);

}  // namespace tamis
