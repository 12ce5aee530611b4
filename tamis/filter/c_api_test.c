// The C API as a C program uses it: every type through its life, every error with its message.
#define _XOPEN_SOURCE 700

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tamis/filter.h"

#define CHECK(condition)                                                                       \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      fprintf(stderr, "%s:%d: not so: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, \
              tamis_last_error());                                                             \
      exit(1);                                                                                 \
    }                                                                                          \
  } while (0)
#define CHECK_FAILS(code, words, call)                  \
  do {                                                  \
    CHECK((call) == (code));                            \
    CHECK(strstr(tamis_last_error(), (words)) != NULL); \
  } while (0)

enum { kKeys = 3000 };  // more than are hashed at a time

static char names[2 * kKeys][16];
static tamis_key keys[2 * kKeys];
static char directory[] = "/tmp/tamis_c_api_test.XXXXXX";

static const char* path_of(const char* name) {
  static char path[200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

static tamis_filter* make(const char* type, uint64_t capacity, double fpr, uint64_t seed) {
  tamis_filter_options options = {type, capacity, fpr, seed};
  tamis_filter* filter = NULL;
  CHECK(tamis_filter_create(&options, &filter) == TAMIS_OK);
  CHECK(filter != NULL);
  return filter;
}

static size_t contained(const tamis_filter* filter, size_t begin, size_t end) {
  static uint8_t answers[2 * kKeys];
  size_t count = 0;
  CHECK(tamis_filter_may_contain_many(filter, keys + begin, end - begin, answers) == TAMIS_OK);
  for (size_t i = begin; i < end; ++i) {
    CHECK(answers[i - begin] == tamis_filter_may_contain(filter, keys[i].data, keys[i].size));
    count += answers[i - begin];
  }
  return count;
}

static void every_type_lives_its_life(void) {
  size_t types = 0;
  const tamis_filter_type* type;
  for (; (type = tamis_filter_type_at(types)) != NULL; ++types) {
    if (type->fixed) continue;
    tamis_filter* filter = make(type->name, 2 * kKeys, 1e-4, 7);
    size_t inserted = 0;
    CHECK(contained(filter, 0, 2 * kKeys) == 0);
    CHECK(tamis_filter_insert(filter, keys[0].data, keys[0].size) == TAMIS_OK);
    CHECK(tamis_filter_insert_many(filter, keys + 1, kKeys - 1, &inserted) == TAMIS_OK);
    CHECK(inserted == kKeys - 1);
    CHECK(contained(filter, 0, kKeys) == kKeys);
    CHECK(contained(filter, kKeys, 2 * kKeys) < 20);

    tamis_filter_info info;
    CHECK(tamis_filter_describe(filter, &info) == TAMIS_OK);
    CHECK(info.type == type && info.count == kKeys && info.seed == 7 && info.size_bytes > kKeys);
    CHECK(tamis_filter_expected_fpr(filter) < 1e-3);

    // Bytes and files, read again in every way.
    void* bytes = NULL;
    size_t size = 0;
    tamis_filter* others[3] = {NULL, NULL, NULL};
    CHECK(tamis_filter_serialize(filter, &bytes, &size) == TAMIS_OK);
    CHECK(tamis_filter_deserialize(bytes, size, &others[0]) == TAMIS_OK);
    CHECK(tamis_filter_save(filter, path_of(type->name)) == TAMIS_OK);
    CHECK(tamis_filter_load(path_of(type->name), &others[1]) == TAMIS_OK);
    CHECK(tamis_filter_map(path_of(type->name), &others[2]) == TAMIS_OK);
    for (int i = 0; i < 3; ++i) {
      void* again = NULL;
      size_t again_size = 0;
      CHECK(tamis_filter_serialize(others[i], &again, &again_size) == TAMIS_OK);
      CHECK(again_size == size && memcmp(again, bytes, size) == 0);
      tamis_bytes_free(again);
    }
    // A mapped filter can be changed; its file is not.
    CHECK(tamis_filter_insert_many(others[2], keys + kKeys, kKeys / 2, NULL) == TAMIS_OK);
    CHECK(contained(others[2], 0, kKeys + kKeys / 2) == kKeys + kKeys / 2);
    tamis_filter_free(others[1]);
    CHECK(tamis_filter_load(path_of(type->name), &others[1]) == TAMIS_OK);
    CHECK(contained(others[1], kKeys, 2 * kKeys) < 20);

    // Merging, clearing.
    CHECK(tamis_filter_clear(others[1]) == TAMIS_OK);
    CHECK(contained(others[1], 0, kKeys) == 0);
    CHECK(tamis_filter_insert_many(others[1], keys + kKeys, kKeys / 2, NULL) == TAMIS_OK);
    CHECK(tamis_filter_merge(others[1], filter) == TAMIS_OK);
    CHECK(contained(others[1], 0, kKeys + kKeys / 2) == kKeys + kKeys / 2);

    if (type->erases) {
      static uint8_t erased[kKeys];
      CHECK(type->copies > 0);
      CHECK(tamis_filter_erase(filter, keys[0].data, keys[0].size) == TAMIS_OK);
      CHECK(tamis_filter_erase_many(filter, keys + 1, kKeys / 2 - 1, erased) == TAMIS_OK);
      for (size_t i = 0; i + 1 < kKeys / 2; ++i) CHECK(erased[i] == 1);
      CHECK(contained(filter, kKeys / 2, kKeys) == kKeys - kKeys / 2);
      CHECK(contained(filter, 0, kKeys / 2) < 20);
    } else {
      CHECK(type->copies == 0);
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name, tamis_filter_erase(filter, "a", 1));
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name,
                  tamis_filter_erase_many(filter, keys, 1, NULL));
    }
    tamis_bytes_free(bytes);
    for (int i = 0; i < 3; ++i) tamis_filter_free(others[i]);
    tamis_filter_free(filter);
  }
  CHECK(types >= 10);
  CHECK(tamis_filter_type_at(SIZE_MAX) == NULL);
}

