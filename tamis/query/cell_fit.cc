#include "tamis/query/cell_fit.h"

#include <optional>
#include <string>

#include "tamis/table/cell_map.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

// The cell of the row that is so far from that end of the index; nullopt: there are fewer rows.
Result<std::optional<uint32_t>> CellOfRow(Engine* engine, const SchemaPtr& schema,
                                          const IndexSpec& index, bool from_largest, Time deadline,
                                          uint64_t rows) {
  const Duration timeout = deadline - engine->executor().Now();
  if (timeout <= Duration::zero()) return DeadlineExceeded("no time is left to ask the index");
  const uint32_t column = index.columns[0];
  RowStream stream = engine->Search(
      schema, {.predicate = Predicate::And({index.where, Predicate::NotNull(column)}),
               .columns = {{column}},
               .limit = rows,
               .order = {{.column = column, .descending = from_largest}},
               .timeout = timeout});
  std::optional<Row> last;
  for (uint64_t count = 0; count < rows; ++count) {
    TAMIS_ASSIGN_OR_RETURN(last, stream.Next());
    if (!last.has_value()) return std::optional<uint32_t>();
  }
  std::string value;
  AppendIndexed((*last)[column], &value);
  return std::optional(index.cell_map->CellOf(value));
}

}  // namespace

std::optional<bool> OutgrowsCells(Engine* engine, const SchemaPtr& schema, const IndexSpec& index,
                                  Time deadline, uint64_t most_rows) {
  if (index.cell_map == nullptr) return false;
  const auto high = CellOfRow(engine, schema, index, /*from_largest=*/true, deadline, most_rows);
  if (!high.ok()) return std::nullopt;
  if (!high->has_value()) return false;
  if (**high == index.cell_map->cells() - 1) return true;
  const auto low = CellOfRow(engine, schema, index, /*from_largest=*/false, deadline, most_rows);
  if (!low.ok()) return std::nullopt;
  return *low == 0;
}

}  // namespace tamis
