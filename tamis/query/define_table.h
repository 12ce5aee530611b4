// DefineTable: a table of a definition, made or found.
#pragma once

#include "tamis/base/answers.h"
#include "tamis/base/status.h"
#include "tamis/table/schema.h"

namespace tamis {

class ClusterAdmin;
class Engine;

// Makes the table unless it is there. kAlreadyExists, with the difference, when the one that is
// there has other columns, another key or other indexes. Blocks; must not be called from an
// executor's task.
Result<SchemaPtr> DefineTable(Engine* engine, ClusterAdmin* admin, const TableSchema& definition,
                              const Wait& wait);

}  // namespace tamis
