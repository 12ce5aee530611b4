// Ingestion: the keys of files that are about to be ingested, counted in the filter under the paths
// that the files come from until RocksDB has reported under which number each came in.
//
//   const auto ingestion = filter->BeginIngestion(family, files);
//   db->IngestExternalFiles(...);
//   // destroyed here
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rocksdb {
class Env;
}

namespace tamis::lsm {

class HookState;

class Ingestion {
 public:
  // Reads the files. Throws std::bad_alloc when memory does not suffice; then the files must not be
  // ingested. The hooks must outlive it.
  Ingestion(HookState* hooks, rocksdb::Env* env, uint32_t family,
            const std::vector<std::string>& files);
  ~Ingestion();
  Ingestion(const Ingestion&) = delete;
  Ingestion& operator=(const Ingestion&) = delete;

 private:
  void Count(rocksdb::Env* env, const std::string& path);
  void End() noexcept;

  HookState* const hooks_;
  const uint32_t family_;
  bool is_partial_ = false;                  // some of the files could not be read
  std::map<uint64_t, std::string> tickets_;  // TreeFilter's, and the path of the file
};

}  // namespace tamis::lsm
