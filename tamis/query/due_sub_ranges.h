// DueSubRanges: the sub-ranges of a search that may be asked now, by the server that has them, and
// how many requests are under way to each server.
//
// Finding the next server walks over no sub-ranges, and over no servers that have nothing to be
// asked or are at their limit: a search of everything costs the same for each region, however many
// there are.
//
// Threads: exclusive access.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tamis/query/query_context.h"
#include "tamis/query/sub_range.h"

namespace tamis {

class DueSubRanges {
 public:
  struct Server {
    struct ByStart {
      bool operator()(SubRangeAt a, SubRangeAt b) const { return a->range.start < b->range.start; }
    };
    std::string name;
    std::set<SubRangeAt, ByStart> due;
    int under_way = 0;
  };

  explicit DueSubRanges(int requests_in_flight) : requests_in_flight_(requests_in_flight) {}

  // The region has a server, and stays where it is while the sub-range is due.
  void Add(SubRangeAt sub_range, const RegionInfo& region);
  // Makes no sub-range due. Requests under way go on.
  void Clear();

  // Among the servers that may be asked now: the one that has the first sub-range in key order, or
  // the one with the least load; nullptr when there is none.
  Server* First() const { return by_first_.empty() ? nullptr : by_first_.begin()->second; }
  Server* LeastLoaded(const ServerLoads& loads) const;

  // A request begins: takes the first sub-ranges of the server. In key order what comes behind a
  // sub-range that has been asked before is not asked with it.
  std::vector<SubRangeAt> Begin(Server* server, size_t most, bool key_order);
  // It was answered, or given up.
  void End(Server* server);

 private:
  void Hide(const Server& server);
  void Show(Server* server);

  const int requests_in_flight_;
  std::map<std::string, Server> servers_;
  // The servers that may be asked now, by the start of their first sub-range.
  std::map<std::string_view, Server*> by_first_;
};

}  // namespace tamis
