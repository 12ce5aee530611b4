// usage: hiredis PORT EVERY_COMMAND. Debian's hiredis speaks RESP2 only.
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kItem[] = "\0\r\n\xff";

static void Fail(const char* what, const redisReply* reply) {
  fprintf(stderr, "%s: type %d, %lld, %s\n", what, reply ? reply->type : -1,
          reply ? reply->integer : 0, reply && reply->str ? reply->str : "");
  exit(1);
}

// Expected: a number, several with blanks between them, or the text of a status or an error.
static void Expect(const char* what, redisReply* reply, const char* expected) {
  char got[256] = "";
  if (reply == NULL) Fail(what, reply);
  if (reply->type == REDIS_REPLY_INTEGER) {
    snprintf(got, sizeof(got), "%lld", reply->integer);
  } else if (reply->type == REDIS_REPLY_ARRAY) {
    for (size_t i = 0; i < reply->elements; ++i) {
      size_t used = strlen(got);
      snprintf(got + used, sizeof(got) - used, i == 0 ? "%lld" : " %lld",
               reply->element[i]->integer);
    }
  } else if (reply->str != NULL) {
    snprintf(got, sizeof(got), "%s", reply->str);
  }
  if (strcmp(got, expected) != 0) {
    fprintf(stderr, "expected %s, got %s\n", expected, got);
    Fail(what, reply);
  }
  freeReplyObject(reply);
}

// Lines of "ok" or "error" and a command.
static void EveryCommand(redisContext* redis, const char* path) {
  FILE* file = fopen(path, "r");
  char line[256];
  if (file == NULL) Fail(path, NULL);
  while (fgets(line, sizeof(line), file) != NULL) {
    char whole[256];
    const char* words[16];
    int count = 0;
    snprintf(whole, sizeof(whole), "%s", line);
    const char* expected = strtok(line, " \n");
    for (const char* word; count < 16 && (word = strtok(NULL, " \n")) != NULL;) words[count++] = word;
    redisReply* reply = redisCommandArgv(redis, count, words, NULL);
    if (reply == NULL || (reply->type == REDIS_REPLY_ERROR) != (strcmp(expected, "error") == 0)) {
      Fail(whole, reply);
    }
    freeReplyObject(reply);
  }
  fclose(file);
}

int main(int count, char** words) {
  redisContext* redis = redisConnect("127.0.0.1", count == 3 ? atoi(words[1]) : 0);
  if (redis == NULL || redis->err) {
    fprintf(stderr, "%s\n", redis ? redis->errstr : "no memory");
    return 1;
  }
  static const struct {
    const char* command;
    const char* reply;
  } kRows[] = {
      {"FLUSHALL", "OK"},
      {"BF.RESERVE b 0.01 1000", "OK"},
      {"BF.RESERVE b 0.01 1000", "ERR item exists"},
      {"BF.ADD b x", "1"},
      {"BF.MADD b x y", "0 1"},
      {"BF.INSERT i CAPACITY 100 ITEMS x", "1"},
      {"BF.EXISTS b absent", "0"},
      {"BF.MEXISTS b x absent", "1 0"},
      {"BF.CARD b", "2"},
      {"CF.RESERVE c 1000", "OK"},
      {"CF.ADD c x", "1"},
      {"CF.ADDNX c x", "0"},
      {"CF.INSERT c ITEMS y z", "1 1"},
      {"CF.INSERTNX c ITEMS y new", "0 1"},
      {"CF.COUNT c x", "1"},
      {"CF.DEL c x", "1"},
      {"TAMIS.RESERVE t 0.01 1000 GUARD", "OK"},
      {"TAMIS.ADD t x y", "1 1"},
      {"TAMIS.CHECK t x", "-1"},
      {"TAMIS.TRUST t", "OK"},
      {"TAMIS.CHECK t x absent", "1 0"},
      {"TAMIS.CHECK none x", "-1"},
      {"TAMIS.DEL t x", "1"},
  };
  const size_t rows = sizeof(kRows) / sizeof(kRows[0]);
  for (size_t i = 0; i < rows; ++i) {
    Expect(kRows[i].command, redisCommand(redis, kRows[i].command), kRows[i].reply);
  }
  // In a pipeline.
  for (size_t i = 0; i < rows; ++i) redisAppendCommand(redis, kRows[i].command);
  for (size_t i = 0; i < rows; ++i) {
    void* reply = NULL;
    if (redisGetReply(redis, &reply) != REDIS_OK) Fail(kRows[i].command, NULL);
    Expect(kRows[i].command, reply, kRows[i].reply);
  }
  Expect("bytes", redisCommand(redis, "TAMIS.ADD t %b", kItem, sizeof(kItem) - 1), "1");
  Expect("bytes", redisCommand(redis, "TAMIS.CHECK t %b", kItem, sizeof(kItem) - 1), "1");
  EveryCommand(redis, words[2]);
  redisFree(redis);
  return 0;
}
