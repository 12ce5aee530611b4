// tamis table, tamis index.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tamis/base/terminal_text.h"
#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/index_waiting.h"
#include "tamis/cli/table_options.h"
#include "tamis/query/cell_fit.h"
#include "tamis/table/condition.h"
#include "tamis/table/definition.h"
#include "tamis/table/value_sample.h"

namespace tamis {
namespace {

struct Options {
  std::string table;
  std::string hbase_table;
  std::string column;
  std::string index;
  std::vector<std::string> columns;
  double fpr = IndexSpec{}.fpr;
  uint64_t expected_values = IndexSpec{}.expected_values;
  std::string nulls = "index";
  std::vector<std::string> include;
  std::string where;
  int ranges = 0;            // cells for each value; 0: none
  int cells_per_value = -1;  // none is named
  TableOptions definition;
  DropOptions drop;
};

Status ListTables(Connection* connection, const Options&) {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, connection->session()->Tables());
  for (const TableSchema& table : tables) std::printf("%s\n", TerminalText(table.name).c_str());
  const auto unnamed = connection->session()->Change<std::vector<std::string>>(
      [](ClusterAdmin& admin, auto done) { admin.ListUnnamedTables(std::move(done)); });
  TAMIS_RETURN_IF_ERROR(unnamed.status());
  for (const std::string& text : *unnamed)
    std::fprintf(stderr, "tamis: %s\n", TerminalText(text).c_str());
  return Status::Ok();
}

Status DescribeTable(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  std::printf("%s\n", TerminalText(schema->ToString()).c_str());
  return Status::Ok();
}

std::string ColumnNames(const TableSchema& schema, const std::vector<uint32_t>& columns) {
  std::string names;
  for (const uint32_t column : columns) {
    names += (names.empty() ? "" : ", ") + schema.columns[column].name;
  }
  return names;
}

// One line an index.
Status ListIndexes(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  const Time deadline = connection->engine().executor().Now() + kCellFitTime;
  for (const IndexSpec& index : schema->indexes) {
    const std::string columns = ColumnNames(*schema, index.columns);
    std::string more =
        index.include.empty() ? "" : " include (" + ColumnNames(*schema, index.include) + ")";
    if (index.IsPartial()) more += " where " + index.where.ToString(*schema);
    if (index.cell_map != nullptr) {
      const bool fitted = IsFitted(*index.cell_map);
      const auto outgrown = OutgrowsCells(&connection->engine(), schema, index, deadline);
      more += fitted ? fmt::format(" ranges by {} cells", index.cell_map->cells())
                     : " ranges, not fitted yet";
      if (outgrown.value_or(false)) {
        more +=
            fmt::format("{} (tamis index ranges {} {})",
                        fitted ? " that its values have outgrown" : "", schema->name, index.name);
      }
    }
    TAMIS_ASSIGN_OR_RETURN(
        const IndexProgress progress,
        connection->session()->Change<IndexProgress>([&](ClusterAdmin& admin, auto done) {
          admin.GetIndexProgress(schema->name, index.name, std::move(done));
        }));
    const std::string state = progress.complete == progress.regions
                                  ? fmt::format("ready, {} entries", progress.entries)
                                  : "being built, " + progress.ToString();
    const std::string line =
        fmt::format("{}.{} ({}){}{}, fpr {}, {} values a region, {}\n", schema->name, index.name,
                    columns, index.nulls == IndexNulls::kSkip ? " without NULL" : "", more,
                    index.fpr, index.expected_values, state);
    fmt::print("{}", TerminalText(line));
  }
  return Status::Ok();
}

Status CreateTable(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, options.definition.Define(options.table));
  return connection->session()
      ->ChangeAtLength<TableSchema>(
          [&](ClusterAdmin& admin, auto done) { admin.CreateTable(schema, std::move(done)); })
      .status();
}

Status AttachTable(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const TableSchema schema,
                         options.definition.DefineAttached(options.table));
  return connection->session()
      ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
        admin.AttachTable(schema, options.hbase_table, std::move(done));
      })
      .status();
}

