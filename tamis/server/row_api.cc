#include "tamis/server/row_api.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "tamis/server/entity_tag.h"
#include "tamis/server/json_body.h"
#include "tamis/server/json_rows.h"
#include "tamis/server/problem.h"
#include "tamis/server/routes.h"
#include "tamis/sql/values.h"
#include "tamis/table/stored_row.h"

namespace tamis::server {
namespace {

using nlohmann::json;

constexpr Duration kRowCallTime = std::chrono::hours(1);  // the call is cancelled before
constexpr int kMostAttempts = 100;  // at a row that others change all the time

// ---- Keys, values and rows

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
                         std::to_string(table.key.size()) +
                         (table.key.size() == 1 ? " column:" : " columns:") + names +
                         "; the path has " + std::to_string(texts.size()) +
                         " values; write them with commas between them, and a comma in a value as "
                         "%2C");
}

// A row with only the key's columns.
Result<Row> KeyOf(const TableSchema& table, const std::string& path) {
  TAMIS_ASSIGN_OR_RETURN(const auto texts, KeyTexts(table, path));
  Row row(table.columns.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const Column& column = table.columns[table.key[i]];
    auto value = Value::Parse(column.type, texts[i]);
    if (!value.ok()) return value.status().WithContext("column \"" + column.name + "\"");
    row[table.key[i]] = *std::move(value);
  }
  return row;
}

Result<Value> ValueOf(const Column& column, const json& value) {
  TAMIS_ASSIGN_OR_RETURN(const Value given, FromJson(value));
  auto converted = ConvertForColumn(column, given);
  if (!converted.ok()) return converted.status().WithContext("column \"" + column.name + "\"");
  return converted;
}

std::string TextOf(const Value& value) {
  std::string text;
  AppendJsonValue(value, &text);
  return text;
}

Status CheckComputed(const TableSchema& table, const Row& row, const json& object) {
  for (uint32_t i = 0; i < table.columns.size(); ++i) {
    const Column& column = table.columns[i];
    if (!column.is_computed() || !object.contains(column.name)) continue;
    const auto given = ValueOf(column, object[column.name]);
    if (given.ok() && *given == row[i]) continue;
    return InvalidArgument(
        "column \"" + column.name + "\" of table \"" + table.name +
        "\" cannot be set, since it is computed as " +
        column.expression->ToString(table.columns[column.expression->source].name));
  }
  return Status::Ok();
}

// The object's members as a row; other columns are NULL. `key`: the row that the path names, if it
// names one.
Result<Row> RowOf(const TableSchema& table, const json& object, const Row* key) {
  if (!object.is_object()) {
    return InvalidArgument("a row must be a JSON object with the columns as members");
  }
  if (object.empty() && key == nullptr) return InvalidArgument("the row has no columns");
  Row row = key != nullptr ? *key : Row(table.columns.size());
  for (const auto& [name, member] : object.items()) {
    const auto column = table.FindColumn(name);
    if (!column) {
      return InvalidArgument("table \"" + table.name + "\" has no column \"" + name + "\"");
    }
    if (table.columns[*column].is_computed()) continue;
    TAMIS_ASSIGN_OR_RETURN(Value value, ValueOf(table.columns[*column], member));
    if (key != nullptr && table.IsKey(*column) && value != row[*column]) {
      return InvalidArgument("column \"" + name + "\" is " + member.dump() + " in the body and " +
                             TextOf(row[*column]) + " in the path");
    }
    row[*column] = std::move(value);
  }
  SetComputedColumns(table, &row);
  TAMIS_RETURN_IF_ERROR(CheckComputed(table, row, object));
  return row;
}

std::string Document(const TableSchema& table, const Row& row) {
  std::string text = "{";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].is_dropped()) continue;
    if (text.size() > 1) text += ',';
    AppendJsonText(table.columns[i].name, &text);
    text += ':';
    AppendJsonValue(row[i], &text);
  }
  return text + "}\n";
}

// ---- Reads and changes under a condition

// The condition that a row is this one. Its key is, and computed columns follow from others.
Predicate Is(const TableSchema& table, const Row& row) {
  std::vector<Predicate> equal;
  for (uint32_t i = 0; i < table.columns.size(); ++i) {
    if (table.IsKey(i) || table.columns[i].is_computed()) continue;
    equal.push_back(row[i].is_null() ? Predicate::IsNull(i)
                                     : Predicate::Compare(i, Predicate::Op::kEq, row[i]));
  }
  return Predicate::And(std::move(equal));
}

