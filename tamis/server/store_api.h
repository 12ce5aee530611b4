// StoreApi: tables, regions, indexes and servers over HTTP, as JSON.
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

 private:
  // With a free database.
  template <class Work>
  Result<Response> WithDatabase(StoreCall& call, Work work);

  SqlDatabases* const databases_;
};

}  // namespace tamis::server