Status DetachTable(Connection* connection, const Options& options) {
  if (options.table.empty() == options.hbase_table.empty()) {
    return InvalidArgument(
        "cannot detach a table: name it, TABLE or --hbase-table, one of the two");
  }
  if (!options.hbase_table.empty()) {
    return connection->session()->DoAtLength([&](ClusterAdmin& admin, auto done) {
      admin.DetachForeignTable(options.hbase_table, std::move(done));
    });
  }
  return connection->session()->DoAtLength(
      [&](ClusterAdmin& admin, auto done) { admin.DetachTable(options.table, std::move(done)); });
}

Status AddColumn(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const ColumnOption option, ParseColumnOption(options.column));
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  TAMIS_ASSIGN_OR_RETURN(const Column column, ParseColumnDefinition(*schema, DefinitionOf(option)));
  return connection->session()
      ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
        admin.AddColumn(options.table, column, std::move(done));
      })
      .status();
}

Status DropColumn(Connection* connection, const Options& options) {
  return connection->session()
      ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
        admin.DropColumn(options.table, options.column, std::move(done));
      })
      .status();
}

Status DropTable(Connection* connection, const Options& options) {
  return connection->session()->DoAtLength([&](ClusterAdmin& admin, auto done) {
    admin.DropTable(options.table, options.drop, std::move(done));
  });
}

Result<std::vector<uint32_t>> FindColumns(const TableSchema& schema, const std::string& what,
                                          const std::vector<std::string>& names) {
  std::vector<uint32_t> columns;
  for (const std::string& name : names) {
    const auto column = schema.FindColumn(name);
    if (!column) {
      return InvalidArgument(what + ": table \"" + schema.name + "\" has no column \"" + name +
                             "\"");
    }
    columns.push_back(*column);
  }
  return columns;
}

Status FitCells(Connection* connection, const Options& options, uint32_t cells_per_value) {
  return connection->session()
      ->Run({.kind = JobSpec::Kind::kFitCells,
             .table = options.table,
             .index = options.index,
             .cells_per_value = cells_per_value})
      .status();
}

// Once the index, which is there from here on, has the entries of all rows.
Status FitNewCells(Connection* connection, const Options& options) {
  Status status = WaitForIndex(connection->session().get(), options.table, options.index).status();
  if (status.ok()) status = FitCells(connection, options, static_cast<uint32_t>(options.ranges));
  return status.WithContext("index \"" + options.index +
                            "\" is made, but its cells are not fitted; tamis index ranges " +
                            options.table + " " + options.index + " does it");
}

Status CreateIndex(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  IndexSpec spec{.name = options.index,
                 .nulls = options.nulls == "skip" ? IndexNulls::kSkip : IndexNulls::kIndex,
                 .fpr = options.fpr,
                 .expected_values = options.expected_values};
  const std::string what = "cannot create index \"" + options.index + "\"";
  TAMIS_ASSIGN_OR_RETURN(spec.columns, FindColumns(*schema, what, options.columns));
  TAMIS_ASSIGN_OR_RETURN(spec.include, FindColumns(*schema, what, options.include));
  if (!options.where.empty()) {
    auto condition = ParseCondition(*schema, options.where);
    if (!condition.ok()) return condition.status().WithContext(what);
    spec.where = *std::move(condition);
  }
  if (options.ranges > 0) {
    spec.cell_map =
        std::make_shared<const CellMap>(UnfittedCellMap(static_cast<uint32_t>(options.ranges)));
  }
  TAMIS_RETURN_IF_ERROR(connection->session()
                            ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
                              admin.CreateIndex(options.table, spec, std::move(done));
                            })
                            .status());
  return spec.cell_map == nullptr ? Status::Ok() : FitNewCells(connection, options);
}

Status DropIndex(Connection* connection, const Options& options) {
  return connection->session()
      ->ChangeAtLength<TableSchema>([&](ClusterAdmin& admin, auto done) {
        admin.DropIndex(options.table, options.index, std::move(done));
      })
      .status();
}

Status RebuildIndex(Connection* connection, const Options& options) {
  return connection->session()
      ->Run({.kind = JobSpec::Kind::kRebuildIndex, .table = options.table, .index = options.index})
      .status();
}

