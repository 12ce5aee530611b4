// RoutedServers: the region servers whose feeds a coordinator follows, and the leases that they
// have granted.
//
// A known server has a number, by which TableLayout names it; the number of a forgotten server is
// given to another one. Leases end by the latest time that any caller has noted: a thread that
// waited for a lock may hold an older clock reading than the thread before it, which may have ended
// a lease by a newer one.
//
//   Threads   const members may run concurrently; others need exclusive access
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/routing/region_bits.h"
#include "tamis/routing/table_layout.h"

namespace tamis {

// The state of one server as of the last number of its sequence that was applied.
struct RoutedServer {
  struct Region {
    uint64_t epoch = 0;
    uint32_t table_id = 0;
    TableLayout::Slot slot = 0;
  };

  std::mutex taking_in;  // held while one reply is applied; locked before the lock of the copy
  uint32_t number = 0;
  uint64_t start_code = 0;
  uint64_t applied = 0;
  Time last_sent = Time::min();  // the latest sending of a poll whose answer was taken in
  std::unordered_map<uint64_t, Region> regions;
  // The pairs (index, region) whose bits are to be requested. Pairs that lie side by side in a
  // matrix arrive in one reply, so that each cache line of its rows is touched once for all of
  // them.
  std::set<std::pair<uint32_t, uint64_t>> missing;
  std::set<std::pair<uint32_t, uint64_t>> missing_cells;  // the same, of cells
};

class RoutedServers {
 public:
  // Shared with threads that wait for taking_in.
  using ByName = std::map<std::string, std::shared_ptr<RoutedServer>>;

  // The server of that name, without a lease and regions if it was not known.
  std::shared_ptr<RoutedServer> Named(const std::string& name);
  // nullptr: it is not known.
  std::shared_ptr<RoutedServer> Find(const std::string& name) const;
  // False: the server was forgotten.
  bool Knows(const RoutedServer& server) const { return by_number_[server.number] == &server; }
  // REQUIRES: the server is known, has no lease and no regions.
  void Forget(const std::string& name);
  const ByName& by_name() const { return by_name_; }

  // ---- Leases

  void NoteTime(Time now) { latest_ = std::max(latest_, now); }
  // The ends of the leases, and the latest time that was noted.
  TableLayout::Leases leases() const { return {lease_until_, latest_}; }
  bool HasLease(const RoutedServer& server, Time now) const {
    return lease_until_[server.number] > now;
  }
  // True: the server had no lease, and has one now.
  [[nodiscard]] bool ExtendLease(const RoutedServer& server, Time until);
  void EndLease(const RoutedServer& server) { lease_until_[server.number] = Time::min(); }
  // Sets the bits, by slot, of the table's regions whose servers have no lease at `now`.
  void AddWithoutLease(uint32_t table_id, Time now, RegionBits* may) const;

 private:
  ByName by_name_;
  std::vector<RoutedServer*> by_number_;  // nullptr: forgotten
  std::vector<Time> lease_until_;         // by number
  Time latest_ = Time::min();
};

}  // namespace tamis
