// RegionAssignment: which region server of an embedded cluster has which region, and how one comes
// to another server: the catalog says it first, under a new epoch, while the fence keeps the former
// owner from writing and answering; then the new owner opens it.
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
  // in good order may be believed.
  RegionAssignment(Executor* executor, Catalog* catalog, FenceTable* fences,
                   std::shared_ptr<ServerLives> lives, Duration opening_wait);

  // Every region gets an owner. Leases of an earlier process died with it, so nobody has to wait.
  void AssignAll();
  // Expels silent servers and gives away what they had, now and every so often.
  void Sweep();
  void GiveAwayUnserved();

  // Gives a region away as its record says, unless that is old.
  Status Assign(pb::RegionRecord record, const std::string& server, Duration wait);
  // Opens a region again that was closed for something that did not come about, unless somebody
  // else has decided about it since. When the catalog cannot be written now, the sweep does it.
  void Reopen(const pb::RegionRecord& record, Duration wait);
  // Opens a region that has just got into the catalog, at its server.
  void OpenNew(const pb::RegionRecord& record, Duration wait);
  // For how long the next owner must not acknowledge.
  Duration WaitAfter(const Result<bool>& closed_in_order) const;

  // Notes who shall have the region; nothing else is changed.
  void SetOwner(const std::string& server, pb::RegionRecord* region) const;
  // `name`, unless it has been expelled; then the server with the fewest regions.
  std::string OwnerLike(const std::string& name) const;
  std::string LeastLoaded() const;  // empty when nobody lives
  std::map<std::string, uint64_t> Loads() const;
  // The catalog has the region as the record says.
  bool IsCurrent(const pb::RegionRecord& record) const;

 private:
  struct Closed {
    pb::RegionRecord record;
    Duration wait;
  };

  void ReopenClosed();

  Executor* const executor_;
  Catalog* const catalog_;
  FenceTable* const fences_;
  const std::shared_ptr<ServerLives> lives_;
  const Duration opening_wait_;
  std::mutex mutex_;
  std::vector<Closed> closed_;  // open nowhere, though their servers live
};

}  // namespace tamis
