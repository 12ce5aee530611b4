// The filters of Tamis from C, and from every language that calls C.
//
// A filter is an approximate set of byte strings. It answers "certainly not" or "perhaps", and
// never "not" for a key that is in it. One opaque handle stands for all types; docs/FILTERS.md
// helps to choose one.
//
//   tamis_filter_options options = {.type = "cuckoo", .capacity = 1000000, .fpr = 0.001};
//   tamis_filter* names = NULL;
//   if (tamis_filter_create(&options, &names) != TAMIS_OK) puts(tamis_last_error());
//   tamis_filter_insert(names, "ada", 3);
//   if (!tamis_filter_may_contain(names, "bob", 3)) puts("bob is certainly not in it");
//   tamis_filter_save(names, "names.filter");
//   tamis_filter_free(names);
//
//   Keys      any bytes, hashed here with the filter's seed; the empty string is a key, too
//   Answers   0 is certain. Any other value, an error included, means: look it up
//   Errors    a tamis_code tells what to do next, tamis_last_error() what went wrong with what.
//             Pointers that must not be NULL are checked. Nothing is thrown, nothing printed.
//   Threads   functions that take a const filter may run concurrently; others need the filter for
//             themselves. Filters share nothing. tamis_last_error() is the calling thread's own
//   Memory    the caller frees each filter that it made or read (tamis_filter_free), and serialized
//             bytes (tamis_bytes_free)
//   Bytes     those of the C++ library and of the command `tamis filter`: docs/FORMATS.md
#ifndef TAMIS_FILTER_H_
#define TAMIS_FILTER_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TAMIS_API __attribute__((visibility("default")))
#else
#define TAMIS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- errors --------------------------------------------------------------------------------------

typedef enum tamis_code {
  TAMIS_OK = 0,
  TAMIS_INVALID_ARGUMENT = 1,     // the call is wrong: change it
  TAMIS_NOT_FOUND = 2,            // there is no such file, or the key is not in the filter
  TAMIS_FAILED_PRECONDITION = 4,  // the state forbids it, or the type of filter does
  TAMIS_DATA_LOSS = 9,            // the bytes are damaged, or those of something else
  TAMIS_RESOURCE_EXHAUSTED = 10,  // the filter, the memory or the disk is full: make room
  TAMIS_INTERNAL = 11             // a fault of this library
} tamis_code;

// Why the last call of this thread that failed did so: "cannot ...", in English, never NULL. Valid
// until the thread's next call that fails.
TAMIS_API const char* tamis_last_error(void);

// --- types ---------------------------------------------------------------------------------------

typedef struct tamis_filter_type {
  const char* name;  // "blocked", "cuckoo", ...
  int erases;        // 1: keys can be erased
  // How often one key can be inserted and erased again; 0 when the type does not erase. A key that
  // is inserted more often stays for good and takes no more room.
  uint32_t copies;
  const char* summary;  // one line
  int fixed;            // 1: it is built from all its keys at once and never changed
} tamis_filter_type;

// The type with this index, in order of preference, memory aside; NULL when there are no more. It
// is never freed.
TAMIS_API const tamis_filter_type* tamis_filter_type_at(size_t index);

// --- a filter's life -----------------------------------------------------------------------------

typedef struct tamis_filter tamis_filter;

typedef struct tamis_filter_options {
  const char* type;   // a tamis_filter_type's name
  uint64_t capacity;  // keys that it holds at the rate below, 1 to 2^31
  double fpr;         // false-positive rate when it holds that many, 1e-9 to 0.5
  uint64_t seed;  // the hash's seed: 0 will do, tamis_random_seed() where strangers choose the keys
} tamis_filter_options;

typedef struct tamis_key {
  const void* data;
  size_t size;
} tamis_key;

// A seed drawn from the operating system. It stops collisions that were prepared in advance, but
// not an attacker who can watch a filter's answers for long: the hash, XXH3, is not a keyed one.
TAMIS_API uint64_t tamis_random_seed(void);

// Each of these puts a new filter into *filter, or NULL when it fails.
TAMIS_API tamis_code tamis_filter_create(const tamis_filter_options* options,
                                         tamis_filter** filter);
// Builds from all keys at once, repeated keys counting once: the only way to make a fixed type.
// Other types get room for the options' capacity or for all keys, whichever is more.
TAMIS_API tamis_code tamis_filter_build(const tamis_filter_options* options, const tamis_key* keys,
                                        size_t count, tamis_filter** filter);
