// Faults: for tests only. Each switches one rule of the protocol off, so that the randomized
// cluster test can show that it would find the row that is missed without the rule.
#pragma once

#include <string_view>
#include <utility>

namespace tamis {

struct Faults {
  bool increment_after_ack = false;     // counts a value only after its put has been acknowledged
  bool ignore_pending_flips = false;    // a put waits for nothing
  bool own_flips_only = false;          // a put waits for its own flips, not for those of others
  bool no_lease_wait = false;           // a put does not wait for leases to run out
  bool no_open_wait = false;            // a region opened after a crash acknowledges at once
  bool no_close_event = false;          // closing a region is not reported
  bool proof_as_of_answer = false;      // a proof of ownership counts from when its answer came
  bool lease_beyond_proof = false;      // leases are granted beyond the proof of ownership
  bool search_beyond_proof = false;     // searches are answered beyond it
  bool early_close_in_order = false;    // a region closed before its opening wait is over was
                                        // closed cleanly all the same
  bool expired_lease_excludes = false;  // a coordinator believes its copy when the lease is over
  bool ignore_sequence = false;         // a reply is applied whatever its numbers: late ones, too
  bool lease_for_cut_reply = false;     // a reply that was cut grants a lease all the same
  bool newer_projections = false;       // one that was cut carries bits younger than its events
  bool parts_without_replay = false;    // flips after the number of a part are not applied to it
  bool no_coverage_check = false;       // a search is complete when the answers are in
  bool stale_bounds = false;            // a search in an order believes bounds without a lease
  bool unknown_bounds = false;          // it takes a region of unknown bounds for one without rows
  bool stop_before_bounds = false;      // it gives rows before regions that may have earlier ones
  bool no_row_verification = false;     // rows are returned as the index gives them
  bool rows_from_any_entry = false;     // a row is made from an entry that lacks a needed column
  bool cut_values_taken = false;        // a row is made from an entry with a value that was cut
  bool page_added_twice = false;        // groups are added, and the page is asked for again
  bool group_lost_between_pages = false;    // the last group of a page that another one follows
  bool included_columns_left = false;       // an entry whose key stays keeps its included columns
  bool conditions_of_streams_only = false;  // filters of partial indexes exclude for every query
  bool changes_left_by_copy = false;        // a daughter lacks what changed while it was copied
  bool erase_first_match = false;    // the scalable filter erases from the first layer that matches
  bool erase_bits = false;           // a removal clears bits of a filter without counters
  bool leave_before_commit = false;  // (a) of IndexFilter: a write is registered no longer than Add
  bool clear_amid_writes = false;    // (b) cells are cleared for which writes are registered
  bool clear_by_old_snapshot = false;  // (c) the snapshot is taken before the cells are named
  bool undecided_is_empty = false;     // (c) a cell is empty where the search for it gave up
  bool clear_despite_writes = false;   // (d) cells are cleared though writes registered meanwhile
  bool clear_incomplete = false;       // (e) they are cleared while entries may be missing
  bool keep_spoilt_filter = false;     // one whose Add ended with std::bad_alloc stays published
};

// Every fault by its name.
inline constexpr std::pair<std::string_view, bool Faults::*> kFaults[] = {
    {"increment_after_ack", &Faults::increment_after_ack},
    {"ignore_pending_flips", &Faults::ignore_pending_flips},
    {"own_flips_only", &Faults::own_flips_only},
    {"no_lease_wait", &Faults::no_lease_wait},
    {"no_open_wait", &Faults::no_open_wait},
    {"no_close_event", &Faults::no_close_event},
    {"proof_as_of_answer", &Faults::proof_as_of_answer},
    {"lease_beyond_proof", &Faults::lease_beyond_proof},
    {"search_beyond_proof", &Faults::search_beyond_proof},
    {"early_close_in_order", &Faults::early_close_in_order},
    {"expired_lease_excludes", &Faults::expired_lease_excludes},
    {"ignore_sequence", &Faults::ignore_sequence},
    {"lease_for_cut_reply", &Faults::lease_for_cut_reply},
    {"newer_projections", &Faults::newer_projections},
    {"parts_without_replay", &Faults::parts_without_replay},
    {"no_coverage_check", &Faults::no_coverage_check},
    {"stale_bounds", &Faults::stale_bounds},
    {"unknown_bounds", &Faults::unknown_bounds},
    {"stop_before_bounds", &Faults::stop_before_bounds},
    {"no_row_verification", &Faults::no_row_verification},
    {"rows_from_any_entry", &Faults::rows_from_any_entry},
    {"cut_values_taken", &Faults::cut_values_taken},
    {"page_added_twice", &Faults::page_added_twice},
    {"group_lost_between_pages", &Faults::group_lost_between_pages},
    {"included_columns_left", &Faults::included_columns_left},
    {"conditions_of_streams_only", &Faults::conditions_of_streams_only},
    {"changes_left_by_copy", &Faults::changes_left_by_copy},
    {"erase_first_match", &Faults::erase_first_match},
    {"erase_bits", &Faults::erase_bits},
    {"leave_before_commit", &Faults::leave_before_commit},
    {"clear_amid_writes", &Faults::clear_amid_writes},
    {"clear_by_old_snapshot", &Faults::clear_by_old_snapshot},
    {"undecided_is_empty", &Faults::undecided_is_empty},
    {"clear_despite_writes", &Faults::clear_despite_writes},
    {"clear_incomplete", &Faults::clear_incomplete},
    {"keep_spoilt_filter", &Faults::keep_spoilt_filter},
};

// False when there is no fault of that name.
inline bool SetFault(std::string_view name, Faults* faults) {
  for (const auto& [known, member] : kFaults) {
    if (known != name) continue;
    faults->*member = true;
    return true;
  }
  return false;
}

}  // namespace tamis
