// A row as received from a server.
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

// The cells are views of a buffer that is shared by all rows of the same answer and stays alive
// while one of them does. Copy values that are kept for long.
class Row {
 public:
  Row() = default;
  Row(std::string_view key, std::vector<Cell> cells, std::shared_ptr<const std::string> bytes)
      : key_(key), cells_(std::move(cells)), bytes_(std::move(bytes)) {}

  // True if the row does not exist or has none of the requested cells.
  bool empty() const { return cells_.empty(); }
  std::string_view key() const { return key_; }
  // Sorted by family, then qualifier, then from newest to oldest.
  const std::vector<Cell>& cells() const { return cells_; }
  // Returns the newest value of a column.
  std::optional<std::string_view> Find(std::string_view family, std::string_view qualifier) const;
  size_t size_bytes() const;

 private:
  std::string_view key_;
  std::vector<Cell> cells_;
  std::shared_ptr<const std::string> bytes_;
};

// Takes `count` cells of one row off the front of a cell block inside of `bytes`.
Result<Row> TakeRow(size_t count, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes);
// Takes the cells of a result, which are in the message or in the cell block.
Result<Row> TakeRow(const pb::Result& result, std::string_view* cells,
                    const std::shared_ptr<const std::string>& bytes);
// Returns the row; kDataLoss if it has another key.
Result<Row> WithKey(std::string_view key, Result<Row> row);
// Joins consecutive parts of one row.
Row JoinParts(const std::vector<Row>& parts);

}  // namespace tamis::hbase
