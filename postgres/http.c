#include "http.h"

#include <curl/curl.h>
#include <netdb.h>

#include "common/ip.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "json.h"
#include "table.h"

struct TamisRequest {
  const TamisSettings* settings;
  MemoryContextCallback callback;
  CURL* easy;
  struct curl_slist* headers;
  struct curl_slist* addresses;
  size_t limit;  // bytes that came and were not taken, at most
  bool is_change;
  bool is_checked;  // the status is 200
  bool is_refused;  // the status is another one
  int64 begun_ms;
  int refusals;
  bool done;
  bool paused;
  bool out_of_memory;
  bool is_too_long;  // a line
  CURLcode result;   // once it is done
  char problem[CURL_ERROR_SIZE];
  char* buffer;
  size_t capacity;
  size_t read;       // where the next line begins
  size_t written;    // where the next byte is stored
  size_t lines_end;  // after the last line that is complete
  uint64 received;   // bytes of the answer
};

typedef struct Watched {
  curl_socket_t socket;
  CURL* easy;  // the handle of the transfer that it carries
  int what;    // CURL_POLL_IN and so on
} Watched;

static CURLM* multi = NULL;
static Watched* watched = NULL;
static int watched_count = 0;
static int64 deadline_ms = -1;  // when libcurl wants to be called; -1: never

static int64 NowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// ---- Called by libcurl: they raise no errors.

static size_t StoreBytes(char* bytes, size_t size, size_t count, void* client) {
  TamisRequest* request = client;
  const size_t length = size * count;
  if (request->written - request->read > request->limit && request->lines_end > request->read) {
    request->paused = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (request->written - request->read + length > MaxAllocSize) {
    request->is_too_long = true;
    return 0;
  }
  if (request->read > 0 && request->read >= request->capacity / 2) {
    memmove(request->buffer, request->buffer + request->read, request->written - request->read);
    request->written -= request->read;
    request->lines_end -= Min(request->lines_end, request->read);
    request->read = 0;
  }
  if (request->written + length + 1 > request->capacity) {
    const size_t capacity = Max(request->capacity * 2, request->written + length + 4096);
    char* buffer = realloc(request->buffer, capacity);
    if (buffer == NULL) {
      request->out_of_memory = true;
      return 0;
    }
    request->buffer = buffer;
    request->capacity = capacity;
  }
  memcpy(request->buffer + request->written, bytes, length);
  request->written += length;
  request->received += length;
  for (size_t at = request->written; at > request->written - length; --at) {
    if (request->buffer[at - 1] == '\n') {
      request->lines_end = at;
      break;
    }
  }
  return length;
}

static int WatchSocket(CURL* easy, curl_socket_t socket, int what, void* client, void* own) {
  int at = 0;
  while (at < watched_count && watched[at].socket != socket) ++at;
  if (what == CURL_POLL_REMOVE) {
    if (at < watched_count) watched[at] = watched[--watched_count];
    return 0;
  }
  if (at == watched_count) {
    Watched* more = realloc(watched, sizeof(Watched) * (watched_count + 1));
    if (more == NULL) return -1;
    watched = more;
    ++watched_count;
  }
  watched[at].socket = socket;
  watched[at].easy = easy;
  watched[at].what = what;
  return 0;
}

static int SetTimer(CURLM* handle, long timeout_ms, void* client) {
  deadline_ms = timeout_ms < 0 ? -1 : NowMs() + timeout_ms;
  return 0;
}

// ---- The event loop

static void NoteEndedTransfers(void) {
  int left = 0;
  CURLMsg* message;
  while ((message = curl_multi_info_read(multi, &left)) != NULL) {
    TamisRequest* request = NULL;
    if (message->msg != CURLMSG_DONE) continue;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &request);
    request->done = true;
    request->result = message->data.result;
  }
}

static void Act(curl_socket_t socket, int what) {
  int running = 0;
  curl_multi_socket_action(multi, socket, what, &running);
}

