// RandomRows: the table of the randomized cluster tests, and rows and conditions drawn for it.
#pragma once

#include <cstdint>
#include <optional>

#include "tamis/base/random.h"
#include "tamis/query/engine.h"
#include "tamis/table/predicate.h"
#include "tamis/table/row.h"
#include "tamis/table/schema.h"
#include "tests/cluster/answer.h"

namespace tamis {

// A write and what must come of it.
struct RandomWrite {
  Write write;
  RowState after;  // how the row stands then
  // The expected answer: anything but kOk means that the row stays as it was.
  StatusCode answer = StatusCode::kOk;
  const char* kind = "";
};

class RandomRows {
 public:
  // Columns of the table.
  static constexpr uint32_t kId = 0, kGroup = 1, kNumber = 2, kName = 3;
  static constexpr uint32_t kStart = 4;  // computed from the name
  static constexpr uint32_t kColumns = 5;
  // Some may be added later. Rows are as wide as they can become: NULL where there is no column.
  static constexpr uint32_t kMostColumns = 7;
  static constexpr int64_t kKeys = 300;

  // Draws from `random`, which must outlive this.
  explicit RandomRows(Random* random) : random_(*random) {}

  static constexpr double kFpr = 0.02;
  static TableSchema Schema(double fpr = kFpr);
  // Indexes that are created and dropped.
  static IndexSpec IndexOnBoth(double fpr = kFpr);
  static IndexSpec IndexOnName(double fpr = kFpr);
  // The same index with cells: few, so that values share some, more where they are wanted so.
  static IndexSpec WithCells(IndexSpec index);
  static Column AddedColumn(size_t position);
  static Row KeyRow(int64_t key);  // the other columns are NULL
  // Sets kStart as it follows from the name.
  static void Compute(Row* row);

  // How many columns the table has now: what rows are drawn for.
  void set_columns(uint32_t columns) { columns_ = columns; }

  int64_t RandomKey() { return static_cast<int64_t>(random_.Uniform(kKeys)); }
  Row RandomRow(int64_t key);
  // A write of the row, which stands as `sure` says.
  RandomWrite RandomWriteOf(int64_t key, const RowState& sure);
  RandomWrite RandomInsertOf(int64_t key, const RowState& sure);
  // About the values of `near`, when there is a row, as often as not.
  Predicate RandomPredicate(const std::optional<Row>& near);
  // Equal to the row's value in the column, NULL or not.
  static Predicate EqualTo(const Row& row, uint32_t column);
  // By one indexed value of the row.
  Predicate ProbeOf(const Row& row);

 private:
  Value RandomGroup();
  Value RandomName();
  Value RandomNumber();
  Predicate RandomLeaf(const std::optional<Row>& near);

  Random& random_;
  uint32_t columns_ = kColumns;
};

}  // namespace tamis
