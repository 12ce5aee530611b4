/* An application that asks a filter on a server without modules before its database, with hiredis
 * (docs/PLAIN_GUARD.md).
 *
 * usage: rows SOCKET SCRIPT, then `look_up ID`, `insert ID` and `delete ID` on the standard input */
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

/* --- as the page has it --- */
static const char* server;
static const char* script; /* the text of guard.lua */
static redisContext* redis;

/* The answer, or -1: a connection that broke is opened again the next time, and nothing is sent again. */
static long long guard(const char* word, const char* id) {
  const struct timeval timeout = {0, 100000};
  const char* words[] = {"EVAL", script, "4", "{items}:filter", "{items}:trust", "{items}:new", "{items}:rebuild",
                         word, id};
  if (redis != NULL && redis->err != 0) {
    redisFree(redis);
    redis = NULL;
  }
  if (redis == NULL) redis = redisConnectUnixWithTimeout(server, timeout);
  if (redis == NULL || redis->err != 0) return -1;
  redisSetTimeout(redis, timeout);
  redisReply* reply = redisCommandArgv(redis, 9, words, NULL);
  const long long answer = reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
  freeReplyObject(reply);
  return answer;
}

static bool look_up(const char* id) {
  if (guard("check", id) == 0) return false; /* there is no such row */
  return db_find(id);
}

static bool insert(const char* id) {
  db_insert(id); /* in a transaction */
  if (guard("add", id) == -1) {
    db_rollback(); /* the outcome of the add is unknown */
    return false;
  }
  return true; /* commit; without a filter nothing is refused */
}

static void delete(const char* id) {
  db_delete(id); /* the key stays in the filter until the next load, and costs a lookup now and then */
}
/* --- end --- */

int main(int argc, char** argv) {
  static char text[1 << 16];
  char word[16], id[32];
  if (argc != 3) return 2;
  FILE* file = fopen(argv[2], "r");
  if (file == NULL) return 2;
  if (fread(text, 1, sizeof(text) - 1, file) == 0) return 2;
  fclose(file);
  script = text;
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