Result<std::optional<Row>> Read(Engine* engine, const StoreCall& call, const SchemaPtr& table,
                                const Row& key) {
  std::vector<Predicate> equal;
  for (const uint32_t column : table->key) {
    equal.push_back(Predicate::Compare(column, Predicate::Op::kEq, key[column]));
  }
  RowStream rows = engine->Search(table, {.predicate = Predicate::And(std::move(equal)),
                                          .timeout = kRowCallTime,
                                          .cancelled = &call.cancelled()});
  return rows.Next();
}

std::optional<std::string> TagOf(const TableSchema& table, const std::optional<Row>& row) {
  if (!row) return std::nullopt;
  return EntityTagOf(table, *row);
}

Status NoRow(const TableSchema& table) {
  return NotFound("table \"" + table.name + "\" has no row with this key");
}

// Carries out a kPut or a kDelete under the conditions. Returns the condition that the row did not
// meet; empty: done.
Result<std::string> Change(Engine* engine, StoreCall& call, const SchemaPtr& table,
                           const Write& write, const RowConditions& conditions) {
  const bool is_delete = write.kind == Write::Kind::kDelete;
  for (int attempt = 1;; ++attempt) {
    Write one = write;
    if (!conditions.empty()) {
      TAMIS_ASSIGN_OR_RETURN(const std::optional<Row> before, Read(engine, call, table, write.row));
      std::string broken = conditions.Broken(TagOf(*table, before));
      if (!broken.empty()) return broken;
      if (before) {
        one.condition = Is(*table, *before);
      } else if (is_delete) {
        return NoRow(*table);
      } else {
        one.kind = Write::Kind::kInsert;
      }
    } else if (is_delete) {
      one.condition = Predicate();  // there is a row
    }
    call.MayChange();
    const Status status = engine->Apply(table, {std::move(one)}, &call.cancelled())[0];
    if (status.ok()) return std::string();
    const bool is_other = status.code() == StatusCode::kFailedPrecondition ||
                          status.code() == StatusCode::kAlreadyExists;
    if (is_other && conditions.empty() && is_delete) return NoRow(*table);
    if (!is_other || conditions.empty() || attempt == kMostAttempts) return status;
  }
}

Status NotMet(const TableSchema& table, const std::string& condition) {
  return FailedPrecondition("the row of table \"" + table.name + "\" does not meet " + condition +
                            (condition == "If-Match"
                                 ? ": it was changed or deleted since its ETag was read, and "
                                   "nothing was done; GET it again"
                                 : ": it is there, and nothing was done"));
}

constexpr int kPreconditionFailed = 412;

bool HasColumns(const TableSchema& table, const json& row) {
  if (!row.is_object()) return true;
  for (const auto& [name, value] : row.items()) {
    if (!table.FindColumn(name)) return false;
  }
  return true;
}

// The table's description; a new one if the kept one lacks a column that a row has.
Result<SchemaPtr> TableFor(Engine* engine, const StoreCall& call, const json& rows) {
  const std::string& name = call.parameters().at("table");
  TAMIS_ASSIGN_OR_RETURN(SchemaPtr table, engine->Table(name));
  for (const json& row : rows) {
    if (HasColumns(*table, row)) continue;
    engine->ForgetTable(name);
    return engine->Table(name);
  }
  return table;
}

Response Done(const char* what, uint64_t rows) {
  return {.body = json{{what, rows}}.dump() + "\n"};
}

// The rows of a POST, and the conditions of each.
struct Batch {
  json rows;
  std::vector<RowConditions> conditions;
};

Result<Batch> BatchOf(const Request& request) {
  TAMIS_ASSIGN_OR_RETURN(const RowConditions common, RowConditions::Of(request));
  if (!common.ForAnyRow()) {
    return InvalidArgument(
        "a condition on several rows must be *; give each row its tag as {\"rows\": [...], "
        "\"if_match\": [...]}");
  }
  TAMIS_ASSIGN_OR_RETURN(json body, ParseJsonBody(request.body));
  Batch batch;
  if (body.is_array()) {
    batch.rows = std::move(body);
    batch.conditions.assign(batch.rows.size(), common);
    return batch;
  }
  if (!body.is_object() || !body.contains("rows") || !body["rows"].is_array()) {
    return InvalidArgument(
        "the body must be a JSON array of objects, or an object with such an array as \"rows\"");
  }
  for (const auto& [name, value] : body.items()) {
    if (name == "rows" || name == "if_match") continue;
    return InvalidArgument("\"" + name + "\" is no member of the body; they are rows and if_match");
  }
  batch.rows = std::move(body["rows"]);
  batch.conditions.assign(batch.rows.size(), common);
  if (!body.contains("if_match")) return batch;
  const json& tags = body["if_match"];
  if (!tags.is_array() || tags.size() != batch.rows.size()) {
    return InvalidArgument("if_match must be an array with a tag or null for each of the " +
                           std::to_string(batch.rows.size()) + " rows");
  }
  if (!common.empty()) {
    return InvalidArgument("the conditions of rows are either a header or if_match, not both");
  }
  for (size_t i = 0; i < tags.size(); ++i) {
    if (tags[i].is_null()) continue;
    if (!tags[i].is_string()) return InvalidArgument("a tag in if_match must be text or null");
    TAMIS_ASSIGN_OR_RETURN(batch.conditions[i], RowConditions::IfMatch(tags[i].get<std::string>()));
  }
  return batch;
}

}  // namespace