// Reads a file into memory and checks all of it; the file is not used afterwards. A file that is
// changed or cut meanwhile gives an error.
TAMIS_API tamis_code tamis_filter_load(const char* path, tamis_filter** filter);
// Maps a file, in an instant whatever its size. Only its header is checked; damage behind it gives
// wrong answers, nothing worse. The file may be replaced, but must not be changed or cut in place,
// while it is mapped. The first change of the filter copies it into memory; the file is changed by
// tamis_filter_save alone.
TAMIS_API tamis_code tamis_filter_map(const char* path, tamis_filter** filter);
// Reads bytes and checks all of them; they are not used afterwards.
TAMIS_API tamis_code tamis_filter_deserialize(const void* bytes, size_t size,
                                              tamis_filter** filter);

TAMIS_API void tamis_filter_free(tamis_filter* filter);  // NULL is nothing to free

// Replaces the file as a whole: whatever happens, it holds the old bytes or the new ones. Follows
// symbolic links; TAMIS_FAILED_PRECONDITION when there is something else than a regular file.
TAMIS_API tamis_code tamis_filter_save(const tamis_filter* filter, const char* path);
// The caller frees *bytes with tamis_bytes_free; it is NULL, and the size 0, when it fails.
TAMIS_API tamis_code tamis_filter_serialize(const tamis_filter* filter, void** bytes, size_t* size);
TAMIS_API void tamis_bytes_free(void* bytes);

// --- one key -------------------------------------------------------------------------------------

// TAMIS_RESOURCE_EXHAUSTED, and nothing is changed, when the filter is full;
// TAMIS_FAILED_PRECONDITION when its type is a fixed one.
TAMIS_API tamis_code tamis_filter_insert(tamis_filter* filter, const void* key, size_t size);
// TAMIS_NOT_FOUND, and nothing is changed, when the key is not in it. TAMIS_FAILED_PRECONDITION
// when its type does not erase, or when the filter has several layers and more than one of them may
// hold the key: rebuild the filter to make the key erasable again. REQUIRES: the key was inserted
// more often than erased. Erasing a key that was never inserted may erase another key's copy.
TAMIS_API tamis_code tamis_filter_erase(tamis_filter* filter, const void* key, size_t size);
// 0: certainly not. 1: perhaps. -1: an error (a NULL was passed).
TAMIS_API int tamis_filter_may_contain(const tamis_filter* filter, const void* key, size_t size);

// --- many keys: with most types faster than one by one, since memory is fetched ahead ------------

// Inserts from the front until one is refused; *inserted, unless NULL, is how many were inserted.
TAMIS_API tamis_code tamis_filter_insert_many(tamis_filter* filter, const tamis_key* keys,
                                              size_t count, size_t* inserted);
// Tries all; erased[i], unless erased is NULL, is 1 or 0. When one of them is 0, the answer is as
// that of tamis_filter_erase.
TAMIS_API tamis_code tamis_filter_erase_many(tamis_filter* filter, const tamis_key* keys,
                                             size_t count, uint8_t* erased);
// answers[i] is 1 (perhaps) or 0 (certainly not).
TAMIS_API tamis_code tamis_filter_may_contain_many(const tamis_filter* filter,
                                                   const tamis_key* keys, size_t count,
                                                   uint8_t* answers);

// --- the whole -----------------------------------------------------------------------------------

// Afterwards `filter` holds the keys of both. TAMIS_INVALID_ARGUMENT unless they are two filters of
// the same type, options and seed; TAMIS_RESOURCE_EXHAUSTED when the keys do not fit. Nothing is
// changed when it fails.
TAMIS_API tamis_code tamis_filter_merge(tamis_filter* filter, const tamis_filter* other);
TAMIS_API tamis_code tamis_filter_clear(tamis_filter* filter);  // not of a fixed type

typedef struct tamis_filter_info {
  const tamis_filter_type* type;
  uint64_t count;       // keys inserted and not erased, repeated ones too
  uint64_t size_bytes;  // bytes of memory
  uint64_t seed;
} tamis_filter_info;

TAMIS_API tamis_code tamis_filter_describe(const tamis_filter* filter, tamis_filter_info* info);
// The false-positive rate as the filter is now. Reads all of some types. Not a number, and an error
// is set, for NULL.
TAMIS_API double tamis_filter_expected_fpr(const tamis_filter* filter);

#ifdef __cplusplus
}
#endif

#endif  // TAMIS_FILTER_H_