static void every_type_is_built_of_all_its_keys(void) {
  int fixed = 0;
  const tamis_filter_type* type;
  for (size_t i = 0; (type = tamis_filter_type_at(i)) != NULL; ++i) {
    const tamis_filter_options options = {type->name, 0, 1e-4, 7};
    tamis_filter* filter = NULL;
    static tamis_key twice[2 * kKeys];
    for (size_t k = 0; k < 2 * kKeys; ++k) twice[k] = keys[k / 2];
    CHECK(tamis_filter_build(&options, twice, 2 * kKeys, &filter) == TAMIS_OK);
    CHECK(contained(filter, 0, kKeys) == kKeys);
    CHECK(contained(filter, kKeys, 2 * kKeys) < 20);
    tamis_filter_info info;
    CHECK(tamis_filter_describe(filter, &info) == TAMIS_OK);
    CHECK(info.type == type && info.count == kKeys && info.seed == 7);
    CHECK(tamis_filter_expected_fpr(filter) < 1e-3);
    if (type->fixed) {
      tamis_filter* other = NULL;
      ++fixed;
      CHECK(!type->erases);
      CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "all its keys", tamis_filter_create(&options, &other));
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name, tamis_filter_insert(filter, "a", 1));
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name,
                  tamis_filter_insert_many(filter, keys, 1, NULL));
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name, tamis_filter_erase(filter, "a", 1));
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, type->name, tamis_filter_clear(filter));
      CHECK(tamis_filter_save(filter, path_of("fixed")) == TAMIS_OK);
      CHECK(tamis_filter_map(path_of("fixed"), &other) == TAMIS_OK);
      CHECK(contained(other, 0, kKeys) == kKeys);
      CHECK_FAILS(TAMIS_FAILED_PRECONDITION, "cannot merge", tamis_filter_merge(filter, other));
      CHECK(unlink(path_of("fixed")) == 0);
      tamis_filter_free(other);
    }
    tamis_filter_free(filter);
  }
  CHECK(fixed == 1);
}

