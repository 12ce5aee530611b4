// DefineTable: finds the table of a definition, or makes it.
#pragma once

#include "tamis/base/answers.h"
#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

class ClusterAdmin;
class Engine;

// Makes the table unless it exists; returns its schema. kAlreadyExists, with the difference, if a
// table of that name has other columns, another key or other indexes. Blocks; must not be called
// from an executor's task.
Result<SchemaPtr> DefineTable(Engine* engine, ClusterAdmin* admin, const TableSchema& definition,
                              const Wait& wait);

}  // namespace tamis
