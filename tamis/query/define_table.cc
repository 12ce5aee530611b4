#include "tamis/query/define_table.h"

#include "tamis/cluster/cluster_admin.h"
#include "tamis/query/engine.h"
#include "tamis/table/definition.h"

namespace tamis {

Result<SchemaPtr> DefineTable(Engine* engine, ClusterAdmin* admin, const TableSchema& definition,
                              const Wait& wait) {
  auto table = engine->Table(definition.name);
  if (!table.ok()) {
    if (table.status().code() != StatusCode::kNotFound) return table;
    const auto created = AwaitResult<TableSchema>(&engine->executor(), wait, [&](auto done) {
      admin->CreateTable(definition, std::move(done));
    });
    // Another process may have made the table meanwhile.
    if (!created.ok() && created.status().code() != StatusCode::kAlreadyExists) {
      return created.status();
    }
    engine->ForgetTable(definition.name);
    table = engine->Table(definition.name);
    if (!table.ok()) return table;
  }
  TAMIS_RETURN_IF_ERROR(CheckSameDefinition(**table, definition));
  return table;
}

}  // namespace tamis
