// One program over two builds of RocksDB: what the assertions cost that Debian's build has.
//
//   rocksdb_library_benchmark LIBRARY OTHER [ROUNDS]      two shared libraries with RocksDB's C
//                                                         functions; default 5 rounds
//
// Each round runs in a process of its own, which loads one library; the two take turns. Figures are
// processor time.
#include <dlfcn.h>
#include <rocksdb/c.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/figures.h"
#include "tamis/base/coding.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

constexpr uint64_t kRows = 40'000;
constexpr uint64_t kEntries = 4;  // a row
constexpr uint64_t kBatch = 1000;
constexpr std::array kSteps = {"write batches, random keys", "read from the memtable",
                               "write to a file", "read from the file", "iterate over the file"};
using Times = std::array<double, kSteps.size()>;

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "rocksdb_library_benchmark: %s\n", what.c_str());
  std::exit(1);
}

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) Die(dlerror());
  }
  template <class Function>
  Function* Find(const char* name) const {
    void* found = dlsym(handle_, name);
    if (found == nullptr) Die(std::string("the library has no ") + name);
    return reinterpret_cast<Function*>(found);
  }

 private:
  void* const handle_;
};

#define TAMIS_FUNCTION(name) const auto name = library.Find<decltype(::name)>(#name)

std::string Key(uint64_t i) {
  std::string key;
  PutBig64(&key, Mix(i));
  PutBig64(&key, i);
  return key;
}

Times Run(const char* path, const std::string& directory) {
  const Library library(path);
  TAMIS_FUNCTION(rocksdb_options_create);
  TAMIS_FUNCTION(rocksdb_options_set_create_if_missing);
  TAMIS_FUNCTION(rocksdb_open);
  TAMIS_FUNCTION(rocksdb_writeoptions_create);
  TAMIS_FUNCTION(rocksdb_readoptions_create);
  TAMIS_FUNCTION(rocksdb_flushoptions_create);
  TAMIS_FUNCTION(rocksdb_writebatch_create);
  TAMIS_FUNCTION(rocksdb_writebatch_put);
  TAMIS_FUNCTION(rocksdb_writebatch_clear);
  TAMIS_FUNCTION(rocksdb_write);
  TAMIS_FUNCTION(rocksdb_get);
  TAMIS_FUNCTION(rocksdb_free);
  TAMIS_FUNCTION(rocksdb_flush);
  TAMIS_FUNCTION(rocksdb_create_iterator);
  TAMIS_FUNCTION(rocksdb_iter_seek_to_first);
  TAMIS_FUNCTION(rocksdb_iter_valid);
  TAMIS_FUNCTION(rocksdb_iter_next);
  TAMIS_FUNCTION(rocksdb_iter_destroy);
  TAMIS_FUNCTION(rocksdb_close);

  char* error = nullptr;
  const auto check = [&] {
    if (error != nullptr) Die(error);
  };
  auto* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  auto* db = rocksdb_open(options, directory.c_str(), &error);
  check();
  auto* write_options = rocksdb_writeoptions_create();
  auto* read_options = rocksdb_readoptions_create();
  auto* flush_options = rocksdb_flushoptions_create();

  Times times{};
  size_t step = 0;
  const auto timed = [&](auto&& work) {
    const std::clock_t before = std::clock();
    work();
    times.at(step++) = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  };
  const auto read = [&] {
    for (uint64_t i = 0; i < kRows * kEntries; i += 2) {
      const std::string key = Key(i);
      size_t size = 0;
      char* value = rocksdb_get(db, read_options, key.data(), key.size(), &size, &error);
      check();
      if (value == nullptr || size != sizeof(i) || std::memcmp(value, &i, size) != 0)
        Die("a wrong answer");
      rocksdb_free(value);
    }
  };
  timed([&] {
    auto* batch = rocksdb_writebatch_create();
    for (uint64_t i = 0; i < kRows * kEntries; ++i) {
      const std::string key = Key(i);
      rocksdb_writebatch_put(batch, key.data(), key.size(), reinterpret_cast<const char*>(&i),
                             sizeof(i));
      if ((i + 1) % (kBatch * kEntries) != 0) continue;
      rocksdb_write(db, write_options, batch, &error);
      check();
      rocksdb_writebatch_clear(batch);
    }
  });
  timed(read);
  timed([&] { rocksdb_flush(db, flush_options, &error); });
  check();
  timed(read);
  timed([&] {
    auto* it = rocksdb_create_iterator(db, read_options);
    uint64_t seen = 0;
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it)) ++seen;
    if (seen != kRows * kEntries) Die("a wrong number of entries");
    rocksdb_iter_destroy(it);
  });
  rocksdb_close(db);
  return times;
}

#undef TAMIS_FUNCTION

Times RunInProcess(const char* library) {
  const std::string directory = std::filesystem::temp_directory_path() /
                                ("tamis_rocksdb_library_benchmark." + std::to_string(getpid()));
  std::filesystem::remove_all(directory);
  int answer[2];
  if (pipe(answer) != 0) Die("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) Die("cannot make a process");
  if (child == 0) {
    const Times times = Run(library, directory);
    const bool told = write(answer[1], times.data(), sizeof(times)) == sizeof(times);
    std::_Exit(told ? 0 : 1);
  }
  close(answer[1]);
  Times times{};
  if (read(answer[0], times.data(), sizeof(times)) != sizeof(times)) Die("a round has failed");
  close(answer[0]);
  waitpid(child, nullptr, 0);
  std::filesystem::remove_all(directory);
  return times;
}

int Compare(const char* library, const char* other, int rounds) {
  std::vector<Times> ours, others;
  for (int round = 0; round < rounds; ++round) {
    ours.push_back(RunInProcess(library));
    others.push_back(RunInProcess(other));
  }
  std::printf("%llu entries; us of processor time an entry; medians of %d rounds\n",
              static_cast<unsigned long long>(kRows * kEntries), rounds);
  std::printf("%-30s %8s %8s %8s\n", "", "Debian's", "release", "times");
  for (size_t step = 0; step < kSteps.size(); ++step) {
    const bool half = step == 1 || step == 3;  // half of the entries are read
    const double scale = 1e6 / static_cast<double>(half ? kRows * kEntries / 2 : kRows * kEntries);
    std::vector<double> first, second, ratios;
    for (size_t round = 0; round < ours.size(); ++round) {
      first.push_back(ours[round][step] * scale);
      second.push_back(others[round][step] * scale);
      ratios.push_back(first.back() / second.back());
    }
    std::printf("%-30s %8.2f %8.2f %8.2f\n", kSteps.at(step), Median(first), Median(second),
                Median(ratios));
  }
  return 0;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: rocksdb_library_benchmark LIBRARY OTHER [ROUNDS]\n", stderr);
    return 2;
  }
  return tamis::Compare(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 5);
}
