// WriteNumbers: which requests to write have come before, by the number of the client and the
// number that it gave the request. A request that comes twice, from a client or a proxy that
// repeats it, is not carried out again. Another process does not know these numbers: a request may
// name the one that it is for.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <list>
#include <mutex>
#include <set>
#include <unordered_map>

namespace tamis::server {

// A random number of this process, not 0.
uint64_t ProcessNumber();

class WriteNumbers {
 public:
  static constexpr size_t kMostClients = 10'000;  // of the others the oldest is forgotten
  static constexpr size_t kMostNumbers = 1'000;   // of a client; smaller ones count as known

  // Whether the request is a new one; from now on it is known.
  bool IsNew(uint64_t client, uint64_t number);

 private:
  struct Client {
    uint64_t id = 0;
    uint64_t below = 0;  // all numbers up to this one are known
    std::set<uint64_t> numbers;
  };
  std::mutex mutex_;
  std::list<Client> clients_;  // the one that has written last first
  std::unordered_map<uint64_t, std::list<Client>::iterator> by_id_;
};

}  // namespace tamis::server
