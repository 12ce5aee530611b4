#include "tamis/server/store_api.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "tamis/cluster/server_state_name.h"
#include "tamis/server/json_body.h"
#include "tamis/server/json_rows.h"
#include "tamis/sql/sql_name.h"

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

// The texts of the key's columns, from the last step of the path as it was sent.
Result<std::vector<std::string>> KeyTexts(const TableSchema& table, const std::string& path) {
  std::vector<std::string> texts;
  std::string_view rest = std::string_view(path).substr(path.rfind('/') + 1);
  while (true) {
    const size_t comma = rest.find(',');
    std::string text;
    if (!DecodePercent(rest.substr(0, comma), &text)) {
      return InvalidArgument("the key in the path has a \"%\" without two hexadecimal digits");
    }
    texts.push_back(std::move(text));
    if (comma == std::string_view::npos) break;
    rest = rest.substr(comma + 1);
  }
  if (texts.size() == table.key.size()) return texts;
  std::string names;
  for (const uint32_t column : table.key) names += " " + table.columns[column].name;
  return InvalidArgument("the key of table \"" + table.name + "\" has " +
                         std::to_string(table.key.size()) + " columns:" + names +
                         "; the path has " + std::to_string(texts.size()) +
                         " values; write them with commas between them, and a comma in a value as "
                         "%2C");
}

// "k1 = ? AND k2 = ?", and the values.
struct KeyCondition {
  std::string text;
  nlohmann::json values = nlohmann::json::array();
};

Result<KeyCondition> KeyOf(const TableSchema& table, const std::string& path) {
  TAMIS_ASSIGN_OR_RETURN(const auto texts, KeyTexts(table, path));
  KeyCondition key;
  for (size_t i = 0; i < texts.size(); ++i) {
    const Column& column = table.columns[table.key[i]];
    auto value = Value::Parse(column.type, texts[i]);
    if (!value.ok()) return value.status().WithContext("column \"" + column.name + "\"");
    key.text += (i == 0 ? "" : " AND ") + QuotedName(column.name) + " = ?";
    if (column.type == Type::kInt64) {
      key.values.push_back(value->int64());
    } else if (column.type == Type::kBool) {
      key.values.push_back(value->int64() != 0 ? 1 : 0);
    } else if (column.type == Type::kDouble) {
      key.values.push_back(value->dbl());
    } else {
      key.values.push_back(texts[i]);
    }
  }
  return key;
}

// Replaces the row by the object's members.
Status Replace(SqlDatabase* database, const TableSchema& table, const nlohmann::json& object) {
  if (!object.is_object()) {
    return InvalidArgument("a row must be a JSON object with the columns as members");
  }
  std::string names;
  std::string marks;
  nlohmann::json values = nlohmann::json::array();
  for (const auto& [name, value] : object.items()) {
    if (!table.FindColumn(name)) {
      return InvalidArgument("table \"" + table.name + "\" has no column \"" + name + "\"");
    }
    names += (names.empty() ? "" : ", ") + QuotedName(name);
    marks += marks.empty() ? "?" : ", ?";
    values.push_back(value);
  }
  if (values.empty()) return InvalidArgument("the row has no columns");
  return database
      ->Execute("INSERT OR REPLACE INTO " + QuotedName(table.name) + "(" + names + ") VALUES (" +
                    marks + ")",
                values)
      .status();
}

Status RefuseConditions(const Request& request) {
  for (const char* header : {"if-match", "if-none-match", "if-unmodified-since"}) {
    if (request.Header(header).empty()) continue;
    return InvalidArgument(std::string("the header ") + header +
                           " is not supported; write UPDATE ... WHERE in POST /v1/sql");
  }
  return Status::Ok();
}

}  // namespace

// `work` returns a Result<Response>.
template <class Work>
Result<Response> StoreApi::WithDatabase(StoreCall& call, const std::string& table, Work work) {
  TAMIS_ASSIGN_OR_RETURN(auto database, databases_->Take(/*fresh=*/false, table));
  Result<Response> response = [&] {
    const StoreCall::Interrupt interrupt(&call, [&] { database->Interrupt(); });
    return work(database.get());
  }();
  if (response.ok()) databases_->GiveBack(std::move(database));
  return response;
}

template <class Work>
Result<Response> StoreApi::WithRow(StoreCall& call, Work work) {
  const std::string& name = call.parameters().at("table");
  return WithDatabase(call, name, [&](SqlDatabase* database) -> Result<Response> {
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, database->session()->engine->Table(name));
    TAMIS_ASSIGN_OR_RETURN(const KeyCondition key, KeyOf(*table, call.request().path));
    return work(database, *table, key);
  });
}

