// tamis table, tamis index.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdio>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"

namespace tamis {
namespace {

struct Options {
  std::string table;
  std::string index;
  std::vector<std::string> columns;
  double fpr = IndexSpec{}.fpr;
  uint64_t expected_values = IndexSpec{}.expected_values;
};

Status ListTables(Connection* connection, const Options&) {
  TAMIS_ASSIGN_OR_RETURN(
      const auto tables,
      AwaitResult<std::vector<TableSchema>>(&connection->engine(), [](Cluster& cluster, auto done) {
        cluster.ListTables(std::move(done));
      }));
  for (const TableSchema& table : tables) std::printf("%s\n", table.name.c_str());
  return Status::Ok();
}

Status DescribeTable(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  std::printf("%s\n", schema->ToString().c_str());
  return Status::Ok();
}

// One line an index.
Status ListIndexes(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  for (const IndexSpec& index : schema->indexes) {
    std::string columns;
    for (const uint32_t column : index.columns) {
      columns += (columns.empty() ? "" : ", ") + schema->columns[column].name;
    }
    const auto progress = connection->store().cluster().ProgressOf(*schema, index.id);
    const std::string state = progress.complete == progress.regions
                                  ? fmt::format("ready, {} entries", progress.entries)
                                  : fmt::format("being built, {} of {} regions ready",
                                                progress.complete, progress.regions);
    fmt::print("{}.{} ({}), fpr {}, {} values a region, {}\n", schema->name, index.name, columns,
               index.fpr, index.expected_values, state);
  }
  return Status::Ok();
}

Status DropTable(Connection* connection, const Options& options) {
  return AwaitStatus(&connection->engine(), [&](Cluster& cluster, auto done) {
    cluster.DropTable(options.table, std::move(done));
  });
}

Status CreateIndex(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr schema, connection->engine().Table(options.table));
  IndexSpec spec{
      .name = options.index, .fpr = options.fpr, .expected_values = options.expected_values};
  for (const std::string& name : options.columns) {
    const auto column = schema->FindColumn(name);
    if (!column) {
      return InvalidArgument("cannot create index \"" + options.index + "\": table \"" +
                             schema->name + "\" has no column \"" + name + "\"");
    }
    spec.columns.push_back(*column);
  }
  return AwaitResult<TableSchema>(&connection->engine(),
                                  [&](Cluster& cluster, auto done) {
                                    cluster.CreateIndex(options.table, spec, std::move(done));
                                  })
      .status();
}

Status DropIndex(Connection* connection, const Options& options) {
  return AwaitResult<TableSchema>(&connection->engine(),
                                  [&](Cluster& cluster, auto done) {
                                    cluster.DropIndex(options.table, options.index,
                                                      std::move(done));
                                  })
      .status();
}

Status RebuildIndex(Connection* connection, const Options& options) {
  return AwaitStatus(&connection->engine(), [&](Cluster& cluster, auto done) {
    cluster.RebuildIndex(options.table, options.index, std::move(done));
  });
}

}  // namespace

void AddTableCommands(CLI::App* app, Context* context) {
  using Command = Status (*)(Connection*, const Options&);
  auto options = std::make_shared<Options>();
  const auto add = [&](CLI::App* group, const char* name, const char* help, Command command) {
    CLI::App* sub = group->add_subcommand(name, help);
    OnStore(sub, context, [=](Connection* connection) { return command(connection, *options); });
    return sub;
  };
  const auto table_argument = [&](CLI::App* sub) {
    sub->add_option("TABLE", options->table, "The table")->required();
  };

  CLI::App* table = app->add_subcommand("table", "List, describe and drop tables");
  table->require_subcommand(1);
  add(table, "list", "Print the names of the tables", ListTables);
  table_argument(add(table, "describe", "Print a table's columns, key and indexes", DescribeTable));
  table_argument(add(table, "drop", "Delete a table with all its rows", DropTable));

  CLI::App* index = app->add_subcommand("index", "Create, drop, rebuild and list indexes");
  index->require_subcommand(1);
  CLI::App* create = add(index, "create", "Create an index while the table is in use", CreateIndex);
  table_argument(create);
  create->add_option("INDEX", options->index, "The name of the index")->required();
  create->add_option("COLUMNS", options->columns, "Its columns, in order")
      ->required()
      ->delimiter(',');
  create->add_option("--fpr", options->fpr, "False-positive rate of one full filter layer")
      ->capture_default_str();
  create
      ->add_option("--expected-values", options->expected_values,
                   "Distinct values in a region: what one filter layer holds")
      ->capture_default_str();
  CLI::App* drop = add(index, "drop", "Drop an index", DropIndex);
  table_argument(drop);
  drop->add_option("INDEX", options->index, "The index")->required();
  CLI::App* rebuild =
      add(index, "rebuild", "Make the entries and filters of an index agree with the rows",
          RebuildIndex);
  table_argument(rebuild);
  rebuild->add_option("INDEX", options->index, "The index; all of the table when left out");
  table_argument(add(index, "list", "Print a table's indexes, one a line", ListIndexes));
}

}  // namespace tamis
