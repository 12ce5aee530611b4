// TamisSettings: the options of a server, a user mapping and a foreign table, as one.
//
//   server         url, ca, cert, key, token_file, connect_timeout_ms, timeout_ms,
//                  change_timeout_ms, buffer_kb, async_capable, invalid_text, updatable,
//                  startup_cost, row_cost
//   user mapping   cert, key, token_file, token
//   table          table_name, invalid_text, updatable
//   column         column_name
//
// A token or certificate of the user mapping comes before one of the server. Only a superuser or a
// member of pg_read_server_files names files: their content is sent to the server.
#pragma once

#include "postgres.h"

typedef struct TamisSettings {
  Oid server_id;
  Oid user_id;
  char* server_name;
  char* url;    // without a slash at its end
  char* ca;     // NULL: those of the system
  char* cert;   // NULL: none is shown
  char* key;    // NULL: there is no certificate
  char* token;  // NULL: none is sent
  int connect_timeout_ms;
  int timeout_ms;         // for a statement, 0: the server's own limit
  int change_timeout_ms;  // 0: none
  int buffer_kb;          // bound of rows that came and were not taken; then the server waits
  bool invalid_text_is_null;
  bool updatable;
  bool async_capable;
  double startup_cost;
  double row_cost;
} TamisSettings;

// The settings of a foreign table for the user; without a table (InvalidOid) those of the server.
TamisSettings* TamisSettingsOf(Oid server_id, Oid user_id, Oid table_id);
// Whether the table may be changed. Reads no token.
bool TamisIsUpdatable(Oid server_id, Oid table_id);

// The name of a foreign table, and of its column, in the store.
const char* TamisTableName(Oid table_id);
const char* TamisColumnName(Oid table_id, int attribute);