Result<Response> RowApi::Get(StoreCall& call) {
  TAMIS_ASSIGN_OR_RETURN(const RowConditions conditions, RowConditions::Of(call.request()));
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, engine_->Table(call.parameters().at("table")));
  TAMIS_ASSIGN_OR_RETURN(const Row key, KeyOf(*table, call.request().path));
  TAMIS_ASSIGN_OR_RETURN(const std::optional<Row> row, Read(engine_, call, table, key));
  const auto tag = TagOf(*table, row);
  const std::string broken = conditions.Broken(tag);
  if (broken == "If-Match") return Problem(kPreconditionFailed, NotMet(*table, broken));
  if (!row) return NoRow(*table);
  if (!broken.empty()) return Response{.status = 304, .headers = {{"ETag", *tag}}};
  return Response{.body = Document(*table, *row), .headers = {{"ETag", *tag}}};
}

Result<Response> RowApi::Put(StoreCall& call) {
  TAMIS_ASSIGN_OR_RETURN(const RowConditions conditions, RowConditions::Of(call.request()));
  TAMIS_ASSIGN_OR_RETURN(const json object, ParseJsonBody(call.request().body));
  if (!object.is_object()) return InvalidArgument("the body must be a JSON object");
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, TableFor(engine_, call, json::array({object})));
  TAMIS_ASSIGN_OR_RETURN(const Row key, KeyOf(*table, call.request().path));
  TAMIS_ASSIGN_OR_RETURN(Row row, RowOf(*table, object, &key));
  const std::string tag = EntityTagOf(*table, row);
  TAMIS_ASSIGN_OR_RETURN(const std::string broken,
                         Change(engine_, call, table, {.row = std::move(row)}, conditions));
  if (!broken.empty()) return Problem(kPreconditionFailed, NotMet(*table, broken));
  Response response = Done("written", 1);
  response.headers.emplace_back("ETag", tag);
  return response;
}

Result<Response> RowApi::Delete(StoreCall& call) {
  TAMIS_ASSIGN_OR_RETURN(const RowConditions conditions, RowConditions::Of(call.request()));
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, engine_->Table(call.parameters().at("table")));
  TAMIS_ASSIGN_OR_RETURN(Row key, KeyOf(*table, call.request().path));
  TAMIS_ASSIGN_OR_RETURN(const std::string broken,
                         Change(engine_, call, table,
                                {.kind = Write::Kind::kDelete, .row = std::move(key)}, conditions));
  if (!broken.empty()) return Problem(kPreconditionFailed, NotMet(*table, broken));
  return Done("deleted", 1);
}

Result<Response> RowApi::Post(StoreCall& call) {
  TAMIS_ASSIGN_OR_RETURN(const Batch batch, BatchOf(call.request()));
  TAMIS_ASSIGN_OR_RETURN(const SchemaPtr table, TableFor(engine_, call, batch.rows));
  for (size_t i = 0; i < batch.rows.size(); ++i) {
    const auto at_row = [i](const Status& status) {
      return status.WithContext("row " + std::to_string(i) + " of the array; the " +
                                std::to_string(i) + " rows before it were written");
    };
    auto row = RowOf(*table, batch.rows[i], /*key=*/nullptr);
    if (!row.ok()) return at_row(row.status());
    const auto broken = Change(engine_, call, table, {.row = *std::move(row)}, batch.conditions[i]);
    if (!broken.ok()) return at_row(broken.status());
    if (!broken->empty()) return Problem(kPreconditionFailed, at_row(NotMet(*table, *broken)));
  }
  return Done("written", batch.rows.size());
}

}  // namespace tamis::server
