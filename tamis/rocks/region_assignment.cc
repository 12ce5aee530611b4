#include "tamis/rocks/region_assignment.h"

#include <algorithm>

namespace tamis {

RegionAssignment::RegionAssignment(Executor* executor, Catalog* catalog, FenceTable* fences,
                                   std::shared_ptr<ServerLives> lives, Duration opening_wait)
    : executor_(executor),
      catalog_(catalog),
      fences_(fences),
      lives_(std::move(lives)),
      opening_wait_(opening_wait) {}

Status RegionAssignment::AssignAll() {
  std::vector<pb::RegionRecord> regions = catalog_->Regions();
  if (regions.empty()) return Status::Ok();
  std::ranges::sort(regions, [](const auto& a, const auto& b) {
    return std::pair(a.table_id(), a.start()) < std::pair(b.table_id(), b.start());
  });
  const std::vector<ServerInfo> servers = lives_->Infos({});
  Catalog::Change change;
  for (size_t i = 0; i < regions.size(); ++i) {
    regions[i].set_epoch(catalog_->NewEpoch());
    SetOwner(servers[i % servers.size()].name, &regions[i]);
    change.put_regions.push_back(regions[i]);
  }
  TAMIS_RETURN_IF_ERROR(Commit(change));
  for (const auto& region : regions) OpenNew(region, Duration(0));
  return Status::Ok();
}

Status RegionAssignment::Commit(const Catalog::Change& change) {
  Status committed = catalog_->Commit(change);
  std::lock_guard lock(mutex_);
  failure_ = IsTransient(committed.code()) ? Status::Ok() : committed;
  return committed;
}

void RegionAssignment::Sweep() {
  lives_->ExpelSilent();
  ReopenClosed();
  GiveAwayUnserved();
  executor_->PostAfter(lives_->look_interval(), [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Sweep();
  });
}

// Gives away the regions whose server life has been declared dead.
void RegionAssignment::GiveAwayUnserved() {
  for (const pb::RegionRecord& region : catalog_->Regions()) {
    if (lives_->IsMember(region.server(), region.start_code())) continue;
    const std::string target = LeastLoaded();
    if (target.empty()) break;  // no server lives
    (void)Assign(region, target, opening_wait_);
  }
}

Duration RegionAssignment::WaitAfter(const Result<bool>& closed_in_order) const {
  return closed_in_order.ok() && *closed_in_order ? Duration(0) : opening_wait_;
}

void RegionAssignment::SetOwner(const std::string& name, pb::RegionRecord* region) const {
  auto server = lives_->Find(name);
  region->set_server(name);
  region->set_start_code(server ? server->start_code() : 0);
}

std::map<std::string, uint64_t> RegionAssignment::Loads() const {
  std::map<std::string, uint64_t> loads;
  for (const std::string& name : lives_->Alive()) loads[name] = 0;
  for (const pb::RegionRecord& region : catalog_->Regions()) {
    if (auto found = loads.find(region.server()); found != loads.end()) ++found->second;
  }
  return loads;
}

std::string RegionAssignment::LeastLoaded() const {
  const auto loads = Loads();
  const auto least = std::ranges::min_element(
      loads, {}, [](const auto& name_and_load) { return name_and_load.second; });
  return least == loads.end() ? "" : least->first;
}

std::string RegionAssignment::OwnerLike(const std::string& name) const {
  return lives_->IsMember(name) ? name : LeastLoaded();
}

bool RegionAssignment::IsCurrent(const pb::RegionRecord& record) const {
  const auto now = catalog_->Region(record.id());
  return now.has_value() && now->epoch() == record.epoch();
}

bool RegionAssignment::IsServed(const pb::RegionRecord& record) const {
  const auto server = lives_->FindRunning(record.server());
  return server && lives_->IsMember(record.server(), record.start_code()) &&
         server->FindRegion(record.id()) != nullptr;
}

Status RegionAssignment::failure() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

Status RegionAssignment::Assign(pb::RegionRecord record, const std::string& server, Duration wait) {
  {
    const auto fence = fences_->Of(record.id());
    const auto excluded = fence->Exclude();
    if (!IsCurrent(record)) {
      return Unavailable(
          "cannot assign the region to a server: it was moved, split or merged meanwhile; look at "
          "the regions and try again");
    }
    // Completed indexes may have been noted since the record was read.
    record = *catalog_->Region(record.id());
    record.set_epoch(catalog_->NewEpoch());
    SetOwner(server, &record);
    TAMIS_RETURN_IF_ERROR(Commit({.put_regions = {record}}));
    fence->AdvanceExcluded(record.epoch());
  }
  if (auto owner = lives_->Find(server)) owner->OpenRegion(record, wait);
  return Status::Ok();
}

void RegionAssignment::OpenNew(const pb::RegionRecord& record, Duration wait) {
  fences_->Of(record.id())->Advance(record.epoch());
  if (auto owner = lives_->Find(record.server())) owner->OpenRegion(record, wait);
}

void RegionAssignment::Reopen(const pb::RegionRecord& record, Duration wait) {
  const std::string target = OwnerLike(record.server());
  if (!target.empty() && Assign(record, target, wait).ok()) return;
  if (!IsCurrent(record)) return;
  std::lock_guard lock(mutex_);
  closed_.push_back({record, wait});
}

void RegionAssignment::ReopenClosed() {
  std::vector<Closed> closed;
  {
    std::lock_guard lock(mutex_);
    closed.swap(closed_);
  }
  for (const Closed& region : closed) Reopen(region.record, region.wait);
}

}  // namespace tamis
