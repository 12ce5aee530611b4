// StoreApi: tables, regions, indexes, servers and single rows over HTTP, as JSON.
//
// Threads: safe. The calls block; they run on workers, and end early when the call is cancelled.
#pragma once

#include <string>

#include "tamis/server/sql_database.h"
#include "tamis/server/store_calls.h"

namespace tamis::server {

class StoreApi {
 public:
  // The databases must outlive this object.
  explicit StoreApi(SqlDatabases* databases) : databases_(databases) {}

  Result<Response> Tables(StoreCall& call);
  Result<Response> Table(StoreCall& call);
  Result<Response> Regions(StoreCall& call);
  Result<Response> Indexes(StoreCall& call);
  Result<Response> Servers(StoreCall& call);
  // A row by its key: the values of the key's columns in the last step of the path, with commas
  // between them.
  Result<Response> GetRow(StoreCall& call);
  Result<Response> PutRow(StoreCall& call);  // replaces all of it by the object in the body
  Result<Response> DeleteRow(StoreCall& call);
  Result<Response> PostRows(StoreCall& call);  // replaces several: an array of objects

 private:
  // With a database that has the table, if there is one.
  template <class Work>
  Result<Response> WithDatabase(StoreCall& call, const std::string& table, Work work);
  // With the table and the condition of the key that the path names.
  template <class Work>
  Result<Response> WithRow(StoreCall& call, Work work);

  SqlDatabases* const databases_;
};

}  // namespace tamis::server
