// FindRows: what a search finds, and no error.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tamis/query/engine.h"

namespace tamis {

inline std::vector<Row> FindRows(Engine& engine, const SchemaPtr& table, SearchOptions options,
                                 Explain* explain = nullptr) {
  RowStream stream = engine.Search(table, std::move(options));
  std::vector<Row> rows;
  while (true) {
    auto row = stream.Next();
    EXPECT_TRUE(row.ok()) << row.status();
    if (!row.ok() || !row->has_value()) break;
    rows.push_back(std::move(**row));
  }
  if (explain != nullptr) *explain = stream.explain();
  return rows;
}

}  // namespace tamis