// The sockets of other transfers are left alone: what has come for them makes their sockets ready,
// for which an Append may wait.
static WaitEventSet* MakeWaitSet(const TamisRequest* request) {
#if PG_VERSION_NUM >= 170000
  WaitEventSet* set = CreateWaitEventSet(NULL, watched_count + 2);
#else
  WaitEventSet* set = CreateWaitEventSet(CurrentMemoryContext, watched_count + 2);
#endif
  AddWaitEventToSet(set, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
  if (IsUnderPostmaster) {
    AddWaitEventToSet(set, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
  }
  for (int i = 0; i < watched_count; ++i) {
    if (watched[i].easy != request->easy) continue;
    const uint32 events = ((watched[i].what & CURL_POLL_IN) != 0 ? WL_SOCKET_READABLE : 0) |
                          ((watched[i].what & CURL_POLL_OUT) != 0 ? WL_SOCKET_WRITEABLE : 0);
    if (events != 0) AddWaitEventToSet(set, events, watched[i].socket, NULL, NULL);
  }
  return set;
}

// Waits until something happens to the transfer, and lets libcurl act on it.
static void WaitForTransfer(const TamisRequest* request) {
  WaitEvent events[8];
  int count = 0;
  CHECK_FOR_INTERRUPTS();
  const int64 rest = deadline_ms < 0 ? -1 : Max(deadline_ms - NowMs(), 0);
  if (rest != 0) {
    WaitEventSet* set = MakeWaitSet(request);
    count = WaitEventSetWait(set, (long)rest, events, lengthof(events), PG_WAIT_EXTENSION);
    FreeWaitEventSet(set);
  }
  for (int i = 0; i < count; ++i) {
    if ((events[i].events & WL_LATCH_SET) != 0) {
      ResetLatch(MyLatch);
      continue;
    }
    Act(events[i].fd, ((events[i].events & WL_SOCKET_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
                          ((events[i].events & WL_SOCKET_WRITEABLE) != 0 ? CURL_CSELECT_OUT : 0));
  }
  if (deadline_ms >= 0 && NowMs() >= deadline_ms) {
    deadline_ms = -1;
    Act(CURL_SOCKET_TIMEOUT, 0);
  }
  NoteEndedTransfers();
}

static void MakeMulti(void) {
  if (multi != NULL) return;
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (multi = curl_multi_init()) == NULL) {
    ereport(ERROR, (errcode(ERRCODE_FDW_OUT_OF_MEMORY), errmsg("cannot start libcurl")));
  }
  curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, WatchSocket);
  curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, SetTimer);
  curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, 8L);
}

// ---- Requests

void TamisEnd(TamisRequest* request) {
  if (request->easy != NULL) {
    // The rest of an answer that has come already is taken, so that its connection is kept.
    if (!request->done && !request->paused) {
      Act(CURL_SOCKET_TIMEOUT, 0);
      for (int i = 0; i < watched_count && !request->done; ++i) {
        Act(watched[i].socket, 0);
        NoteEndedTransfers();
      }
    }
    curl_multi_remove_handle(multi, request->easy);
    curl_easy_cleanup(request->easy);
    request->easy = NULL;
  }
  curl_slist_free_all(request->headers);
  curl_slist_free_all(request->addresses);
  free(request->buffer);
  request->headers = NULL;
  request->addresses = NULL;
  request->buffer = NULL;
}

static void EndInCallback(void* request) { TamisEnd(request); }

static void RaiseOutOfMemory(void) {
  ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory for a request")));
}

static void AddHeader(TamisRequest* request, const char* header) {
  struct curl_slist* more = curl_slist_append(request->headers, header);
  if (more == NULL) RaiseOutOfMemory();
  request->headers = more;
}

static bool IsAddress(const char* host) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST};
  struct addrinfo* found = NULL;
  if (getaddrinfo(host, NULL, &hints, &found) != 0) return false;
  freeaddrinfo(found);
  return true;
}

static void AppendAddresses(StringInfo out, const struct addrinfo* found) {
  const char* separator = "";
  for (; found != NULL; found = found->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof(text), NULL, 0,
                    NI_NUMERICHOST) != 0) {
      continue;
    }
    appendStringInfo(out, found->ai_family == AF_INET6 ? "%s[%s]" : "%s%s", separator, text);
    separator = ",";
  }
}

