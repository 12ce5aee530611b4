// RowApi: single rows over HTTP, as JSON objects with the columns as members.
//
// A row has an entity tag (entity_tag.h). A change under a condition reads the row, and is carried
// out only if the row still is what was read, which its region server tests together with the
// change; otherwise the row is read again.
//
// Threads: safe. The calls block; they run on workers, and end early when the call is cancelled.
#pragma once

#include "tamis/query/engine.h"
#include "tamis/server/store_calls.h"

namespace tamis::server {

class RowApi {
 public:
  // The engine must outlive this object.
  explicit RowApi(Engine* engine) : engine_(engine) {}

  // A row by its key: the values of the key's columns in the last step of the path, with commas
  // between them.
  Result<Response> Get(StoreCall& call);
  Result<Response> Put(StoreCall& call);  // replaces all of it by the object in the body
  Result<Response> Delete(StoreCall& call);
  // Replaces several: an array of objects, or {"rows": [objects], "if_match": [tags]}.
  Result<Response> Post(StoreCall& call);

 private:
  Engine* const engine_;
};

}  // namespace tamis::server
