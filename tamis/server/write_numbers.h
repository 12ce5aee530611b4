// WriteNumbers: which requests to write this server has taken, by the number of the client and the
// number that it gave the request. A request that comes twice, from a client or a proxy that
// repeats it, is not carried out again. Another server does not know these numbers: a request may
// name the one that it is for.
//
// Threads: safe.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <unordered_map>

namespace tamis::server {

class WriteNumbers {
 public:
  static constexpr size_t kMostClients = 10'000;  // beyond these the oldest is forgotten
  static constexpr size_t kMostNumbers = 1'000;  // numbers of a client; smaller ones count as taken

  WriteNumbers();

  // A random number of this server since it began, not 0.
  uint64_t process() const { return process_; }

  // Whether the request is a new one; from now on it is taken.
  bool Take(uint64_t client, uint64_t number);
  // Nothing of a request that was taken is carried out, now or later.
  void Refuse(uint64_t client, uint64_t number);
  // Whether the request has not been taken; from now on it never is. May be repeated.
  bool Withdraw(uint64_t client, uint64_t number);

 private:
  enum class State : uint8_t { kTaken, kWithdrawn };
  struct Client {
    uint64_t id = 0;
    uint64_t below = 0;  // all numbers up to this one are taken
    std::map<uint64_t, State> numbers;
  };
  // The number's state, which is `state` if it had none.
  State Enter(uint64_t client, uint64_t number, State state, bool* is_new);
  Client& Find(uint64_t client);

  const uint64_t process_;
  std::mutex mutex_;
  std::list<Client> clients_;  // the one that has written last first
  std::unordered_map<uint64_t, std::list<Client>::iterator> by_id_;
};

}  // namespace tamis::server
