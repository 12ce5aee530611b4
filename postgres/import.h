// IMPORT FOREIGN SCHEMA: the tables of the store as foreign tables.
#pragma once

#include "postgres.h"

#include "foreign/fdwapi.h"

List* TamisImportForeignSchema(ImportForeignSchemaStmt* statement, Oid server_id);
