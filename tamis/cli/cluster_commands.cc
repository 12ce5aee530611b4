// tamis region, tamis server, tamis status, tamis check.
#include <algorithm>
#include <cstdio>

#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/printer.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

struct Options {
  std::string table;
  uint64_t region = 0;
  std::string server;
  std::vector<std::string> key;
  std::string format = "table";
};

Status Query(Connection* connection, const Options& options, const std::string& sql,
             const std::vector<Value>& values) {
  TAMIS_ASSIGN_OR_RETURN(const Format format, ParseFormat(options.format));
  Printer printer(format, stdout);
  return connection->RunBound(sql, values, printer.Sink());
}

Status ListRegions(Connection* connection, const Options& options) {
  return Query(connection, options, "SELECT * FROM tamis_regions(?)", {Value::Text(options.table)});
}

Status ListServers(Connection* connection, const Options& options) {
  return Query(connection, options, "SELECT * FROM tamis_servers", {});
}

Result<std::vector<TableSchema>> ListTables(Connection* connection) {
  return connection->session()->Ask<std::vector<TableSchema>>(
      [](Cluster& cluster, auto done) { cluster.ListTables(std::move(done)); });
}

Result<std::vector<RegionInfo>> RegionsOf(Connection* connection, const TableSchema& table) {
  return connection->session()->Ask<std::vector<RegionInfo>>(
      [&](Cluster& cluster, auto done) { cluster.ListRegions(table.name, {}, std::move(done)); });
}

// The region's table, so that a split key can be encoded.
Result<TableSchema> TableOfRegion(Connection* connection, RegionId region) {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, ListTables(connection));
  for (const TableSchema& table : tables) {
    TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(connection, table));
    for (const RegionInfo& info : regions) {
      if (info.id == region) return table;
    }
  }
  return NotFound("there is no region " + region.ToString() +
                  "; tamis region list TABLE shows the regions");
}

Status SplitRegion(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionId::Of(options.region));
  std::string key;
  if (!options.key.empty()) {
    TAMIS_ASSIGN_OR_RETURN(const TableSchema schema, TableOfRegion(connection, region));
    if (options.key.size() > schema.key.size()) {
      return InvalidArgument("the key of table \"" + schema.name + "\" has only " +
                             std::to_string(schema.key.size()) + " columns");
    }
    for (size_t i = 0; i < options.key.size(); ++i) {
      const Column& column = schema.columns[schema.key[i]];
      TAMIS_ASSIGN_OR_RETURN(const Value value, Value::Parse(column.type, options.key[i]));
      TAMIS_RETURN_IF_ERROR(KeyFormat(schema).Append(i, value, &key));
    }
  }
  return connection->session()->Do(
      [&](ClusterAdmin& admin, auto done) { admin.SplitRegion(region, key, std::move(done)); });
}

Status MergeRegion(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionId::Of(options.region));
  return connection->session()->Do(
      [&](ClusterAdmin& admin, auto done) { admin.MergeRegion(region, std::move(done)); });
}

Status MoveRegion(Connection* connection, const Options& options) {
  TAMIS_ASSIGN_OR_RETURN(const RegionId region, RegionId::Of(options.region));
  return connection->session()->Do([&](ClusterAdmin& admin, auto done) {
    admin.MoveRegion(region, options.server, std::move(done));
  });
}

Status Balance(Connection* connection, const Options&) {
  if (!connection->admin().Can(Capability::kBalance)) return CannotDo(Capability::kBalance);
  TAMIS_ASSIGN_OR_RETURN(const JobInfo job,
                         connection->session()->Run({.kind = JobSpec::Kind::kBalance}));
  std::printf("%llu regions moved\n", static_cast<unsigned long long>(job.moved));
  return Status::Ok();
}

Status ShowStatus(Connection* connection, const Options&) {
  TAMIS_ASSIGN_OR_RETURN(const ClusterStatus status, connection->session()->Change<ClusterStatus>(
                                                         [](ClusterAdmin& admin, auto done) {
                                                           admin.GetStatus(std::move(done));
                                                         }));
  TAMIS_ASSIGN_OR_RETURN(const auto tables, ListTables(connection));
  const auto live =
      std::ranges::count(status.servers, ServerInfo::State::kLive, &ServerInfo::state);
  std::printf("store    %s\n", connection->store_name().c_str());
  std::printf("servers  %zu, %td live\n", status.servers.size(), live);
  for (const TableSchema& table : tables) {
    TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(connection, table));
    double bytes = 0;
    for (const RegionInfo& region : regions) bytes += static_cast<double>(region.size_bytes);
    std::printf("table    %s: %zu regions, %.1f MB, %zu columns, %zu indexes\n", table.name.c_str(),
                regions.size(), bytes / 1e6, table.columns.size(), table.indexes.size());
  }
  return Status::Ok();
}

Status RunCheck(Connection* connection, const Options& options) {
  // A filter that is being counted has nothing to compare with yet.
  connection->WaitUntilRouted(std::chrono::seconds(60));
  TAMIS_ASSIGN_OR_RETURN(
      const JobInfo job,
      connection->session()->Run({.kind = JobSpec::Kind::kCheck, .table = options.table}));
  const CheckReport& report = job.check;
  std::fputs(report.ToString().c_str(), stdout);
  if (report.ok()) return Status::Ok();
  return DataLoss("table \"" + options.table + "\": " + report.Summary() +
                  "; tamis index rebuild " + options.table +
                  " makes its indexes agree with its rows");
}

}  // namespace

void AddClusterCommands(Command app, Context* context) {
  using Run = Status (*)(Connection*, const Options&);
  auto options = std::make_shared<Options>();
  const auto add = [&](Command group, const char* name, const char* help, Run run) {
    Command sub = group.AddCommand(name, help);
    OnStore(sub, context, [=](Connection* connection) { return run(connection, *options); });
    return sub;
  };
  const auto format = [&](Command sub) { AddFormatOption(sub, options->format); };
  const auto region_argument = [&](Command sub) {
    sub.AddOption("REGION", options->region, "The region's number").Required();
  };

  Command region = app.AddCommand("region", "List, split, merge, move and balance regions");
  region.RequireCommand();
  Command list = add(region, "list", "Print the regions of a table", ListRegions);
  list.AddOption("TABLE", options->table, "The table").Required();
  format(list);
  Command split = add(region, "split", "Split a region, near its middle or at a key", SplitRegion);
  region_argument(split);
  split.AddOption("KEY", options->key,
                  "Values of leading key columns, where the right part begins");
  region_argument(add(region, "merge", "Make a region and its right neighbour one", MergeRegion));
  Command move = add(region, "move", "Move a region to a server", MoveRegion);
  region_argument(move);
  move.AddOption("SERVER", options->server, "The server").Required();
  add(region, "balance", "Move regions until all servers have about as many", Balance);

  Command server = app.AddCommand("server", "List the region servers");
  server.RequireCommand();
  format(add(server, "list", "Print the region servers", ListServers));

  add(app, "status", "Print what the store holds", ShowStatus);
  add(app, "check", "Compare every row with every index and every filter", RunCheck)
      .AddOption("TABLE", options->table, "The table")
      .Required();
}

}  // namespace tamis
