// StoreApi: tables, regions, indexes, servers and single rows over HTTP, as JSON.
//
// Threads: safe. The calls block; they run on workers.
#pragma once

#include <string>

#include "tamis/server/routes.h"
#include "tamis/server/sql_database.h"

namespace tamis::server {

class StoreApi {
 public:
  // The databases must outlive this object.
  explicit StoreApi(SqlDatabases* databases) : databases_(databases) {}

  Response Tables();
  Response Table(const Call& call);
  Response Regions(const Call& call);
  Response Indexes(const Call& call);
  Response Servers();
  // A row by its key: the values of the key's columns in the last step of the path, with commas
  // between them.
  Response GetRow(const Call& call);
  Response PutRow(const Call& call);  // replaces all of it by the object in the body
  Response DeleteRow(const Call& call);
  Response PostRows(const Call& call);  // replaces several: an array of objects

 private:
  // With a database that has the table, if there is one.
  template <class Work>
  Response WithDatabase(const std::string& table, Work work);

  SqlDatabases* const databases_;
};

}  // namespace tamis::server
