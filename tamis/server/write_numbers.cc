#include "tamis/server/write_numbers.h"

#include <algorithm>
#include <random>

namespace tamis::server {
namespace {

uint64_t RandomNumber() {
  std::random_device device;
  return std::uniform_int_distribution<uint64_t>(1)(device);
}

}  // namespace

WriteNumbers::WriteNumbers() : process_(RandomNumber()) {}

WriteNumbers::Client& WriteNumbers::Find(uint64_t client) {
  const auto found = by_id_.find(client);
  if (found != by_id_.end()) {
    clients_.splice(clients_.begin(), clients_, found->second);
    return clients_.front();
  }
  clients_.push_front({.id = client});
  by_id_[client] = clients_.begin();
  if (clients_.size() > kMostClients) {
    by_id_.erase(clients_.back().id);
    clients_.pop_back();
  }
  return clients_.front();
}

WriteNumbers::State WriteNumbers::Enter(uint64_t client, uint64_t number, State state,
                                        bool* is_new) {
  std::lock_guard lock(mutex_);
  Client& known = Find(client);
  *is_new = false;
  if (number <= known.below) return State::kTaken;
  const auto [entry, inserted] = known.numbers.try_emplace(number, state);
  *is_new = inserted;
  const State now = entry->second;
  if (known.numbers.size() > kMostNumbers) {
    known.below = std::max(known.below, known.numbers.begin()->first);
    known.numbers.erase(known.numbers.begin());
  }
  return now;
}

bool WriteNumbers::Take(uint64_t client, uint64_t number) {
  bool is_new = false;
  Enter(client, number, State::kTaken, &is_new);
  return is_new;
}

bool WriteNumbers::Withdraw(uint64_t client, uint64_t number) {
  bool is_new = false;
  return Enter(client, number, State::kWithdrawn, &is_new) == State::kWithdrawn;
}

void WriteNumbers::Refuse(uint64_t client, uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = by_id_.find(client);
  if (found == by_id_.end()) return;
  const auto entry = found->second->numbers.find(number);
  if (entry != found->second->numbers.end()) entry->second = State::kWithdrawn;
}

}  // namespace tamis::server