static void keys_are_any_bytes(void) {
  tamis_filter* filter = make("bloom", 10, 1e-6, 1);
  CHECK(tamis_filter_may_contain(filter, NULL, 0) == 0);
  CHECK(tamis_filter_insert(filter, NULL, 0) == TAMIS_OK);
  CHECK(tamis_filter_may_contain(filter, "x", 0) == 1);
  CHECK(tamis_filter_insert(filter, "a\0b", 3) == TAMIS_OK);
  CHECK(tamis_filter_may_contain(filter, "a\0b", 3) == 1);
  CHECK(tamis_filter_may_contain(filter, "a\0c", 3) == 0);
  CHECK(tamis_filter_insert_many(filter, NULL, 0, NULL) == TAMIS_OK);
  CHECK(tamis_filter_may_contain_many(filter, NULL, 0, NULL) == TAMIS_OK);
  tamis_filter_free(filter);
  tamis_filter_free(NULL);
  tamis_bytes_free(NULL);
  CHECK(tamis_random_seed() != tamis_random_seed());
}

static void null_is_an_error_that_names_it(void) {
  tamis_filter_options options = {"bloom", 10, 0.01, 0};
  tamis_filter_options typeless = {NULL, 10, 0.01, 0};
  tamis_filter* filter = make("cuckoo", 10, 0.01, 0);
  tamis_filter* none = filter;
  tamis_key broken[2] = {{"a", 1}, {NULL, 5}};
  tamis_filter_info info;
  void* bytes = filter;
  size_t size = 1;
  uint8_t answers[2];
  const tamis_code bad = TAMIS_INVALID_ARGUMENT;
  CHECK_FAILS(bad, "tamis_filter_create: options is", tamis_filter_create(NULL, &none));
  CHECK(none == NULL);
  CHECK_FAILS(bad, "options->type is NULL", tamis_filter_create(&typeless, &none));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_create(&options, NULL));
  CHECK_FAILS(bad, "options is NULL", tamis_filter_build(NULL, keys, 1, &none));
  CHECK_FAILS(bad, "options->type is NULL", tamis_filter_build(&typeless, keys, 1, &none));
  CHECK_FAILS(bad, "keys is NULL", tamis_filter_build(&options, NULL, 1, &none));
  CHECK_FAILS(bad, "keys[1]", tamis_filter_build(&options, broken, 2, &none));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_build(&options, keys, 1, NULL));
  CHECK_FAILS(bad, "path is NULL", tamis_filter_load(NULL, &none));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_load("x", NULL));
  CHECK_FAILS(bad, "path is NULL", tamis_filter_map(NULL, &none));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_map("x", NULL));
  CHECK_FAILS(bad, "bytes is NULL", tamis_filter_deserialize(NULL, 5, &none));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_deserialize("x", 1, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_save(NULL, "x"));
  CHECK_FAILS(bad, "path is NULL", tamis_filter_save(filter, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_serialize(NULL, &bytes, &size));
  CHECK(bytes == NULL && size == 0);
  CHECK_FAILS(bad, "bytes is NULL", tamis_filter_serialize(filter, NULL, &size));
  CHECK_FAILS(bad, "size is NULL", tamis_filter_serialize(filter, &bytes, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_insert(NULL, "a", 1));
  CHECK_FAILS(bad, "key is NULL", tamis_filter_insert(filter, NULL, 1));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_erase(NULL, "a", 1));
  CHECK_FAILS(bad, "key is NULL", tamis_filter_erase(filter, NULL, 1));
  CHECK_FAILS(-1, "filter is NULL", tamis_filter_may_contain(NULL, "a", 1));
  CHECK_FAILS(-1, "key is NULL", tamis_filter_may_contain(filter, NULL, 1));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_insert_many(NULL, keys, 1, NULL));
  CHECK_FAILS(bad, "keys is NULL", tamis_filter_insert_many(filter, NULL, 1, NULL));
  CHECK_FAILS(bad, "keys[1]", tamis_filter_insert_many(filter, broken, 2, &size));
  CHECK(size == 0 && tamis_filter_may_contain(filter, "a", 1) == 0);
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_erase_many(NULL, keys, 1, NULL));
  CHECK_FAILS(bad, "keys is NULL", tamis_filter_erase_many(filter, NULL, 1, NULL));
  CHECK_FAILS(bad, "keys[1]", tamis_filter_erase_many(filter, broken, 2, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_may_contain_many(NULL, keys, 1, answers));
  CHECK_FAILS(bad, "keys is NULL", tamis_filter_may_contain_many(filter, NULL, 1, answers));
  CHECK_FAILS(bad, "keys[1]", tamis_filter_may_contain_many(filter, broken, 2, answers));
  CHECK_FAILS(bad, "answers is NULL", tamis_filter_may_contain_many(filter, keys, 1, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_merge(NULL, filter));
  CHECK_FAILS(bad, "other is NULL", tamis_filter_merge(filter, NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_clear(NULL));
  CHECK_FAILS(bad, "filter is NULL", tamis_filter_describe(NULL, &info));
  CHECK_FAILS(bad, "info is NULL", tamis_filter_describe(filter, NULL));
  CHECK(isnan(tamis_filter_expected_fpr(NULL)));
  tamis_filter_free(filter);
}

static void failures_say_what_to_do(void) {
  tamis_filter_options options = {"no such type", 10, 0.01, 0};
  tamis_filter* none = NULL;
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "blocked-quotient", tamis_filter_create(&options, &none));
  options.type = "bloom";
  options.capacity = 0;
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "capacity is 0", tamis_filter_create(&options, &none));
  options.capacity = (1ull << 31) + 1;
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "divide the keys among several filters",
              tamis_filter_create(&options, &none));
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "divide the keys among several filters",
              tamis_filter_build(&options, keys, kKeys, &none));
  options.capacity = 10;
  options.fpr = NAN;
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "fpr is nan", tamis_filter_create(&options, &none));
  options.fpr = 1e-12;
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "fpr is 1e-12", tamis_filter_create(&options, &none));

  // Full, and absent.
  tamis_filter* filter = make("cuckoo", 64, 0.001, 0);
  size_t inserted = 0;
  CHECK_FAILS(TAMIS_RESOURCE_EXHAUSTED, "full",
              tamis_filter_insert_many(filter, keys, kKeys, &inserted));
  CHECK(inserted >= 60 && inserted < kKeys);
  CHECK(contained(filter, 0, inserted) == inserted);
  CHECK(tamis_filter_clear(filter) == TAMIS_OK);
  uint8_t erased[3] = {9, 9, 9};
  CHECK(tamis_filter_insert_many(filter, keys, 2, NULL) == TAMIS_OK);
  CHECK_FAILS(TAMIS_NOT_FOUND, "not in the filter", tamis_filter_erase(filter, "absent", 6));
  CHECK_FAILS(TAMIS_NOT_FOUND, "not in the filter",
              tamis_filter_erase_many(filter, keys, 3, erased));
  CHECK(erased[0] == 1 && erased[1] == 1 && erased[2] == 0);

  // Merging what does not fit together.
  tamis_filter* other = make("cuckoo", 64, 0.001, 1);
  tamis_filter* bloom = make("bloom", 64, 0.001, 0);
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "cannot merge", tamis_filter_merge(filter, other));
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "cannot merge", tamis_filter_merge(filter, bloom));
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "with itself", tamis_filter_merge(filter, filter));

  // Files that are not there, foreign, cut, damaged.
  CHECK_FAILS(TAMIS_NOT_FOUND, "absent", tamis_filter_load(path_of("absent"), &none));
  CHECK_FAILS(TAMIS_NOT_FOUND, "no/dir", tamis_filter_save(filter, path_of("no/dir")));
  CHECK_FAILS(TAMIS_FAILED_PRECONDITION, directory, tamis_filter_map(directory, &none));
  void* bytes = NULL;
  size_t size = 0;
  CHECK(tamis_filter_serialize(filter, &bytes, &size) == TAMIS_OK);
  for (size_t cut = 0; cut < size; cut += 13) {
    CHECK(tamis_filter_deserialize(bytes, cut, &none) == TAMIS_DATA_LOSS);
    CHECK(none == NULL);
  }
  CHECK_FAILS(TAMIS_DATA_LOSS, "begin", tamis_filter_deserialize("foreign", 7, &none));
  CHECK_FAILS(TAMIS_DATA_LOSS, "begin", tamis_filter_deserialize(NULL, 0, &none));
  ((char*)bytes)[size - 1] ^= 1;
  CHECK_FAILS(TAMIS_DATA_LOSS, "checksum", tamis_filter_deserialize(bytes, size, &none));
  FILE* file = fopen(path_of("damaged"), "wb");
  CHECK(file != NULL && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
  CHECK_FAILS(TAMIS_DATA_LOSS, "damaged\"", tamis_filter_load(path_of("damaged"), &none));
  tamis_bytes_free(bytes);
  tamis_filter_free(filter);
  tamis_filter_free(other);
  tamis_filter_free(bloom);
}

