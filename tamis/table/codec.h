// Order-preserving, prefix-free byte encodings of values, row keys and index entries
// (docs/FORMATS.md#values).
//
// For values of one column: a < b exactly when Encode(a) < Encode(b) as unsigned bytes, and no
// encoding is a prefix of another one; so concatenations compare column by column, equality on
// leading columns is a prefix, and no value can run into what stands behind it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"

namespace tamis {

// Text and bytes longer than this are cut in index entries (and in what filters hash).
inline constexpr size_t kIndexValueLimit = 1024;

void AppendOrdered(const Value& value, std::string* out);
// Takes one value off the front of *in.
Result<Value> ReadOrdered(Type type, std::string_view* in);

// Like AppendOrdered, with long text, bytes and decimals cut to kIndexValueLimit. Two values that
// differ only behind the cut encode equal. Returns true when the value was cut: equality on the
// encoding must then be verified on the row.
bool AppendIndexed(const Value& value, std::string* out);
// A value as it stands in an index entry. One that was cut is not the value that was put.
struct IndexedValue {
  Value value;
  bool cut = false;
};
// Takes one value off the front of *in.
Result<IndexedValue> ReadIndexed(Type type, std::string_view* in);
// Takes it off without decoding it. False where no such value can end there.
bool SkipIndexed(Type type, std::string_view* in);

// The row key of a table all of whose key parts are ordered: what KeyFormat does for such a table,
// without failing. REQUIRES: schema.key_parts is empty.
std::string EncodeKey(const TableSchema& schema, const Row& row);
// Fills the key columns of *row.
Status DecodeKey(const TableSchema& schema, std::string_view key, Row* row);

// Whether the row has no entry in the index.
bool IsSkipped(const IndexSpec& index, const Row& row);

// The encoded values of an index for a row, one string a leading prefix: [a], [a b], [a b c] for an
// index on (a, b, c). The last one is what stands in the entry; all are what the filter holds.
std::vector<std::string> IndexPrefixes(const IndexSpec& index, const Row& row);

// Splits what follows the index id in an entry (encoded values, then row key) into the two.
Result<std::pair<std::string_view, std::string_view>> SplitIndexEntry(const TableSchema& schema,
                                                                      const IndexSpec& index,
                                                                      std::string_view entry);

// The stored row: every column that is not in the key and not NULL, by column id, so that a column
// added later reads as NULL.
std::string EncodeRow(const TableSchema& schema, const Row& row);
Status DecodeRow(const TableSchema& schema, std::string_view bytes, Row* row);

}  // namespace tamis
