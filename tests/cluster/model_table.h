// ModelTable: what the table may hold, as its clients know it. A row may have several writers at a
// time; a write whose answer has not come, or was "unknown", leaves several possible states. A
// search is right when it returns every row all of whose possible states match, and nothing that no
// possible state explains.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/cluster/answer.h"

namespace tamis {

class ModelTable {
 public:
  using State = RowState;
  enum class Outcome { kDone, kNotDone, kUnknown };

  struct Entry {
    State sure;                // the state after the last write whose outcome is known
    std::vector<State> maybe;  // states after writes under way, or of unknown outcome
    std::vector<State> done;   // the states among them that were acknowledged, while others run
    int under_way = 0;
    bool unknown = false;  // one of those under way has an unknown outcome
    bool tainted = false;  // nothing is under way, but a write may even happen later

    bool busy() const { return under_way > 0; }
    // For every possible history and future of the open writes, the row stands as `sure` says.
    bool is_sure() const {
      return !tainted &&
             std::ranges::all_of(maybe, [this](const State& state) { return state == sure; });
    }
  };

  const Entry& Of(int64_t key) { return entries_[key]; }
  const std::map<int64_t, Entry>& entries() const { return entries_; }

  void Begin(int64_t key, const State& state) {
    Entry& entry = entries_[key];
    ++entry.under_way;
    entry.maybe.push_back(state);
    for (Watch* watch : watches_) {
      std::vector<State>& states = (*watch)[key];
      if (states.empty()) states.push_back(entry.sure);  // the first write of this row
      states.push_back(state);
    }
  }

  // One of the writes that would leave the row in `state` is over. False when all are over and
  // several were done, that differ: only the store knows which was the last. Reconcile then.
  [[nodiscard]] bool End(int64_t key, const State& state, Outcome outcome) {
    Entry& entry = entries_[key];
    --entry.under_way;
    if (outcome == Outcome::kDone) entry.done.push_back(state);
    if (outcome == Outcome::kUnknown) entry.unknown = true;
    const bool all_alike = std::ranges::all_of(
        entry.maybe, [&](const State& other) { return other == entry.maybe.front(); });
    // The writes still under way are all the same write again.
    if (outcome == Outcome::kDone && all_alike) entry.sure = state;
    if (entry.busy()) return true;
    if (entry.unknown) {
      entry.tainted = true;
      return true;
    }
    const std::vector<State> done = std::exchange(entry.done, {});
    if (done.empty()) {
      entry.maybe.clear();
      return true;
    }
    const bool decided =
        std::ranges::all_of(done, [&](const State& other) { return other == done.front(); });
    if (decided) {
      entry.sure = done.front();
      entry.maybe.clear();
    } else {
      entry.maybe = done;
    }
    return decided;
  }

  // The process died: whatever was under way may have happened.
  void Crash() {
    for (auto& [key, entry] : entries_) {
      if (entry.busy()) entry.tainted = true;
      entry.under_way = 0;
    }
  }
  // Nothing is under way that could change the row, and this is what stands.
  void Reconcile(int64_t key, State state) { entries_[key] = {.sure = std::move(state)}; }

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
