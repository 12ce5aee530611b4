#include "tamis/sql/extension.h"

#include "tamis/base/exception_status.h"
#include "tamis/sql/guarded.h"
#include "tamis/sql/sqlite.h"
#include "tamis/sql/table_functions.h"
#include "tamis/sql/table_module.h"

SQLITE_EXTENSION_INIT1

namespace tamis {
namespace {

// sqlite3_vtab_in and its like came with 3.38.
constexpr int kLeastVersion = 3038000;

using SessionPtr = std::shared_ptr<Session>;

// Opens the store for the session and attaches its tables; without all of that, the session has
// none.
Status OpenStoreOf(const SessionPtr& session, sqlite3* db, const std::string& name) {
  if (session->engine != nullptr) {
    return FailedPrecondition(
        "a store is open on this connection; open another one on another "
        "connection");
  }
  if (!session->open) return FailedPrecondition("no store can be opened here");
  const Status status = WithoutExceptions([&]() -> Status {
    TAMIS_ASSIGN_OR_RETURN(SessionStore store, session->open(name));
    session->engine = std::move(store.engine);
    session->admin = std::move(store.admin);
    return AttachTables(db, session);
  });
  if (!status.ok()) {
    session->engine.reset();
    session->admin.reset();
  }
  return status;
}

void Open(sqlite3_context* context, int, sqlite3_value** argv) {
  const auto& session = *static_cast<SessionPtr*>(sqlite3_user_data(context));
  const auto* text = reinterpret_cast<const char*>(sqlite3_value_text(argv[0]));
  const std::string name = text == nullptr ? "" : text;
  const Status status = OpenStoreOf(session, sqlite3_context_db_handle(context), name);
  if (status.ok()) {
    sqlite3_result_text(context, name.c_str(), -1, SQLITE_TRANSIENT);
  } else if (IsOutOfMemory(status)) {
    sqlite3_result_error_nomem(context);
  } else {
    sqlite3_result_error(context, status.message().c_str(), -1);
  }
}

Status Register(sqlite3* db, const SessionPtr& session) {
  if (sqlite3_libversion_number() < kLeastVersion) {
    return FailedPrecondition(std::string("tamis needs SQLite 3.38 or later; this is ") +
                              sqlite3_libversion());
  }
  int rc = RegisterTableModule(db, session);
  if (rc == SQLITE_OK) rc = RegisterTableFunctions(db, session);
  if (rc == SQLITE_OK) {
    rc = sqlite3_create_function_v2(db, "tamis_open", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
                                    new SessionPtr(session), Guarded<Open>, nullptr, nullptr,
                                    [](void* client) { delete static_cast<SessionPtr*>(client); });
  }
  if (rc != SQLITE_OK) {
    return Internal(std::string("cannot extend SQLite: ") + sqlite3_errmsg(db));
  }
  return session->engine == nullptr ? Status::Ok() : AttachTables(db, session);
}

}  // namespace

Status Extend(sqlite3* db, const sqlite3_api_routines* api, std::shared_ptr<Session> session) {
  SQLITE_EXTENSION_INIT2(api);
  return WithoutExceptions([&] { return Register(db, session); });
}

}  // namespace tamis
