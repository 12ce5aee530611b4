// CollectedKeys: the keys of SST files that are being written, until the files are announced.
//
// A collection is known by the number that the properties of its file will have. The thread that
// has written a file announces it before it announces any other file. So with each announcement all
// that the thread has collected and not announced is forgotten.
//
// Threads: safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace tamis::lsm {

class CollectedKeys {
 public:
  struct Collection {
    uint32_t family = 0;
    std::thread::id collector = {};
    std::vector<uint64_t> hashes = {};
  };

  // Takes the keys of a file that this thread is writing.
  void Add(uint64_t number, uint32_t family, std::vector<uint64_t> hashes);
  // This thread announces the file of this collection, or a file without one (nullopt). Returns the
  // collection; nullopt: there is none.
  std::optional<Collection> Announced(std::optional<uint64_t> number);
  size_t count() const;  // collected, and not announced yet

 private:
  void ForgetThoseOfThread();  // REQUIRES: mutex_ is held

  mutable std::mutex mutex_;
  std::map<uint64_t, Collection> collections_;
};

}  // namespace tamis::lsm
