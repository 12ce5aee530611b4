// Faults: for tests only. Each switches one rule off, so that a test can show that it would see the
// row that is refused, or the replica that differs, without the rule. `loadmodule PATH tamis-fault
// NAME` sets one.
#pragma once

#include <string_view>
#include <utility>

namespace tamis::redis {

struct Faults {
  bool adds_to_old_alone = false;           // adds during a rebuild do not go to the new filter
  bool erases_from_both = false;            // erases during a rebuild go to the new filter, too
  bool commit_after_loss = false;           // a rebuild whose adds may be lost is committed
  bool commit_what_was_full = false;        // a rebuild that refused an add is committed
  bool erases_of_other_generation = false;  // an erase meant for the filter before is done
  bool commit_of_another = false;           // COMMIT with the id of another rebuild is done
  bool copies_are_believed = false;         // COPY, RESTORE, LOADCHUNK, UNION: like their source
  bool stray_erases_are_believed = false;   // an erase of an absent item does not end trust
  bool moved_is_believed = false;           // a filter that was away from its name, as before
  bool log_of_another_is_believed = false;  // its bytes in this log, as this server's own
  bool dumps_are_trusted = false;           // DUMP and SCANDUMP: like a primary's files
  bool replicas_log_trust = false;          // a replica's own files, as a primary's
  bool old_copies_are_believed = false;     // by a replica: what its own files held at its start
  bool end_of_trust_is_silent = false;      // clients that WATCH or cache a key are not told of it
  bool role_is_not_logged = false;          // a change of role is neither logged nor replicated
  bool erases_when_unsure = false;          // an item is erased whose add may be lost
  bool incomplete_is_believed = false;  // a filter that refused an add which another server took
  bool delay_by_wall_clock = false;     // setting the wall clock shortens tamis-erase-delay
  bool slices_end_early = false;        // a slice of a window is denied one slice too early
  bool slices_are_not_sent = false;     // replicas and the log are not told of a new slice
  bool time_under_way_counts = false;   // the wall clocks of two servers are compared
  bool erases_newest_copy = false;      // a window erases the copy that is found longest
  bool erases_first_match = false;      // a window with counters erases where it matches first
  bool erases_of_any_age = false;       // TAMIS.DEL erases what may have left the window
  bool drops_what_was_passed = false;   // drops a table in which the last piece left no tag
  bool compacts_as_it_stands = false;   // replicas begin a piece where they themselves stopped
  // There is a setting tamis-failing-allocation: how many allocations of the module from now on it
  // is until one fails; 0 = none does.
  bool allocations = false;
  // There are settings tamis-running-clock and tamis-wall-clock, in milliseconds, by which windows
  // go; 0 = by the clocks of the system.
  bool clocks = false;
};

// Every fault by its name.
inline constexpr std::pair<std::string_view, bool Faults::*> kFaults[] = {
    {"adds_to_old_alone", &Faults::adds_to_old_alone},
    {"erases_from_both", &Faults::erases_from_both},
    {"commit_after_loss", &Faults::commit_after_loss},
    {"commit_what_was_full", &Faults::commit_what_was_full},
    {"erases_of_other_generation", &Faults::erases_of_other_generation},
    {"commit_of_another", &Faults::commit_of_another},
    {"copies_are_believed", &Faults::copies_are_believed},
    {"stray_erases_are_believed", &Faults::stray_erases_are_believed},
    {"moved_is_believed", &Faults::moved_is_believed},
    {"log_of_another_is_believed", &Faults::log_of_another_is_believed},
    {"dumps_are_trusted", &Faults::dumps_are_trusted},
    {"replicas_log_trust", &Faults::replicas_log_trust},
    {"old_copies_are_believed", &Faults::old_copies_are_believed},
    {"end_of_trust_is_silent", &Faults::end_of_trust_is_silent},
    {"role_is_not_logged", &Faults::role_is_not_logged},
    {"erases_when_unsure", &Faults::erases_when_unsure},
    {"incomplete_is_believed", &Faults::incomplete_is_believed},
    {"delay_by_wall_clock", &Faults::delay_by_wall_clock},
    {"slices_end_early", &Faults::slices_end_early},
    {"slices_are_not_sent", &Faults::slices_are_not_sent},
    {"time_under_way_counts", &Faults::time_under_way_counts},
    {"erases_newest_copy", &Faults::erases_newest_copy},
    {"erases_first_match", &Faults::erases_first_match},
    {"erases_of_any_age", &Faults::erases_of_any_age},
    {"drops_what_was_passed", &Faults::drops_what_was_passed},
    {"compacts_as_it_stands", &Faults::compacts_as_it_stands},
    {"allocations", &Faults::allocations},
    {"clocks", &Faults::clocks},
};

inline Faults faults;
inline long long failing_allocation = 0;
inline long long running_clock = 0;
inline long long wall_clock = 0;

// Whether this allocation is the one that fails.
inline bool AllocationFails() { return failing_allocation != 0 && --failing_allocation == 0; }

// False when there is no fault of that name.
inline bool SetFault(std::string_view name) {
  for (const auto& [known, member] : kFaults) {
    if (known != name) continue;
    faults.*member = true;
    return true;
  }
  return false;
}

}  // namespace tamis::redis
