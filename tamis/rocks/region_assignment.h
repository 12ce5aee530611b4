// RegionAssignment: which region server of an embedded cluster has which region. A region passes to
// another server in two steps: the new owner and a new epoch are written to the catalog, while the
// fence keeps the former owner from writing and answering; then the new owner opens the region.
//
// Threads: safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tamis/rocks/catalog.h"
#include "tamis/rocks/fence.h"
#include "tamis/rocks/server_lives.h"

namespace tamis {

class RegionAssignment : public std::enable_shared_from_this<RegionAssignment> {
 public:
  // All must outlive it. `opening_wait`: for how long a former owner that did not close its region
  // cleanly may be believed.
  RegionAssignment(Executor* executor, Catalog* catalog, FenceTable* fences,
                   std::shared_ptr<ServerLives> lives, Duration opening_wait);

  // Gives every region an owner, when the store is opened. Leases of an earlier process ended with
  // that process, so no owner has to wait before it acknowledges puts. REQUIRES: no region is open.
  Status AssignAll();
  // Expels silent servers and gives away their regions: now, and every ServerLives::look_interval.
  void Sweep();
  void GiveAwayUnserved();

  // Gives the region to the server, which acknowledges no put of it for `wait` after opening it.
  // kUnavailable when the catalog has a newer record of the region.
  Status Assign(pb::RegionRecord record, const std::string& server, Duration wait);
  // Opens a region again that was closed for a change that failed, unless the catalog has a newer
  // record of the region. When the catalog cannot be written now, the next sweep tries again.
  void Reopen(const pb::RegionRecord& record, Duration wait);
  // Opens a region that was just added to the catalog, at the server that its record names.
  void OpenNew(const pb::RegionRecord& record, Duration wait);
  // How long the next owner must wait before it acknowledges puts.
  Duration WaitAfter(const Result<bool>& closed_in_order) const;

  // Writes the server and its start code into the record; nothing else is changed.
  void SetOwner(const std::string& server, pb::RegionRecord* region) const;
  // `name`, unless it has been expelled; then the server with the fewest regions.
  std::string OwnerLike(const std::string& name) const;
  std::string LeastLoaded() const;  // empty when no server lives
  std::map<std::string, uint64_t> Loads() const;
  // The catalog has the region as the record says.
  bool IsCurrent(const pb::RegionRecord& record) const;
  // Why the region is open nowhere: the catalog could not be written when the region was last given
  // to a server, and this will not change until the user acts. Ok in all other cases.
  Status WhyUnserved(const pb::RegionRecord& record) const;

 private:
  struct Closed {
    pb::RegionRecord record;
    Duration wait;
  };

  // A region that could not be given to a server, and why not.
  struct Unassigned {
    uint64_t epoch = 0;  // the epoch of its record in the catalog; a newer record is not meant
    Status why;
  };

  // True when the owner is alive and has the region open.
  bool IsServed(const pb::RegionRecord& record) const;
  void NoteOutcome(uint64_t region_id, uint64_t epoch, const Status& committed) noexcept;
  void ForgetOldFailures();
  // False when the region is still to be opened again.
  bool TryReopening(const pb::RegionRecord& record, Duration wait);
  void ReopenClosed();

  Executor* const executor_;
  Catalog* const catalog_;
  FenceTable* const fences_;
  const std::shared_ptr<ServerLives> lives_;
  const Duration opening_wait_;
  mutable std::mutex mutex_;
  std::map<uint64_t, Unassigned> unassigned_;  // by region id
  std::vector<Closed> closed_;                 // open nowhere, though their servers live
};

}  // namespace tamis
