// Errors over HTTP: problem documents of RFC 9457.
#pragma once

#include <cstdint>
#include <string>

#include "tamis/base/status.h"
#include "tamis/server/exchange.h"

namespace tamis::server {

// The HTTP status of an error.
int HttpStatusOf(StatusCode code);
// {"type": "about:blank", "title": ..., "status": ..., "code": ..., "detail": the message}.
std::string ProblemText(int http_status, const Status& status);
Response Problem(int http_status, const Status& status);
// The same with the member "process", the number of this server in hexadecimal.
Response ProblemOfProcess(uint64_t process, int http_status, const Status& status);
inline Response Problem(const Status& status) {
  return Problem(HttpStatusOf(status.code()), status);
}

}  // namespace tamis::server
