// The loadable extension: lib/tamis.so.
//
//   sqlite> .load build/release/lib/tamis
//   sqlite> SELECT tamis_open('shop.db');
#include <sqlite3ext.h>

#include "tamis/base/exception_status.h"
#include "tamis/sql/extension.h"
#include "tamis/sql/sqlite.h"
#include "tamis/store/opened_store.h"

extern "C" __attribute__((visibility("default"))) int sqlite3_tamis_init(
    sqlite3* db, char** error, const sqlite3_api_routines* api) {
  const tamis::Status status = tamis::WithoutExceptions([&] {
    auto session = std::make_shared<tamis::Session>();
    session->open = [](const std::string& name) -> tamis::Result<tamis::SessionStore> {
      auto store = tamis::OpenedStore::OpenShared(name, {});
      if (!store.ok()) return store.status();
      return tamis::SessionStore{.engine = {*store, &(*store)->engine()},
                                 .admin = {*store, &(*store)->admin()}};
    };
    return tamis::Extend(db, api, session);
  });
  if (status.ok()) return SQLITE_OK;
  if (tamis::IsOutOfMemory(status)) return SQLITE_NOMEM;
  *error = api->mprintf("%s", status.message().c_str());
  return SQLITE_ERROR;
}
