#include "tamis/routing/cell_matrix.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tamis {
namespace {

using Cells = std::set<uint32_t>;

std::vector<uint64_t> Words(const Cells& cells, uint32_t count) {
  std::vector<uint64_t> words((count + 63) / 64);
  for (const uint32_t cell : cells) words[cell / 64] |= uint64_t{1} << (cell % 64);
  return words;
}

bool AnyIn(const Cells& cells, uint32_t first, uint32_t last) {
  const auto found = cells.lower_bound(first);
  return found != cells.end() && *found <= last;
}

void ExpectAnswers(const CellMatrix& matrix, const std::vector<Cells>& model, uint32_t first,
                   uint32_t last) {
  std::vector<uint64_t> columns(matrix.columns() / 64);
  matrix.AddAnyIn(first, last, columns);
  for (size_t c = 0; c < model.size(); ++c) {
    ASSERT_EQ(columns[c / 64] >> (c % 64) & 1, AnyIn(model[c], first, last) ? 1u : 0u)
        << "column " << c << ", cells " << first << " to " << last << " of " << matrix.cells();
  }
}

// Columns come, are loaded and change, against sets of cells.
TEST(CellMatrixTest, AnswersAsSetsOfCells) {
  std::mt19937_64 random(1);
  for (const uint32_t cells : {1u, 2u, 63u, 64u, 65u, 128u, 4096u, 4097u, 9000u, 70'000u}) {
    CellMatrix matrix(cells);
    std::vector<Cells> model;
    for (int step = 0; step < 400; ++step) {
      const auto cell = static_cast<uint32_t>(random() % cells);
      switch (model.size() < 2 ? 0 : random() % 8) {
        case 0: {
          model.emplace_back();
          matrix.Reserve(model.size());
          break;
        }
        case 1: {
          const size_t column = random() % model.size();
          model[column].clear();
          for (size_t i = random() % 20; i > 0; --i) model[column].insert(random() % cells);
          matrix.Load(static_cast<uint32_t>(column), Words(model[column], cells));
          break;
        }
        case 2: {
          const size_t column = random() % model.size();
          if (model[column].empty()) break;
          const uint32_t gone = *model[column].begin();
          model[column].erase(gone);
          matrix.Set(static_cast<uint32_t>(column), gone, false);
          break;
        }
        default: {
          const size_t column = random() % model.size();
          model[column].insert(cell);
          matrix.Set(static_cast<uint32_t>(column), cell, true);
        }
      }
      if (model.empty()) continue;
      auto first = static_cast<uint32_t>(random() % cells);
      auto last = static_cast<uint32_t>(first + random() % (cells - first));
      ExpectAnswers(matrix, model, first, last);
      ExpectAnswers(matrix, model, first, first);
      ExpectAnswers(matrix, model, first, cells - 1);
      ExpectAnswers(matrix, model, 0, last);
    }
    EXPECT_EQ(matrix.GrowthBytes(matrix.columns()), 0u);
    const size_t before = matrix.SizeBytes();
    const size_t growth = matrix.GrowthBytes(matrix.columns() + 1);
    matrix.Reserve(matrix.columns() + 1);
    EXPECT_EQ(matrix.SizeBytes(), before + growth);
  }
}

}  // namespace
}  // namespace tamis