static void a_mapped_filter_outlives_its_file(void) {
  tamis_filter* filter = make("blocked", kKeys, 1e-4, 0);
  tamis_filter* empty = make("blocked", kKeys, 1e-4, 0);
  tamis_filter* mapped = NULL;
  CHECK(tamis_filter_insert_many(filter, keys, kKeys, NULL) == TAMIS_OK);
  CHECK(tamis_filter_save(filter, path_of("mapped")) == TAMIS_OK);
  CHECK(tamis_filter_map(path_of("mapped"), &mapped) == TAMIS_OK);
  CHECK(tamis_filter_save(empty, path_of("mapped")) == TAMIS_OK);
  CHECK(contained(mapped, 0, kKeys) == kKeys);
  CHECK(unlink(path_of("mapped")) == 0);
  CHECK(contained(mapped, 0, kKeys) == kKeys);
  tamis_filter_free(mapped);
  tamis_filter_free(empty);
  tamis_filter_free(filter);
}

// The key is in the filter, but several layers match it.
static void a_key_that_several_layers_match_is_not_erased(void) {
  tamis_filter* filter = make("scalable", 20, 0.3, 0);
  CHECK(tamis_filter_insert_many(filter, keys, 200, NULL) == TAMIS_OK);
  size_t stuck = 0;
  for (size_t i = 0; i < 200; ++i) {
    if (tamis_filter_erase(filter, keys[i].data, keys[i].size) == TAMIS_OK) continue;
    CHECK_FAILS(TAMIS_FAILED_PRECONDITION, "build it again",
                tamis_filter_erase(filter, keys[i].data, keys[i].size));
    CHECK(contained(filter, i, i + 1) == 1);
    ++stuck;
  }
  CHECK(stuck > 0);
  tamis_filter_free(filter);
}