// The addresses of the URL's host, as libcurl wants them: "host:port:address,address".
static void ResolveHost(TamisRequest* request) {
  const char* url = request->settings->url;
  const bool is_tls = strncmp(url, "https://", 8) == 0;
  char* host = pstrdup(url + (is_tls ? 8 : 7));
  host[strcspn(host, "/")] = '\0';
  if (*host == '[') return;  // IPv6
  char* port = strchr(host, ':');
  if (port != NULL) *port++ = '\0';
  if (IsAddress(host)) return;
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  const int code = getaddrinfo(host, NULL, &hints, &found);
  if (code != 0) {
    ereport(ERROR, (errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
                    errmsg("server \"%s\": cannot find host \"%s\": %s",
                           request->settings->server_name, host, gai_strerror(code))));
  }
  StringInfoData entry;
  initStringInfo(&entry);
  appendStringInfo(&entry, "%s:%s:", host, port != NULL ? port : is_tls ? "443" : "80");
  AppendAddresses(&entry, found);
  freeaddrinfo(found);
  request->addresses = curl_slist_append(NULL, entry.data);
  if (request->addresses == NULL ||
      curl_easy_setopt(request->easy, CURLOPT_RESOLVE, request->addresses) != CURLE_OK) {
    RaiseOutOfMemory();
  }
}

#define SET(option, ...)                                                        \
  do {                                                                          \
    const CURLcode code = curl_easy_setopt(request->easy, option, __VA_ARGS__); \
    if (code != CURLE_OK) RaiseUnusable(curl_easy_strerror(code));              \
  } while (false)

static void RaiseUnusable(const char* why) {
  ereport(ERROR, (errcode(ERRCODE_FDW_ERROR), errmsg("libcurl cannot make a request: %s", why)));
}

static void AddToMulti(TamisRequest* request) {
  const CURLMcode code = curl_multi_add_handle(multi, request->easy);
  if (code != CURLM_OK) RaiseUnusable(curl_multi_strerror(code));
}

static size_t LimitOf(const TamisSettings* settings) {
  return Min((size_t)settings->buffer_kb * 1024, MaxAllocSize / 2);
}

static void SetOptions(TamisRequest* request, TamisCall call) {
  const TamisSettings* settings = request->settings;
  SET(CURLOPT_URL, psprintf("%s%s", settings->url, call.path));
  SET(CURLOPT_PRIVATE, request);
  SET(CURLOPT_WRITEFUNCTION, StoreBytes);
  SET(CURLOPT_WRITEDATA, request);
  SET(CURLOPT_ERRORBUFFER, request->problem);
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_PROXY, "");
  SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  SET(CURLOPT_PROTOCOLS_STR, "http,https");
  SET(CURLOPT_TCP_KEEPALIVE, 1L);
  SET(CURLOPT_CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms);
  if (settings->ca != NULL) SET(CURLOPT_CAINFO, settings->ca);
  if (settings->cert != NULL) {
    SET(CURLOPT_SSLCERT, settings->cert);
    SET(CURLOPT_SSLKEY, settings->key);
  }
  // Libcurl sends a request again when a kept connection turns out to be closed.
  if (call.is_change) SET(CURLOPT_FRESH_CONNECT, 1L);
  // PostgreSQL has ended statement_timeout before COMMIT sends the changes.
  if (call.is_change) SET(CURLOPT_TIMEOUT_MS, (long)settings->change_timeout_ms);
  if (settings->token != NULL)
    AddHeader(request, psprintf("Authorization: Bearer %s", settings->token));
  if (call.body != NULL) {
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(call.body));
    SET(CURLOPT_COPYPOSTFIELDS, call.body);
    AddHeader(request, "Content-Type: application/json");
    AddHeader(request, "Expect:");
  }
  AddHeader(request, call.is_stream ? "Accept: application/x-ndjson" : "Accept: application/json");
  SET(CURLOPT_HTTPHEADER, request->headers);
}

TamisRequest* TamisBegin(const TamisSettings* settings, TamisCall call) {
  MakeMulti();
  TamisRequest* request = palloc0(sizeof(TamisRequest));
  request->settings = settings;
  request->is_change = call.is_change;
  request->begun_ms = NowMs();
  request->limit = LimitOf(settings);
  request->callback.func = EndInCallback;
  request->callback.arg = request;
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &request->callback);
  request->easy = curl_easy_init();
  if (request->easy == NULL) RaiseOutOfMemory();
  SetOptions(request, call);
  ResolveHost(request);
  AddToMulti(request);
  return request;
}

