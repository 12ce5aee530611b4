// Faults: for tests only. Each switches one rule of the protocol off, so that the randomized
// cluster test can show that it would find the row that is missed without the rule.
#pragma once

namespace tamis {

struct Faults {
  bool increment_after_ack = false;    // counts a value only after its put has been acknowledged
  bool ignore_pending_flips = false;   // a put waits for nothing
  bool own_flips_only = false;         // a put waits for its own flips, not for those of others
  bool no_lease_wait = false;          // a put does not wait for leases to run out
  bool no_open_wait = false;           // a region opened after a crash acknowledges at once
  bool no_close_event = false;         // closing a region is not told
  bool unverified_membership = false;  // leases are granted, and searches answered, unverified
  bool ignore_gaps = false;            // a reply is applied though events before it are missing
  bool no_coverage_check = false;      // a search is complete when the answers are in
  bool no_row_verification = false;    // what the index says is returned
  bool erase_first_match = false;  // the scalable filter erases from the first layer that matches
};

}  // namespace tamis
