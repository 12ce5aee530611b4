// ModelTable: what the table may hold, as its clients know it. A write whose answer has not come,
// or was "unknown", leaves several possible states of its row; a search is right when it returns
// every row all of whose possible states match, and nothing that no possible state explains.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/cluster/answer.h"

namespace tamis {

class ModelTable {
 public:
  using State = RowState;

  struct Entry {
    State sure;                // as of the last write whose outcome is known
    std::vector<State> maybe;  // of writes under way, or of unknown outcome
    bool busy = false;         // a write is under way
    bool tainted = false;      // a write has an unknown outcome; it may even happen later
  };

  const Entry& Of(int64_t key) { return entries_[key]; }
  const std::map<int64_t, Entry>& entries() const { return entries_; }

  void Begin(int64_t key, State state) {
    Entry& entry = entries_[key];
    entry.busy = true;
    entry.maybe.push_back(state);
    for (Watch* watch : watches_) {
      std::vector<State>& states = (*watch)[key];
      if (states.empty()) states.push_back(entry.sure);  // the first write of this row
      states.push_back(state);
    }
  }
  void Acknowledge(int64_t key) {
    Entry& entry = entries_[key];
    entry.busy = false;
    entry.sure = entry.maybe.back();
    entry.maybe.clear();
  }
  void Refuse(int64_t key) {
    Entry& entry = entries_[key];
    entry.busy = false;
    entry.maybe.clear();
  }
  void Unknown(int64_t key) {
    entries_[key].busy = false;
    entries_[key].tainted = true;
  }
  // Everything has come to rest, and this is what stands.
  void Settle(int64_t key, State state) { entries_[key] = {.sure = std::move(state)}; }

  // All states that a row may have had since a moment.
  using Watch = RowStates;
  void StartWatch(Watch* watch) {
    for (const auto& [key, entry] : entries_) {
      std::vector<State>& states = (*watch)[key];
      states.push_back(entry.sure);
      states.insert(states.end(), entry.maybe.begin(), entry.maybe.end());
    }
    watches_.insert(watch);
  }
  void EndWatch(Watch* watch) { watches_.erase(watch); }

 private:
  std::map<int64_t, Entry> entries_;
  std::set<Watch*> watches_;
};

}  // namespace tamis