enum { kPage = 4096 };

struct cut_file {
  int file;
  off_t size;
  int rounds;
};

static void* cut_and_lengthen(void* argument) {
  const struct cut_file* cut = argument;
  for (int i = 0; i < cut->rounds; ++i) {
    CHECK(ftruncate(cut->file, kPage) == 0 && ftruncate(cut->file, cut->size) == 0);
  }
  return NULL;
}

// The loaded filter was read: others may write into the file meanwhile. A map of it would end here.
static void a_file_that_is_cut_while_it_is_loaded_is_an_error(void) {
  tamis_filter* filter = make("blocked", 1000000, 0.01, 0);
  void* bytes = NULL;
  size_t size = 0;
  pthread_t thread;
  CHECK(tamis_filter_insert_many(filter, keys, kKeys, NULL) == TAMIS_OK);
  CHECK(tamis_filter_serialize(filter, &bytes, &size) == TAMIS_OK);
  tamis_bytes_free(bytes);
  CHECK(tamis_filter_save(filter, path_of("cut")) == TAMIS_OK);
  struct cut_file cut = {open(path_of("cut"), O_WRONLY), (off_t)size, 20000};
  CHECK(cut.file >= 0);
  CHECK(ftruncate(cut.file, kPage) == 0);  // from here on nearly all of it is lost
  CHECK(pthread_create(&thread, NULL, cut_and_lengthen, &cut) == 0);
  for (int i = 0; i < 200; ++i) {
    tamis_filter* none = NULL;
    CHECK(tamis_filter_load(path_of("cut"), &none) == TAMIS_DATA_LOSS);
  }
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(close(cut.file) == 0);
  CHECK(unlink(path_of("cut")) == 0);
  tamis_filter_free(filter);
}