static void RaiseTransferError(TamisRequest* request) {
  curl_off_t sent_at = 0;
  curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
  const char* problem = request->out_of_memory        ? "out of memory"
                        : request->is_too_long        ? "a line of it is longer than 1 GB"
                        : request->problem[0] != '\0' ? request->problem
                                                      : curl_easy_strerror(request->result);
  if (sent_at == 0) {
    ereport(ERROR, (errcode(ERRCODE_FDW_UNABLE_TO_ESTABLISH_CONNECTION),
                    errmsg("cannot reach server \"%s\" at %s: %s", request->settings->server_name,
                           request->settings->url, problem)));
  }
  if (request->is_change) {
    ereport(ERROR, (errcode(ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN),
                    errmsg("server \"%s\" did not answer: the outcome of the change is unknown",
                           request->settings->server_name),
                    errdetail("%s", problem),
                    errhint("It may have been made. Read the rows before you repeat it.")));
  }
  if (request->out_of_memory) RaiseOutOfMemory();
  ereport(ERROR,
          (errcode(ERRCODE_CONNECTION_FAILURE), errmsg("the answer of server \"%s\" was cut: %s",
                                                       request->settings->server_name, problem)));
}

static int SqlStateOf(int status, const char* detail) {
  switch (status) {
    case 401:
    case 403:
      return ERRCODE_INSUFFICIENT_PRIVILEGE;
    case 404:
      return ERRCODE_FDW_TABLE_NOT_FOUND;
    case 409:
      return ERRCODE_UNIQUE_VIOLATION;
    case 503:
      return ERRCODE_CANNOT_CONNECT_NOW;
    case 504:
      return ERRCODE_QUERY_CANCELED;
    case 507:
      return ERRCODE_FDW_OUT_OF_MEMORY;
    default:
      return strstr(detail, "changed by another client") != NULL ? ERRCODE_T_R_SERIALIZATION_FAILURE
                                                                 : ERRCODE_FDW_ERROR;
  }
}

void TamisRaiseProblem(const TamisSettings* settings, int status, char* text, bool is_change) {
  Jsonb* document = TamisReadDocument(text);
  char* detail = document == NULL ? NULL : TamisTextMember(&document->root, "detail");
  char* code = document == NULL ? NULL : TamisTextMember(&document->root, "code");
  if (document != NULL) {
    status = (int)TamisNumberMember(&document->root, "status", status);
  }
  if (detail == NULL) {
    ereport(ERROR,
            (errcode(is_change ? ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN : ERRCODE_FDW_ERROR),
             errmsg("server \"%s\" answered with status %d, which is not how tamis serve answers",
                    settings->server_name, status),
             is_change ? errdetail("A proxy may have answered: the outcome of the change is "
                                   "unknown.")
                       : 0,
             errhint("Look at the option \"url\": %s.", settings->url)));
  }
  if (status == 409 && strstr(detail, "created again") != NULL) {
    // Plans, also those of prepared statements, were made for the table before.
    TamisForgetTables();
    InvalidateSystemCaches();
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("server \"%s\": %s", settings->server_name, detail),
                    errhint("Run the statement again.")));
  }
  // "busy" is said before a statement begins.
  const bool is_unknown =
      is_change && (status == 499 || status == 500 || status == 504 || status == 507 ||
                    (status == 503 && (code == NULL || strcmp(code, "busy") != 0)));
  ereport(
      ERROR,
      (errcode(is_unknown ? ERRCODE_TRANSACTION_RESOLUTION_UNKNOWN : SqlStateOf(status, detail)),
       errmsg("server \"%s\": %s", settings->server_name, detail),
       is_unknown ? errhint("The outcome of the change is unknown: it may have been made. Read "
                            "the rows before you repeat it.")
                  : 0,
       status == 401 ? errhint("CREATE USER MAPPING ... OPTIONS (token '...') or (token_file "
                               "'...').")
                     : 0));
}

// Waits until a byte of the answer is here, or its end.
static void AwaitMore(TamisRequest* request) {
  const uint64 received = request->received;
  if (request->paused) {
    request->paused = false;
    curl_easy_pause(request->easy, CURLPAUSE_CONT);
    NoteEndedTransfers();
  }
  while (!request->done && request->received == received) WaitForTransfer(request);
}

