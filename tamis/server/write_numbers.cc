#include "tamis/server/write_numbers.h"

#include <algorithm>
#include <random>

namespace tamis::server {

uint64_t ProcessNumber() {
  static const uint64_t number = [] {
    std::random_device device;
    return std::uniform_int_distribution<uint64_t>(1)(device);
  }();
  return number;
}

bool WriteNumbers::IsNew(uint64_t client, uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(client);
  if (found == by_id_.end()) {
    clients_.push_front({.id = client});
    by_id_[client] = clients_.begin();
    if (clients_.size() > kMostClients) {
      by_id_.erase(clients_.back().id);
      clients_.pop_back();
    }
  } else {
    clients_.splice(clients_.begin(), clients_, found->second);
  }
  Client& known = clients_.front();
  if (number <= known.below || !known.numbers.insert(number).second) return false;
  if (known.numbers.size() > kMostNumbers) {
    known.below = std::max(known.below, *known.numbers.begin());
    known.numbers.erase(known.numbers.begin());
  }
  return true;
}

}  // namespace tamis::server
