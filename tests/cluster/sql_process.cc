#include "tests/cluster/sql_process.h"

#include <nlohmann/json.hpp>

#include "tests/cluster/sql_client.h"

namespace tamis {
namespace {

using Json = nlohmann::json;

Value ValueOf(const Json& json) {
  if (json.is_number_integer()) return Value::Int64(json.get<int64_t>());
  if (json.is_string()) return Value::Text(json.get<std::string>());
  return {};
}

}  // namespace

Result<std::unique_ptr<SqlProcess>> SqlProcess::Start(const std::vector<std::string>& command) {
  TAMIS_ASSIGN_OR_RETURN(auto process, LineProcess::Start(command));
  return std::unique_ptr<SqlProcess>(new SqlProcess(std::move(process)));
}

Result<std::vector<Row>> SqlProcess::Search(const TableSchema& schema,
                                            const SearchOptions& options) {
  TAMIS_ASSIGN_OR_RETURN(const std::string line,
                         process_->Ask(Json(SqlOf(schema, options)).dump()));
  const Json answer = Json::parse(line);
  if (answer.contains("error")) {
    return ErrorOfSql(answer["code"].get<int>(), answer["error"].get<std::string>());
  }
  std::vector<Row> rows;
  for (const Json& values : answer["rows"]) {
    Row row;
    for (const Json& value : values) row.push_back(ValueOf(value));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tamis