// Reads the whole problem document.
static void AwaitEnd(TamisRequest* request) {
  request->limit = MaxAllocSize;  // no line is taken before the end
  while (!request->done) AwaitMore(request);
  if (request->buffer == NULL) RaiseTransferError(request);
  request->buffer[request->written] = '\0';
}

// Whether the server has refused the request before it began anything, since it has too much to do.
static bool IsBusy(TamisRequest* request, int status) {
  if (status != 503) return false;
  Jsonb* document = TamisReadDocument(request->buffer + request->read);
  const char* code = document == NULL ? NULL : TamisTextMember(&document->root, "code");
  return code != NULL && strcmp(code, "busy") == 0;
}

// Sends a request that was refused again, after a pause that grows.
static void Repeat(TamisRequest* request) {
  const int pause_ms = Min(10 << Min(request->refusals, 6), 500) + MyProcPid % 10;
  ++request->refusals;
  for (const int64 end = NowMs() + pause_ms; NowMs() < end;) {
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, (long)(end - NowMs()) + 1,
              PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
  }
  curl_multi_remove_handle(multi, request->easy);
  request->read = request->written = request->lines_end = 0;
  request->received = 0;
  request->done = request->paused = request->is_refused = false;
  request->limit = LimitOf(request->settings);
  AddToMulti(request);
}

static void CheckStatus(TamisRequest* request) {
  while (!request->is_checked) {
    long status = 0;
    if (!request->done && request->received == 0) AwaitMore(request);
    curl_easy_getinfo(request->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 0 && status != 200) {
      AwaitEnd(request);
      request->is_refused = true;
      if (!IsBusy(request, (int)status) ||
          NowMs() - request->begun_ms >= request->settings->connect_timeout_ms) {
        TamisRaiseProblem(request->settings, (int)status, request->buffer + request->read,
                          request->is_change);
      }
      Repeat(request);
      continue;
    }
    request->is_checked = true;
  }
}

bool TamisMayHaveRun(const TamisRequest* request) {
  curl_off_t sent_at = 0;
  if (request->easy == NULL || request->is_refused) return false;
  curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
  return sent_at > 0;
}

static bool HasLine(const TamisRequest* request) {
  return request->done || request->lines_end > request->read;
}

bool TamisLineIsReady(TamisRequest* request) {
  if (HasLine(request)) return true;
  if (request->paused) {
    request->paused = false;
    curl_easy_pause(request->easy, CURLPAUSE_CONT);
  }
  for (int i = 0; i < watched_count; ++i) {
    if (watched[i].easy == request->easy) {
      Act(watched[i].socket, 0);
      break;
    }
  }
  NoteEndedTransfers();
  return HasLine(request);
}

int TamisSocketOfSent(TamisRequest* request) {
  curl_off_t sent_at = 0;
  while (true) {
    curl_easy_getinfo(request->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_at);
    for (int i = 0; sent_at > 0 && i < watched_count; ++i) {
      if (watched[i].easy == request->easy && watched[i].what == CURL_POLL_IN) {
        return watched[i].socket;
      }
    }
    if (HasLine(request)) return PGINVALID_SOCKET;
    WaitForTransfer(request);
  }
}

char* TamisNextLine(TamisRequest* request, size_t* length) {
  CheckStatus(request);
  size_t searched = request->read;
  while (true) {
    char* line = request->buffer + request->read;
    char* end = request->written > searched
                    ? memchr(request->buffer + searched, '\n', request->written - searched)
                    : NULL;
    if (end != NULL) {
      *end = '\0';
      *length = end - line;
      request->read += *length + 1;
      return line;
    }
    if (request->done) break;
    searched = request->written - request->read;
    AwaitMore(request);
    searched += request->read;
  }
  if (request->result != CURLE_OK) RaiseTransferError(request);
  if (request->read == request->written) return NULL;
  char* line = request->buffer + request->read;
  *length = request->written - request->read;
  line[*length] = '\0';
  request->read = request->written;
  return line;
}

char* TamisWholeAnswer(TamisRequest* request) {
  StringInfoData answer;
  initStringInfo(&answer);
  size_t length = 0;
  char* line;
  while ((line = TamisNextLine(request, &length)) != NULL) {
    appendBinaryStringInfo(&answer, line, length);
    appendStringInfoChar(&answer, '\n');
  }
  return answer.data;
}