Status WaitForIndexes(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  if (!options.index.empty() && schema->FindIndex(options.index) == nullptr) {
    return NotFound("table \"" + options.table + "\" has no index \"" + options.index + "\"");
  }
  for (const IndexSpec& index : schema->indexes) {
    if (!options.index.empty() && index.name != options.index) continue;
    TAMIS_ASSIGN_OR_RETURN(const IndexProgress progress,
                           WaitForIndex(connection->session().get(), schema->name, index.name));
    fmt::print("{}.{}: ready, {} entries\n", schema->name, index.name, progress.entries);
  }
  return Status::Ok();
}

Status FitCellsAgain(Connection* connection, const Options& options) {
  if (options.cells_per_value >= 0) {
    return FitCells(connection, options, static_cast<uint32_t>(options.cells_per_value));
  }
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  const IndexSpec* index = schema->FindIndex(options.index);
  return FitCells(connection, options,
                  CellsPerValueFor(index == nullptr ? nullptr : index->cell_map.get()));
}

// Fits the cells of the table's indexes that have outgrown theirs. An index that cannot be fitted
// does not keep the others from it; the first error is returned.
Status RefitTable(Connection* connection, const SchemaPtr& schema) {
  Status first;
  for (const IndexSpec& index : schema->indexes) {
    const std::string name = schema->name + "." + index.name;
    const Time deadline = connection->engine().executor().Now() + kCellFitTime;
    const auto outgrown = OutgrowsCells(&connection->engine(), schema, index, deadline);
    Status status;
    if (!outgrown.has_value()) {
      status = Unavailable("cannot tell whether the values of index " + name +
                           " have outgrown its cells: its rows could not be read in time");
    } else if (*outgrown) {
      status = FitCells(connection, {.table = schema->name, .index = index.name},
                        CellsPerValueFor(index.cell_map.get()));
      if (status.ok()) fmt::print("{}: fitted\n", name);
      status = status.WithContext("cannot fit the cells of index " + name);
    }
    if (first.ok()) first = status;
  }
  return first;
}

Status RefitCells(Connection* connection, const Options& options) {
  std::vector<SchemaPtr> schemas;
  if (!options.table.empty()) {
    TAMIS_ASSIGN_OR_RETURN(schemas.emplace_back(), connection->engine().Table(options.table));
  } else {
    TAMIS_ASSIGN_OR_RETURN(auto tables, connection->session()->Tables());
    for (TableSchema& table : tables) {
      schemas.push_back(std::make_shared<const TableSchema>(std::move(table)));
    }
  }
  Status first;
  for (const SchemaPtr& schema : schemas) {
    const Status status = RefitTable(connection, schema);
    if (first.ok()) first = status;
  }
  return first;
}

}  // namespace