static void* read_and_fail(void* filter) {
  for (int round = 0; round < 20; ++round) {
    tamis_filter* none = NULL;
    CHECK_FAILS(TAMIS_NOT_FOUND, "in_another_thread",
                tamis_filter_load("in_another_thread", &none));
    for (size_t i = 0; i < kKeys; ++i) {
      CHECK(tamis_filter_may_contain(filter, keys[i].data, keys[i].size) == 1);
    }
  }
  return NULL;
}

static void readers_run_beside_one_another_and_errors_are_a_threads_own(void) {
  tamis_filter* filter = make("blocked-quotient", kKeys, 1e-3, 0);
  CHECK(tamis_filter_insert_many(filter, keys, kKeys, NULL) == TAMIS_OK);
  CHECK_FAILS(TAMIS_INVALID_ARGUMENT, "tamis_filter_clear", tamis_filter_clear(NULL));
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) CHECK(pthread_create(&threads[i], NULL, read_and_fail, filter) == 0);
  for (int i = 0; i < 4; ++i) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(strstr(tamis_last_error(), "tamis_filter_clear") != NULL);
  tamis_filter_free(filter);
}

// Last: memory is scarce from here on.
static void no_memory_is_an_error(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const struct rlimit limit = {1u << 30, 1u << 30};
  tamis_filter_options options = {"counting", UINT64_C(1) << 31, 1e-9, 0};
  tamis_filter* none = NULL;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  CHECK_FAILS(TAMIS_RESOURCE_EXHAUSTED, "not enough memory", tamis_filter_create(&options, &none));
  CHECK(none == NULL);
#endif
}

int main(void) {
  CHECK(strcmp(tamis_last_error(), "") == 0);
  CHECK(mkdtemp(directory) != NULL);
  for (size_t i = 0; i < 2 * kKeys; ++i) {
    keys[i].data = names[i];
    keys[i].size = (size_t)snprintf(names[i], sizeof names[i], "key-%zu", i);
  }
  every_type_lives_its_life();
  every_type_is_built_of_all_its_keys();
  keys_are_any_bytes();
  null_is_an_error_that_names_it();
  failures_say_what_to_do();
  a_mapped_filter_outlives_its_file();
  a_key_that_several_layers_match_is_not_erased();
  a_file_that_is_cut_while_it_is_loaded_is_an_error();
  readers_run_beside_one_another_and_errors_are_a_threads_own();
  for (size_t i = 0; tamis_filter_type_at(i) != NULL; ++i) {
    if (tamis_filter_type_at(i)->fixed) continue;
    CHECK(unlink(path_of(tamis_filter_type_at(i)->name)) == 0);
  }
  CHECK(unlink(path_of("damaged")) == 0);
  CHECK(rmdir(directory) == 0);  // nothing else was left behind
  no_memory_is_an_error();
  puts("the C API does what its header says");
  return 0;
}
