/* One filter for a whole RocksDB, for programs that use RocksDB through its C functions
 * (rocksdb/c.h): C, and what is built on them in Go, Rust, Python and others.
 *
 *   char* error = NULL;
 *   tamis_lsm_t* filter = tamis_lsm_create(options, "/path/of/the/database", 0.003, &error);
 *   tamis_lsm_attach(filter, options);
 *   rocksdb_t* db = rocksdb_open(options, "/path/of/the/database", &error);
 *   tamis_lsm_start(filter, db, NULL, 0, &error);
 *   ...  rocksdb_get, rocksdb_multi_get, ... as before
 *   rocksdb_close(db);
 *   tamis_lsm_destroy(filter);
 *
 * From tamis_lsm_start on, the reads of `db` ask the filter first; nothing else of the program
 * changes. The library must be compiled for the version of RocksDB that the program is linked with,
 * and both must use the same shared library of RocksDB; tamis_lsm_create refuses another version.
 *
 * Errors are returned as in rocksdb/c.h: *errptr, which must be NULL before the call, is set to a
 * message that the caller frees with free(). No exception leaves a function. Threads: any thread
 * may call tamis_lsm_may_contain and tamis_lsm_wait; the other functions one at a time.
 */
#ifndef TAMIS_LSM_H_
#define TAMIS_LSM_H_

#include <rocksdb/c.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TAMIS_LSM_API __attribute__((visibility("default")))

typedef struct tamis_lsm_t tamis_lsm_t;

/* Makes a filter for one opening of the database in `path`. `fpr` is the rate of false positives,
 * such as 0.003. The key files go into the directory tamis.keys of the database, through the Env of
 * `options`. Returns NULL with an error. */
TAMIS_LSM_API tamis_lsm_t* tamis_lsm_create(const rocksdb_options_t* options, const char* path,
                                            double fpr, char** errptr);
/* Attaches the filter to options, before the database is opened: to those of the database and those
 * of each column family. Where some were left out, every key passes through, and the property
 * "tamis.lsm" says why. */
TAMIS_LSM_API void tamis_lsm_attach(tamis_lsm_t* filter, rocksdb_options_t* options);
/* Puts the filter before a database that was opened with options to which it was attached.
 * `families`: the handles that rocksdb_open_column_families gave; none for rocksdb_open. The files
 * are counted in the background; until then every key passes through. Call it once, before other
 * threads use `db`; a second call is an error. After an error `db` is unchanged: its reads do not
 * ask the filter. Not for a database that rocksdb_transactiondb_open or
 * rocksdb_optimistictransactiondb_open has opened, which is another structure. */
TAMIS_LSM_API void tamis_lsm_start(tamis_lsm_t* filter, rocksdb_t* db,
                                   rocksdb_column_family_handle_t* const* families, size_t count,
                                   char** errptr);
/* Blocks until all files are counted. REQUIRES: tamis_lsm_start succeeded. */
TAMIS_LSM_API void tamis_lsm_wait(tamis_lsm_t* filter);
/* 0: the key is certainly not there; 1: perhaps. `family`: NULL for the default one. */
TAMIS_LSM_API unsigned char tamis_lsm_may_contain(const tamis_lsm_t* filter, const rocksdb_t* db,
                                                  const rocksdb_column_family_handle_t* family,
                                                  const char* key, size_t length);
/* Call it after rocksdb_close. */
TAMIS_LSM_API void tamis_lsm_destroy(tamis_lsm_t* filter);

#ifdef __cplusplus
}
#endif

#endif /* TAMIS_LSM_H_ */
