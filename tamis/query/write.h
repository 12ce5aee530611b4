// Write: one change of one row.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tamis/table/predicate.h"
#include "tamis/table/row.h"

namespace tamis {

struct Write {
  enum class Kind { kPut, kInsert, kUpdate, kDelete };
  Kind kind = Kind::kPut;
  Row row = {};  // kDelete: only the key columns are read; values of computed columns never are
  std::vector<uint32_t> columns = {};  // kUpdate: the positions to set
  std::optional<Predicate> condition =
      std::nullopt;  // on the row as it is; kFailedPrecondition when it is not so
};

}  // namespace tamis
