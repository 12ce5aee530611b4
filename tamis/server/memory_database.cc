#include "tamis/server/memory_database.h"

#include <atomic>
#include <utility>

#include "tamis/sql/extension.h"

namespace tamis::server {
namespace {

// SQLite hands its own functions only to an extension's entry point; these tell it which session
// the connection that is being opened belongs to.
thread_local std::shared_ptr<Session> opening;
thread_local Status opened;

int Entry(sqlite3* db, const char**, const sqlite3_api_routines* api) {
  if (opening == nullptr) return SQLITE_OK;  // a connection that other code in the process opens
  const std::shared_ptr<Session> session = std::move(opening);
  opening = nullptr;
  opened = Extend(db, api, session);
  return opened.ok() ? SQLITE_OK : SQLITE_ERROR;
}

}  // namespace

Status OpenMemoryDatabase(const std::shared_ptr<Session>& session, sqlite3** db) {
  sqlite3_auto_extension(reinterpret_cast<void (*)()>(Entry));
  opening = session;
  const int rc = sqlite3_open(":memory:", db);
  opening = nullptr;
  if (!opened.ok()) return std::exchange(opened, Status::Ok());
  if (rc == SQLITE_NOMEM) return ResourceExhausted(sqlite3_errstr(rc));
  if (rc != SQLITE_OK) return InvalidArgument(sqlite3_errmsg(*db));
  // sqlite3_interrupt would miss a statement that has not begun yet.
  sqlite3_progress_handler(
      *db, 10'000,
      [](void* cancelled) -> int { return static_cast<std::atomic<bool>*>(cancelled)->load(); },
      &session->cancelled);
  return Status::Ok();
}

}  // namespace tamis::server
