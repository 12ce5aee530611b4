// Conditions as text, in the SQL of a WHERE clause: those of partial indexes.
//
//   status = 'open' AND total >= 100
//   (kind IN (1, 2) OR note IS NOT NULL) AND NOT deleted = true
//   code LIKE 'de-%'                   -- a prefix, in this case; no other pattern
//
// Comparisons of one column with a value (= <> != < <= > >=), BETWEEN, IN, IS NULL, IS NOT NULL,
// LIKE 'PREFIX%'; AND, OR, NOT, parentheses; true and false. Values as SQL writes them: numbers,
// 'text', x'00ff', NULL; a time is text. Predicate::ToString writes this language.
#pragma once

#include <string_view>

#include "tamis/base/status.h"
#include "tamis/table/predicate.h"
#include "tamis/table/schema.h"
#include "tamis/table/tokens.h"

namespace tamis {

// The whole text.
Result<Predicate> ParseCondition(const TableSchema& schema, std::string_view text);
// Takes the condition and leaves the tokens behind it.
Result<Predicate> ParseCondition(const TableSchema& schema, Tokens* tokens);

}  // namespace tamis