void AddTableCommands(Command app, Invocation* invocation) {
  using Run = Status (*)(Connection*, const Options&);
  auto options = std::make_shared<Options>();
  const auto add = [&](Command group, const char* name, const char* help, Run run) {
    Command sub = group.AddCommand(name, help);
    OnStore(sub, invocation, [=](Connection* connection) { return run(connection, *options); });
    return sub;
  };
  const auto table_argument = [&](Command sub) {
    sub.AddOption("TABLE", options->table, "The table").Required();
  };

  Command table = app.AddCommand("table", "Create, attach, list, describe, extend and drop tables");
  table.RequireCommand();
  Command create_table = table.AddCommand("create", "Create a table, and the store with it");
  OnStore(
      create_table, invocation,
      [options](Connection* connection) { return CreateTable(connection, *options); },
      /*create=*/true);
  table_argument(create_table);
  options->definition.AddTo(create_table);
  add(table, "list", "Print the names of the tables", ListTables);
  table_argument(add(table, "describe", "Print a table's columns, key and indexes", DescribeTable));
  Command add_column =
      add(table, "add-column",
          "Add a column, NULL in the rows that are there, while the table is in use", AddColumn);
  table_argument(add_column);
  add_column
      .AddOption("COLUMN", options->column,
                 "NAME[:TYPE] or NAME=FUNCTION(COLUMN), as --column of table create")
      .Required();
  Command drop_column =
      add(table, "drop-column",
          "Drop a computed column that no index uses; others cannot be dropped", DropColumn);
  table_argument(drop_column);
  drop_column.AddOption("COLUMN", options->column, "Its name").Required();
  Command attach =
      add(table, "attach",
          "Index an existing HBase table: its rows stay as they are, and its clients keep working. "
          "--key takes NAME:TYPE[:FORM] here. A copy of an attached table needs no definition",
          AttachTable);
  table_argument(attach);
  attach.AddOption("--hbase-table", options->hbase_table, "NAME or NAMESPACE:NAME of it in HBase")
      .Required();
  options->definition.AddTo(attach);
  Command detach = add(table, "detach",
                       "Take a table of HBase out of the store; its rows stay, its index entries "
                       "go",
                       DetachTable);
  detach.AddOption("TABLE", options->table, "The table");
  detach.AddOption("--hbase-table", options->hbase_table,
                   "NAME or NAMESPACE:NAME of it in HBase, in place of TABLE: for copies and "
                   "leftovers, which have no name here");
  Command drop_table =
      add(table, "drop", "Delete a table with all its rows; for an attached table use detach",
          DropTable);
  table_argument(drop_table);
  drop_table.AddFlag("--delete-hbase-table", options->drop.delete_attached,
                     "Delete a table that was attached, too, with all the rows that others have "
                     "in it");

  Command index = app.AddCommand(
      "index", "Create, drop, rebuild and list indexes, wait for them, and fit their cells");
  index.RequireCommand();
  Command create = add(index, "create", "Create an index while the table is in use", CreateIndex);
  table_argument(create);
  create.AddOption("INDEX", options->index, "The name of the index").Required();
  create.AddOption("COLUMNS", options->columns, "Its columns, in order").Required().Delimiter(',');
  create.AddOption("--fpr", options->fpr, "False-positive rate of one full filter layer")
      .ShowDefault();
  create
      .AddOption("--expected-values", options->expected_values,
                 "Distinct values in a region: what one filter layer holds")
      .ShowDefault();
  create
      .AddOption("--nulls", options->nulls,
                 "Whether rows whose first column of it is NULL have an entry: index or skip")
      .OneOf({"index", "skip"})
      .ShowDefault();
  create
      .AddOption("--include", options->include,
                 "Columns whose values its entries hold, too, so that queries of them need not "
                 "read rows")
      .Delimiter(',');
  create.AddOption("--where", options->where,
                   "A condition: only rows of which it is true have an entry");
  create
      .AddOption("--ranges", options->ranges,
                 "Let it exclude regions from ranges by so many cells for each value, such as 16. "
                 "Waits until the index is built, and fits the cells")
      .InRange(1, kMaxCellsPerValue);
  Command drop = add(index, "drop", "Drop an index", DropIndex);
  table_argument(drop);
  drop.AddOption("INDEX", options->index, "The index").Required();
  Command rebuild =
      add(index, "rebuild", "Make the entries and filters of an index agree with the rows",
          RebuildIndex);
  table_argument(rebuild);
  rebuild.AddOption("INDEX", options->index, "The index; all of the table when left out");
  Command wait = add(index, "wait",
                     "Wait until all regions have built an index; until then searches by it scan "
                     "the regions that have not",
                     WaitForIndexes);
  table_argument(wait);
  wait.AddOption("INDEX", options->index, "The index; all of the table when left out");
  Command ranges =
      add(index, "ranges", "Let an index exclude regions from ranges: fit cells to its values",
          FitCellsAgain);
  table_argument(ranges);
  ranges.AddOption("INDEX", options->index, "The index").Required();
  ranges
      .AddOption("--cells", options->cells_per_value,
                 "Cells for each value of a region; 0 removes them. Without it as many as the "
                 "definition of the index names, or 16")
      .InRange(0, 64);
  Command refit =
      add(index, "refit",
          "Fit the cells again of each index whose values have outgrown them (see ranges), and "
          "print its name: a command for a timer",
          RefitCells);
  refit.AddOption("TABLE", options->table, "The table; all tables when left out");
  table_argument(add(index, "list", "Print a table's indexes, one a line", ListIndexes));
}

}  // namespace tamis
