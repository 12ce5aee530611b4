// TamisRequest: one HTTP request of this backend, whose answer is read line by line.
//
// All requests of a backend share one libcurl multi handle, which keeps connections alive, and one
// thread, the backend's own. A wait for a socket also ends for the backend's latch, so that Ctrl-C
// and statement_timeout work. Libcurl calls us only to store bytes: no error of PostgreSQL is
// raised below one of its functions. Host names are resolved here, since libcurl would start a
// thread for that.
//
// A request belongs to the memory context in which it was made. When that is reset, after success
// or by an error, the request ends, and with an answer that was not read to its end its connection:
// the server then cancels the statement.
#pragma once

#include "postgres.h"

#include "settings.h"
#include "versions.h"

typedef struct TamisRequest TamisRequest;

typedef struct TamisCall {
  const char* path;
  const char* body;  // NULL: GET; else POST of JSON
  bool is_stream;    // the answer is NDJSON
  bool is_change;    // never sent twice: on a connection of its own, without any retry
} TamisCall;

TamisRequest* TamisBegin(const TamisSettings* settings, TamisCall call);

// The next line of the answer, without its end, NUL-terminated; NULL behind the last one. The line
// is valid until the next call. Raises the error of a failed transfer, or that of the server where
// the status is not 200.
char* TamisNextLine(TamisRequest* request, size_t* length);

// Whether TamisNextLine would not wait.
bool TamisLineIsReady(TamisRequest* request);
// Waits until the request has been sent. The socket that becomes readable with its answer;
// PGINVALID_SOCKET where a line is ready.
int TamisSocketOfSent(TamisRequest* request);

// The rest of the answer, all of it if nothing was read before.
char* TamisWholeAnswer(TamisRequest* request);

// Whether a change may have been made: it was sent, and the server has not refused it.
bool TamisMayHaveRun(const TamisRequest* request);

void TamisEnd(TamisRequest* request);

// Raises the error of a problem document, {"status": 404, "detail": "..."}; `text` may be anything.
void TamisRaiseProblem(const TamisSettings* settings, int status, char* text,
                       bool is_change) TAMIS_NORETURN;
