/* A database of RocksDB's C functions with one filter for all its files: of 3,000 lookups those
 * that ask for absent keys read nothing.
 *
 *   rocksdb_filter DIRECTORY
 */
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tamis/lsm.h>

static void check(char* error) {
  if (error == NULL) return;
  fprintf(stderr, "rocksdb_filter: %s\n", error);
  free(error);
  exit(1);
}

static size_t key_of(int number, char* key) { return (size_t)sprintf(key, "key-%06d", number); }

/* How many of the keys of these numbers are there. */
static int count(rocksdb_t* db, int first, int last) {
  rocksdb_readoptions_t* read = rocksdb_readoptions_create();
  int found = 0;
  for (int i = first; i < last; ++i) {
    char key[16];
    char* error = NULL;
    size_t size;
    char* value = rocksdb_get(db, read, key, key_of(i, key), &size, &error);
    check(error);
    found += value != NULL;
    free(value);
  }
  rocksdb_readoptions_destroy(read);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  tamis_lsm_t* filter = tamis_lsm_create(options, argv[1], 0.003, &error);
  check(error);
  tamis_lsm_attach(filter, options);
  rocksdb_t* db = rocksdb_open(options, argv[1], &error);
  check(error);
  tamis_lsm_start(filter, db, NULL, 0, &error);
  check(error);
  tamis_lsm_wait(filter);

  rocksdb_writeoptions_t* write = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  for (int i = 0; i < 1000; ++i) {
    char key[16];
    rocksdb_put(db, write, key, key_of(i, key), "value", 5, &error);
    check(error);
    if (i % 250 == 249) {
      rocksdb_flush(db, flush, &error);
      check(error);
    }
  }
  const int there = count(db, 0, 1000);
  const int absent = count(db, 1000, 3000);
  uint64_t excluded = 0;
  if (rocksdb_property_int(db, "tamis.lsm.excluded", &excluded) != 0) return 1;
  printf("%d of 1000 keys found, %d of 2000 absent ones; the filter excluded %s\n", there, absent,
         excluded > 1950 ? "nearly all of these" : "too few of these");
  const int is_denied = !tamis_lsm_may_contain(filter, db, NULL, "key-", 4);

  rocksdb_writeoptions_destroy(write);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  tamis_lsm_destroy(filter);
  return there == 1000 && absent == 0 && excluded > 1950 && is_denied ? 0 : 1;
}