Result<Response> StoreApi::Tables(StoreCall& call) {
  return WithDatabase(call, "", [](SqlDatabase* database) -> Result<Response> {
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
  return WithDatabase(call, "", [&](SqlDatabase* database) -> Result<Response> {
    TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table,
                           database->session()->engine->Table(call.parameters().at("table")));
    Json json = TableJson(*table);
    json["estimated_rows"] = database->session()->EstimatedRows(*table);
    return Document(json);
  });
}

Result<Response> StoreApi::Regions(StoreCall& call) {
  return WithDatabase(call, "", [&](SqlDatabase* database) -> Result<Response> {
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
  return WithDatabase(call, "", [&](SqlDatabase* database) -> Result<Response> {
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
      list.push_back(std::move(json));
    }
    return Document({{"table", table->name}, {"indexes", std::move(list)}});
  });
}

Result<Response> StoreApi::Servers(StoreCall& call) {
  return WithDatabase(call, "", [](SqlDatabase* database) -> Result<Response> {
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

Result<Response> StoreApi::GetRow(StoreCall& call) {
  return WithRow(
      call,
      [&](SqlDatabase* database, const TableSchema& table,
          const KeyCondition& key) -> Result<Response> {
        TAMIS_ASSIGN_OR_RETURN(
            sqlite3_stmt* const statement,
            database->Prepare("SELECT * FROM " + QuotedName(table.name) + " WHERE " + key.text));
        Status status = database->Bind(statement, key.values);
        Response response{.body = "{"};
        if (status.ok()) {
          const int rc = sqlite3_step(statement);
          if (rc == SQLITE_ROW) {
            std::string values;
            AppendJsonRow(statement, NotUtf8::kReplaced, &values);
            const Json row = Json::parse(values);
            Json object = Json::object();
            for (int i = 0; i < sqlite3_column_count(statement); ++i) {
              object[sqlite3_column_name(statement, i)] = row[static_cast<size_t>(i)];
            }
            response = Document(object);
          } else if (rc == SQLITE_DONE) {
            status = NotFound("table \"" + table.name + "\" has no row with this key");
          } else {
            status = database->ErrorOf(rc);
          }
        }
        sqlite3_finalize(statement);
        if (!status.ok()) return status;
        return response;
      });
}

Result<Response> StoreApi::PutRow(StoreCall& call) {
  call.MayChange();
  TAMIS_RETURN_IF_ERROR(RefuseConditions(call.request()));
  return WithRow(call,
                 [&](SqlDatabase* database, const TableSchema& table,
                     const KeyCondition& key) -> Result<Response> {
                   TAMIS_ASSIGN_OR_RETURN(nlohmann::json row, ParseJsonBody(call.request().body));
                   if (!row.is_object()) return InvalidArgument("the body must be a JSON object");
                   for (size_t i = 0; i < table.key.size(); ++i) {
                     const std::string& name = table.columns[table.key[i]].name;
                     const nlohmann::json& value = key.values[i];
                     if (row.contains(name) && row[name] != value) {
                       return InvalidArgument("column \"" + name + "\" is " + row[name].dump() +
                                              " in the body and " + value.dump() + " in the path");
                     }
                     row[name] = value;
                   }
                   TAMIS_RETURN_IF_ERROR(Replace(database, table, row));
                   return Document({{"written", 1}});
                 });
}

Result<Response> StoreApi::DeleteRow(StoreCall& call) {
  call.MayChange();
  TAMIS_RETURN_IF_ERROR(RefuseConditions(call.request()));
  return WithRow(
      call,
      [&](SqlDatabase* database, const TableSchema& table,
          const KeyCondition& key) -> Result<Response> {
        TAMIS_ASSIGN_OR_RETURN(
            const uint64_t deleted,
            database->Execute("DELETE FROM " + QuotedName(table.name) + " WHERE " + key.text,
                              key.values));
        if (deleted == 0) return NotFound("table \"" + table.name + "\" has no row with this key");
        return Document({{"deleted", deleted}});
      });
}

Result<Response> StoreApi::PostRows(StoreCall& call) {
  call.MayChange();
  return WithDatabase(
      call, call.parameters().at("table"), [&](SqlDatabase* database) -> Result<Response> {
        TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table,
                               database->session()->engine->Table(call.parameters().at("table")));
        TAMIS_ASSIGN_OR_RETURN(const nlohmann::json rows, ParseJsonBody(call.request().body));
        if (!rows.is_array()) return InvalidArgument("the body must be a JSON array of objects");
        uint64_t written = 0;
        for (const nlohmann::json& row : rows) {
          const Status status = Replace(database, *table, row);
          if (!status.ok()) {
            return status.WithContext("row " + std::to_string(written) + " of the array; the " +
                                      std::to_string(written) + " rows before it were written");
          }
          ++written;
        }
        return Document({{"written", written}});
      });
}

}  // namespace tamis::server
