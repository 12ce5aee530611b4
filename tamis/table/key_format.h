// KeyFormat: how the key columns of a table stand in the bytes of a row key (docs/TABLES.md#keys).
//
// A key is a sequence of parts: each in our ordered form, of a fixed width, ended by a delimiter,
// or the rest of the key. KeyFormat writes and reads keys, and finds the keys that a condition on a
// part allows. It reads a key only if Encode would give the same bytes for its values; any other
// key does not parse, and its row is not part of the table. So each value of a part has one byte
// string, and an equality is a lookup in every format. Whether a range of values is a range of
// bytes depends on the format (IsOrdered).
//
// Threads: safe; it is not changed after it was made.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

// start <= key < end; an empty end is no bound.
struct KeySpan {
  std::string start;
  std::string end;

  bool empty() const { return !end.empty() && start >= end; }
  friend bool operator==(const KeySpan&, const KeySpan&) = default;
};

class KeyFormat {
 public:
  explicit KeyFormat(const TableSchema& schema) : schema_(schema) {}  // which outlives it

  // kInvalidArgument where a value has no place in its part: one that is out of range, not of the
  // width, or contains the delimiter.
  Result<std::string> Encode(const Row& row) const;
  // Fills the key columns of *row. kDataLoss: the bytes are no key of this format.
  Status Decode(std::string_view key, Row* row) const;

  // The text of a key, or of the prefix of a key where a region begins: its values, "('bash',
  // '5.2', 'amd64')"; bytes behind those that parse appear as one bytes value, x'ff'.
  std::string ToText(std::string_view key) const;

  // Appends the bytes of one part, with its delimiter: what all keys with this value have behind
  // the parts before it.
  Status Append(size_t part, const Value& value, std::string* key) const;

  // The keys that begin with `parts` parts, whose bytes `prefix` is.
  KeySpan SpanOf(const std::string& prefix, size_t parts) const;
  // Among the keys that begin with `prefix`, which holds the bytes of all parts before this one:
  // the spans that satisfy the condition on this part's column, and maybe more. nullopt where the
  // condition does not restrict them.
  std::optional<std::vector<KeySpan>> SpansOf(size_t part, const Predicate& leaf,
                                              const std::string& prefix) const;

  // Whether keys that are equal up to this part are in the order of its values.
  bool IsOrdered(size_t part) const;

 private:
  const KeyPart& Part(size_t part) const;
  Type TypeOf(size_t part) const { return schema_.columns[schema_.key[part]].type; }
  std::string_view Name(size_t part) const { return schema_.columns[schema_.key[part]].name; }
  bool Take(size_t part, std::string_view* key, Value* value) const;

  const TableSchema& schema_;
};

}  // namespace tamis
