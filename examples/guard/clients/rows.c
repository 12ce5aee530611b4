/* An application that asks a filter in Redis before its database, with hiredis (docs/GUARD.md).
 *
 * usage: rows SOCKET, then `look_up ID`, `insert ID` and `delete ID` on the standard input */
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* In the place of a database: some rows. */
static char rows[100][32];
static int row_count, asked;

static bool db_find(const char* id) {
  ++asked;
  for (int i = 0; i < row_count; ++i) {
    if (strcmp(rows[i], id) == 0) return true;
  }
  return false;
}
static void db_insert(const char* id) { snprintf(rows[row_count++], sizeof(rows[0]), "%s", id); }
static void db_rollback(void) { --row_count; }
/* How many rows it deleted, as PQcmdTuples tells. */
static int db_delete(const char* id) {
  for (int i = 0; i < row_count; ++i) {
    if (strcmp(rows[i], id) != 0) continue;
    memmove(rows[i], rows[--row_count], sizeof(rows[0]));
    return 1;
  }
  return 0;
}

/* --- as docs/GUARD.md has it --- */
static const char* server;
static redisContext* redis;

/* The reply, or NULL; a connection that broke is opened again the next time, and nothing is sent again. */
static redisReply* ask(int count, const char** words) {
  const struct timeval timeout = {0, 100000};
  if (redis != NULL && redis->err != 0) {
    redisFree(redis);
    redis = NULL;
  }
  if (redis == NULL) redis = redisConnectUnixWithTimeout(server, timeout);
  if (redis == NULL || redis->err != 0) return NULL;
  redisSetTimeout(redis, timeout);
  return redisCommandArgv(redis, count, words, NULL);
}

/* The number, or the first of an array; -1 when there is none, -2 when there is no filter. */
static long long number(redisReply* reply) {
  long long n = -1;
  if (reply == NULL) return -1;
  const redisReply* first = reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 ? reply->element[0] : reply;
  if (first->type == REDIS_REPLY_INTEGER) n = first->integer;
  if (first->type == REDIS_REPLY_ERROR && strstr(first->str, "not found") != NULL) n = -2;
  freeReplyObject(reply);
  return n;
}

static bool look_up(const char* id) {
  redisReply* reply = ask(3, (const char*[]){"TAMIS.CHECK", "items", id});
  if (number(reply) == 0) return false; /* there is no such row */
  return db_find(id);
}

static bool insert(const char* id) {
  db_insert(id); /* in a transaction */
  if (number(ask(3, (const char*[]){"TAMIS.ADD", "items", id})) == -1) {
    db_rollback(); /* full, or the filter could not be changed */
    return false;
  }
  return true; /* commit; without a filter nothing is refused */
}

static void delete(const char* id) {
  char generation[24]; /* before the row goes */
  snprintf(generation, sizeof(generation), "%lld",
           number(ask(2, (const char*[]){"TAMIS.GENERATION", "items"})));
  /* The row count, after the commit. No row went: the key in the filter, if any, belongs to another insert. */
  if (db_delete(id) == 0) return;
  number(ask(4, (const char*[]){"TAMIS.DELIF", "items", generation, id})); /* once */
}
/* --- end --- */

int main(int argc, char** argv) {
  char word[16], id[32];
  if (argc != 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  server = argv[1];
  while (scanf("%15s %31s", word, id) == 2) {
    const int before = asked;
    const char* answer = "none";
    if (strcmp(word, "look_up") == 0 && look_up(id)) answer = "row";
    if (strcmp(word, "insert") == 0 && !insert(id)) answer = "failed";
    if (strcmp(word, "delete") == 0) delete(id);
    printf("%s %s\n", answer, asked > before ? "asked" : "spared");
    fflush(stdout);
  }
  return 0;
}
