// A row as it came from a server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/base/status.h"
#include "tamis/hbase/cell_block.h"

namespace tamis::hbase {

namespace pb {
class Result;
}

// Its cells are views of bytes that it keeps, together with all other rows of the same answer: copy
// what is to stay for long.
class Row {
 public:
  Row() = default;
  Row(std::string_view key, std::vector<Cell> cells, std::shared_ptr<const std::string> bytes)
      : key_(key), cells_(std::move(cells)), bytes_(std::move(bytes)) {}

  // Empty when the row is not there, or has none of the cells that were asked for.
  bool empty() const { return cells_.empty(); }
  std::string_view key() const { return key_; }
  // Sorted by family, qualifier, and from new to old.
  const std::vector<Cell>& cells() const { return cells_; }
  // The newest value of a column.
  std::optional<std::string_view> Find(std::string_view family, std::string_view qualifier) const;
  size_t size_bytes() const;

 private:
  std::string_view key_;
  std::vector<Cell> cells_;
  std::shared_ptr<const std::string> bytes_;
};

// Takes `count` cells, all of one row, off the front of a cell block inside of `bytes`.
Result<Row> TakeRow(size_t count, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes);
// Takes the cells of a result, which are in it or in the cell block.
Result<Row> TakeRow(const pb::Result& result, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes);
// The row; kDataLoss when it is not the one with this key.
Result<Row> WithKey(std::string_view key, Result<Row> row);
// One row of parts that came one after the other.
Row JoinParts(const std::vector<Row>& parts);

}  // namespace tamis::hbase
