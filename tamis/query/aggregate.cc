#include "tamis/query/aggregate.h"

#include <algorithm>

#include "tamis/base/exception_status.h"
#include "tamis/query/coordinator.h"
#include "tamis/query/engine.h"
#include "tamis/table/group_totals.h"

namespace tamis {
namespace {

bool Has(const std::vector<uint32_t>& columns, uint32_t column) {
  return std::ranges::find(columns, column) != columns.end();
}

Status CheckColumns(const TableSchema& schema, const AggregateOptions& options) {
  for (const auto* columns : {&options.by, &options.totals}) {
    for (const uint32_t column : *columns) {
      if (column < schema.columns.size()) continue;
      return InvalidArgument("cannot aggregate table \"" + schema.name + "\": it has no column " +
                             std::to_string(column));
    }
  }
  return options.predicate.Validate(schema);
}

SearchOptions SearchFor(const TableSchema& schema, const AggregateOptions& options) {
  SearchOptions search;
  search.predicate = options.predicate;
  search.columns = options.by;
  for (const uint32_t column : options.totals) {
    if (Has(*search.columns, column)) continue;
    search.columns->push_back(column);
    search.totals.push_back(column);
  }
  // Columns of the key come with the rows alone.
  const bool needs_key =
      std::ranges::any_of(*search.columns, [&](uint32_t column) { return schema.IsKey(column); });
  search.groups = needs_key ? SearchOptions::Groups::kNone : SearchOptions::Groups::kWhole;
  if (needs_key) search.totals.clear();
  search.use_filters = options.use_filters;
  search.use_indexes = options.use_indexes;
  search.timeout = options.timeout;
  search.cancelled = options.cancelled;
  return search;
}

Result<AggregateGroup> GroupOf(const TableSchema& schema, const AggregateOptions& options,
                               const GroupTotals::Group& group) {
  AggregateGroup out{.by = {}, .count = group.count, .totals = {}};
  for (const uint32_t column : options.by) out.by.push_back(group.row[column]);
  for (size_t i = 0; i < options.totals.size(); ++i) {
    const ColumnTotals& totals = group.totals[i];
    auto sum = totals.Sum();
    if (!sum.ok()) {
      return sum.status().WithContext("column \"" + schema.columns[options.totals[i]].name + "\"");
    }
    out.totals.push_back({.values = totals.state().values,
                          .sum = *std::move(sum),
                          .least = totals.state().least,
                          .greatest = totals.state().greatest});
  }
  return out;
}

// All totals of a group of which the servers have sent some.
std::vector<ColumnTotals> TotalsOf(const TableSchema& schema, const AggregateOptions& options,
                                   const SearchOptions& search, const RowGroup& group) {
  std::vector<ColumnTotals> all;
  for (const uint32_t column : options.totals) {
    const auto sent = std::ranges::find(search.totals, column);
    if (sent != search.totals.end()) {
      all.push_back(group.totals[sent - search.totals.begin()]);
    } else {
      all.emplace_back(schema.columns[column].type).Add(group.row[column], group.count);
    }
  }
  return all;
}

}  // namespace

Result<Aggregates> Engine::Aggregate(SchemaPtr schema, AggregateOptions options) {
  return WithoutExceptions([&]() -> Result<Aggregates> {
    TAMIS_RETURN_IF_ERROR(CheckColumns(*schema, options));
    if (auto added_up = coordinator_->Aggregate(schema, options)) return *std::move(added_up);
    const SearchOptions search = SearchFor(*schema, options);
    GroupTotals groups(*schema, options.by, options.totals);
    RowStream rows = Search(schema, search);
    while (true) {
      TAMIS_ASSIGN_OR_RETURN(const auto group, rows.NextGroup());
      if (!group.has_value()) break;
      if (group->totals.empty()) {
        groups.Add(group->row, group->count);
      } else {
        groups.Add(group->row, group->count, TotalsOf(*schema, options, search, *group));
      }
      if (groups.size() <= options.max_groups) continue;
      return ResourceExhausted("table \"" + schema->name + "\" has more than " +
                               std::to_string(options.max_groups) +
                               " groups; aggregate a part of it, or allow more");
    }
    // Without rows, all rows are one group.
    if (options.by.empty()) groups.Add(Row(schema->columns.size()), 0);
    Aggregates result;
    for (const GroupTotals::Group& group : groups.Take()) {
      TAMIS_ASSIGN_OR_RETURN(AggregateGroup one, GroupOf(*schema, options, group));
      result.groups.push_back(std::move(one));
    }
    std::ranges::sort(result.groups, {}, &AggregateGroup::by);
    result.explain = rows.explain();
    return result;
  });
}

}  // namespace tamis
