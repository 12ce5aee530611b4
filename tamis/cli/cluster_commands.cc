// tamis region, tamis server, tamis status, tamis check.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tamis/base/terminal_text.h"
#include "tamis/cli/command.h"
#include "tamis/cli/connection.h"
#include "tamis/cli/printer.h"
#include "tamis/cluster/server_state_name.h"
#include "tamis/query/cell_fit.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

struct Options {
  std::string table;
  uint64_t region = 0;
  std::string server;
  std::vector<std::string> key;
  std::string format = "table";
  bool hex = false;
  bool json = false;
};

Status Query(Connection* connection, const Options& options, const std::string& sql,
             const std::vector<Value>& values) {
  TAMIS_ASSIGN_OR_RETURN(const Format format, ParseFormat(options.format));
  Printer printer(format, stdout);
  return connection->RunBound(sql, values, printer.Sink());
}

Status ListRegions(Connection* connection, const Options& options) {
  const std::string keys =
      options.hex ? "start_key, end_key" : "start_values AS start, end_values AS \"end\"";
  return Query(connection, options,
               "SELECT region, epoch, " + keys + ", server, size_bytes FROM tamis_regions(?)",
               {Value::Text(options.table)});
}

Status ListServers(Connection* connection, const Options& options) {
  return Query(connection, options, "SELECT * FROM tamis_servers", {});
}

Result<std::vector<RegionInfo>> RegionsOf(Connection* connection, const TableSchema& table) {
  return connection->session()->Ask<std::vector<RegionInfo>>(
      [&](Cluster& cluster, auto done) { cluster.ListRegions(table.name, {}, std::move(done)); });
}

// The region's table, so that a split key can be encoded.
Result<TableSchema> TableOfRegion(Connection* connection, RegionId region) {
  TAMIS_ASSIGN_OR_RETURN(const auto tables, connection->session()->Tables());
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
                             std::to_string(schema.key.size()) +
                             (schema.key.size() == 1 ? " column" : " columns"));
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

int64_t Millis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// The indexes whose cells are to be fitted again, as far as that is known by the deadline.
nlohmann::ordered_json IndexesToFit(Connection* connection, const TableSchema& table,
                                    Time deadline) {
  auto names = nlohmann::ordered_json::array();
  const auto schema = std::make_shared<const TableSchema>(table);
  for (const IndexSpec& index : schema->indexes) {
    const auto outgrown = OutgrowsCells(&connection->engine(), schema, index, deadline);
    if (outgrown.value_or(false)) names.push_back(index.name);
  }
  return names;
}

// The content of `tamis status` as JSON; the text form shows the same.
Result<nlohmann::ordered_json> StatusOf(Connection* connection) {
  TAMIS_ASSIGN_OR_RETURN(const ClusterStatus status, connection->session()->Change<ClusterStatus>(
                                                         [](ClusterAdmin& admin, auto done) {
                                                           admin.GetStatus(std::move(done));
                                                         }));
  TAMIS_ASSIGN_OR_RETURN(const auto tables, connection->session()->Tables());
  auto json = nlohmann::ordered_json{{"store", connection->store_name()},
                                     {"pending_work", status.pending_work}};
  auto& servers = json["servers"] = nlohmann::ordered_json::array();
  for (const ServerStatus& server : status.servers) {
    auto coordinators = nlohmann::ordered_json::array();
    for (const CoordinatorStatus& coordinator : server.coordinators) {
      coordinators.push_back({{"coordinator", coordinator.coordinator},
                              {"events_behind", coordinator.events_behind},
                              {"lease_ms", Millis(coordinator.lease_left)},
                              {"user", coordinator.user},
                              {"host", coordinator.host}});
    }
    servers.push_back({{"name", server.info.name},
                       {"state", StateName(server.info.state)},
                       {"regions", server.info.regions},
                       {"filter_bytes", server.filter_bytes},
                       {"max_filter_bytes", server.max_filter_bytes},
                       {"filters_of_bits", server.filters_of_bits},
                       {"feed_events", server.feed_events},
                       {"feed_bytes", server.feed_bytes},
                       {"searches", server.searches},
                       {"regions_searched", server.regions_searched},
                       {"file_filters_asked", server.file_filters_asked},
                       {"file_filters_said_no", server.file_filters_said_no},
                       {"file_filters_missing", server.file_filters_missing},
                       {"coordinators", std::move(coordinators)}});
  }
  const Engine::Knowledge known = connection->engine().knowledge();
  json["coordinator"] = {{"servers", known.servers},
                         {"regions", known.regions},
                         {"indexes_missing", known.indexes_missing},
                         {"indexes_left_out", known.indexes_left_out},
                         {"filters_coarse", known.filters_coarse},
                         {"filter_bytes", known.filter_bytes},
                         {"max_filter_bytes", known.max_filter_bytes}};
  const Time deadline = connection->engine().executor().Now() + kCellFitTime;
  auto& listed = json["tables"] = nlohmann::ordered_json::array();
  for (const TableSchema& table : tables) {
    TAMIS_ASSIGN_OR_RETURN(const auto regions, RegionsOf(connection, table));
    uint64_t bytes = 0;
    for (const RegionInfo& region : regions) bytes += region.size_bytes;
    listed.push_back({{"name", table.name},
                      {"regions", regions.size()},
                      {"size_bytes", bytes},
                      {"columns", std::ranges::count(table.columns, false, &Column::is_dropped)},
                      {"indexes", table.indexes.size()},
                      {"indexes_to_fit", IndexesToFit(connection, table, deadline)}});
  }
  return json;
}

std::string Megabytes(const nlohmann::ordered_json& bytes) {
  return fmt::format("{:.1f} MB", bytes.get<double>() / 1e6);
}

