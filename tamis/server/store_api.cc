#include "tamis/server/store_api.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "tamis/cluster/server_state_name.h"

namespace tamis::server {
namespace {

using Json = nlohmann::ordered_json;

Response Document(const Json& json) {
  return {.body = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

Json ColumnNames(const TableSchema& table, const std::vector<uint32_t>& positions) {
  Json names = Json::array();
  for (const uint32_t position : positions) names.push_back(table.columns[position].name);
  return names;
}

Json IndexJson(const TableSchema& table, const IndexSpec& index) {
  Json json = {{"name", index.name},
               {"columns", ColumnNames(table, index.columns)},
               {"fpr", index.fpr},
               {"expected_values", index.expected_values},
               {"nulls", index.nulls == IndexNulls::kSkip ? "skip" : "index"}};
  if (!index.include.empty()) json["include"] = ColumnNames(table, index.include);
  if (index.IsPartial()) json["where"] = index.where.ToString(table);
  return json;
}

Json TableJson(const TableSchema& table) {
  Json columns = Json::array();
  for (const Column& column : table.columns) {
    if (column.is_dropped()) continue;
    Json json = {
        {"name", column.name}, {"type", TypeName(column.type)}, {"nullable", column.nullable}};
    if (column.is_computed()) {
      json["computed"] = column.expression->ToString(table.columns[column.expression->source].name);
    }
    columns.push_back(std::move(json));
  }
  Json indexes = Json::array();
  for (const IndexSpec& index : table.indexes) indexes.push_back(IndexJson(table, index));
  return {{"name", table.name},
          {"id", table.id},
          {"version", table.version},
          {"columns", std::move(columns)},
          {"key", ColumnNames(table, table.key)},
          {"indexes", std::move(indexes)}};
}

}  // namespace

// `work` returns a Result<Response>.
template <class Work>
Result<Response> StoreApi::WithDatabase(StoreCall& call, Work work) {
  TAMIS_ASSIGN_OR_RETURN(auto database, databases_->Take());
  Result<Response> response = [&] {
    const StoreCall::Interrupt interrupt(&call, [&] { database->Interrupt(); });
    return work(database.get());
  }();
  if (response.ok()) databases_->GiveBack(std::move(database));
  return response;
}

Result<Response> StoreApi::Tables(StoreCall& call) {
  return WithDatabase(call, [](SqlDatabase* database) -> Result<Response> {
    TAMIS_ASSIGN_OR_RETURN(const auto tables, database->session()->Ask<std::vector<TableSchema>>(
                                                  [](Cluster& cluster, auto done) {
                                                    cluster.ListTables(std::move(done));
                                                  }));
    Json list = Json::array();
    for (const TableSchema& table : tables) list.push_back(TableJson(table));
    return Document({{"tables", std::move(list)}});
  });
}

Result<Response> StoreApi::Table(StoreCall& call) {
  return WithDatabase(call, [&](SqlDatabase* database) -> Result<Response> {
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table,
                           database->session()->engine->Table(call.parameters().at("table")));
    Json json = TableJson(*table);
    json["estimated_rows"] = database->session()->EstimatedRows(*table);
    return Document(json);
  });
}

Result<Response> StoreApi::Regions(StoreCall& call) {
  return WithDatabase(call, [&](SqlDatabase* database) -> Result<Response> {
    const std::string& name = call.parameters().at("table");
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, database->session()->engine->Table(name));
    TAMIS_ASSIGN_OR_RETURN(
        const auto regions,
        database->session()->Ask<std::vector<RegionInfo>>([&](Cluster& cluster, auto done) {
          cluster.ListRegions(table->name, {}, std::move(done));
        }));
    Json list = Json::array();
    for (const RegionInfo& region : regions) {
      // Keys are bytes.
      list.push_back(
          {{"id", region.id.ToString()},
           {"name", region.name},
           {"server", region.server},
           {"start", Value::Bytes(region.start).ToString()},
           {"end", region.end.empty() ? Json() : Json(Value::Bytes(region.end).ToString())},
           {"size_bytes", region.size_bytes}});
    }
    return Document({{"table", table->name}, {"regions", std::move(list)}});
  });
}

Result<Response> StoreApi::Indexes(StoreCall& call) {
  return WithDatabase(call, [&](SqlDatabase* database) -> Result<Response> {
    const std::string& name = call.parameters().at("table");
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, database->session()->engine->Table(name));
    Json list = Json::array();
    for (const IndexSpec& index : table->indexes) {
      TAMIS_ASSIGN_OR_RETURN(
          const IndexProgress progress,
          database->session()->Change<IndexProgress>([&](ClusterAdmin& admin, auto done) {
            admin.GetIndexProgress(table->name, index.name, std::move(done));
          }));
      Json json = IndexJson(*table, index);
      json["regions"] = progress.regions;
      json["regions_complete"] = progress.complete;
      json["entries"] = progress.entries;
      if (progress.failure.has_value()) json["failure"] = progress.failure->ToString();
      list.push_back(std::move(json));
    }
    return Document({{"table", table->name}, {"indexes", std::move(list)}});
  });
}

Result<Response> StoreApi::Servers(StoreCall& call) {
  return WithDatabase(call, [](SqlDatabase* database) -> Result<Response> {
    TAMIS_ASSIGN_OR_RETURN(const auto servers, database->session()->Ask<std::vector<ServerInfo>>(
                                                   [](Cluster& cluster, auto done) {
                                                     cluster.ListServers(std::move(done));
                                                   }));
    Json list = Json::array();
    for (const ServerInfo& server : servers) {
      list.push_back(
          {{"name", server.name}, {"state", StateName(server.state)}, {"regions", server.regions}});
    }
    return Document({{"servers", std::move(list)}});
  });
}

}  // namespace tamis::server
