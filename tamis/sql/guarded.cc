#include "tamis/sql/guarded.h"

#include "tamis/base/exception_status.h"

namespace tamis::internal {

int ResultOfException(char** error) noexcept {
  const Status status = StatusOfException();
  if (IsOutOfMemory(status)) return SQLITE_NOMEM;
  sqlite3_free(*error);
  *error = sqlite3_mprintf("%s", status.message().c_str());
  return SQLITE_ERROR;
}

void ReportException(sqlite3_context* context) noexcept {
  const Status status = StatusOfException();
  if (IsOutOfMemory(status)) {
    sqlite3_result_error_nomem(context);
  } else {
    sqlite3_result_error(context, status.message().c_str(), -1);
  }
}

}  // namespace tamis::internal