// "0.1 MB of at most 1073.7 MB", of a server or the coordinator.
std::string FilterMemory(const nlohmann::ordered_json& owner) {
  const std::string used = Megabytes(owner["filter_bytes"]);
  if (owner["max_filter_bytes"] == 0) return used;
  return used + " of at most " + Megabytes(owner["max_filter_bytes"]);
}

std::string Number(const nlohmann::ordered_json& number) { return number.dump(); }

// "lease 290 ms, 0 events behind", of each coordinator.
std::string FollowersOf(const nlohmann::ordered_json& server) {
  if (server["coordinators"].empty()) return "no coordinator listens";
  std::string text;
  for (const auto& one : server["coordinators"]) {
    const auto user = one["user"].get<std::string>();
    const auto host = one["host"].get<std::string>();
    text +=
        fmt::format("{}{}{}{}{}, {} events behind", text.empty() ? "" : "; ", user,
                    host.empty() ? "" : " from " + host, user.empty() && host.empty() ? "" : ": ",
                    one["lease_ms"] == 0 ? "no lease" : "lease " + Number(one["lease_ms"]) + " ms",
                    Number(one["events_behind"]));
  }
  return text;
}

Status ShowStatus(Connection* connection, const Options& options) {
  // A store that has just been opened is still learning its filters.
  connection->WaitUntilRouted(std::chrono::seconds(10));
  TAMIS_ASSIGN_OR_RETURN(const auto status, StatusOf(connection));
  if (options.json) {
    fmt::print("{}\n", status.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
    return Status::Ok();
  }
  const auto& servers = status["servers"];
  const auto live =
      std::ranges::count_if(servers, [](const auto& server) { return server["state"] == "live"; });
  const auto& known = status["coordinator"];
  fmt::print("store    {}\n", TerminalText(status["store"].get<std::string>()));
  fmt::print("servers  {}, {} live\n", servers.size(), live);
  for (const auto& server : servers) {
    fmt::print(
        "server   {} {}: {} regions, filters {}{}; feed of {} events, {} bytes; {} searches of {} "
        "regions; {}\n",
        server["name"].get<std::string>(), server["state"].get<std::string>(),
        Number(server["regions"]), FilterMemory(server),
        server["filters_of_bits"] == 0 ? ""
                                       : fmt::format(", {} of bits alone for lack of memory",
                                                     Number(server["filters_of_bits"])),
        Number(server["feed_events"]), Number(server["feed_bytes"]), Number(server["searches"]),
        Number(server["regions_searched"]), FollowersOf(server));
    if (server["file_filters_asked"] == 0 && server["file_filters_missing"] == 0) continue;
    fmt::print(
        "         HBase's file filters: {} checks, {} file reads avoided, {} lookups in files "
        "without a filter\n",
        Number(server["file_filters_asked"]), Number(server["file_filters_said_no"]),
        Number(server["file_filters_missing"]));
  }
  fmt::print(
      "routing  {} regions of {} servers, filters {}; not loaded: {} ({} for lack of memory); "
      "with fewer bits: {}\n",
      Number(known["regions"]), Number(known["servers"]), FilterMemory(known),
      Number(known["indexes_missing"]), Number(known["indexes_left_out"]),
      Number(known["filters_coarse"]));
  for (const auto& table : status["tables"]) {
    fmt::print("table    {}: {} regions, {}, {} columns, {} indexes\n",
               TerminalText(table["name"].get<std::string>()), Number(table["regions"]),
               Megabytes(table["size_bytes"]), Number(table["columns"]), Number(table["indexes"]));
    for (const auto& index : table["indexes_to_fit"]) {
      fmt::print(
          "         values of index {1} have outgrown its cells; tamis index ranges {0} {1} fits "
          "them again\n",
          TerminalText(table["name"].get<std::string>()), TerminalText(index.get<std::string>()));
    }
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
  std::fputs(TerminalText(report.ToString()).c_str(), stdout);
  if (report.ok()) return Status::Ok();
  return DataLoss("table \"" + options.table + "\": " + report.Summary() +
                  "; tamis index rebuild " + options.table +
                  " makes its indexes agree with its rows");
}

}  // namespace

void AddClusterCommands(Command app, Invocation* invocation) {
  using Run = Status (*)(Connection*, const Options&);
  auto options = std::make_shared<Options>();
  const auto add = [&](Command group, const char* name, const char* help, Run run) {
    Command sub = group.AddCommand(name, help);
    OnStore(sub, invocation, [=](Connection* connection) { return run(connection, *options); });
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
  list.AddFlag("--hex", options->hex, "Keys as bytes, not as the values that they hold");
  format(list);
  Command split = add(region, "split", "Split a region, near its middle or at a key", SplitRegion);
  region_argument(split);
  split.AddOption("KEY", options->key,
                  "Values of leading key columns, where the right part begins");
  region_argument(add(region, "merge", "Merge a region with its right neighbour", MergeRegion));
  Command move = add(region, "move", "Move a region to a server", MoveRegion);
  region_argument(move);
  move.AddOption("SERVER", options->server, "The server").Required();
  add(region, "balance", "Move regions until all servers have about equally many", Balance);

  Command server = app.AddCommand("server", "List the region servers");
  server.RequireCommand();
  format(add(server, "list", "Print the region servers", ListServers));

  add(app, "status", "Print what the store holds: servers, filters, feeds, leases, tables",
      ShowStatus)
      .AddFlag("--json", options->json, "Print JSON");
  add(app, "check", "Compare every row with every index and every filter", RunCheck)
      .AddOption("TABLE", options->table, "The table")
      .Required();
}

}  // namespace tamis
