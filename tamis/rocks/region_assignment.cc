#include "tamis/rocks/region_assignment.h"

#include <algorithm>

#include "tamis/base/exception_status.h"

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
  TAMIS_RETURN_IF_ERROR(catalog_->Commit(change));
  for (const auto& region : regions) OpenNew(region, Duration(0));
  return Status::Ok();
}

// Errors that may pass by themselves are not noted: the sweep tries again.
void RegionAssignment::NoteOutcome(uint64_t region_id, uint64_t epoch,
                                   const Status& committed) noexcept {
  const bool passes = committed.ok() || IsTransient(committed.code()) || IsOutOfMemory(committed);
  (void)WithoutExceptions([&] {
    std::lock_guard lock(mutex_);
    unassigned_.erase(region_id);
    if (!passes) unassigned_[region_id] = {.epoch = epoch, .why = committed};
    return Status::Ok();
  });
}

void RegionAssignment::ForgetOldFailures() {
  std::lock_guard lock(mutex_);
  std::erase_if(unassigned_, [this](const auto& failure) {
    const auto record = catalog_->Region(failure.first);
    return !record.has_value() || record->epoch() != failure.second.epoch;
  });
}

void RegionAssignment::Sweep() {
  // When memory does not suffice, the next sweep goes on.
  (void)WithoutExceptions([this] {
    lives_->ExpelSilent();
    ForgetOldFailures();
    ReopenClosed();
    GiveAwayUnserved();
    return Status::Ok();
  });
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

Status RegionAssignment::WhyUnserved(const pb::RegionRecord& record) const {
  Status why;
  {
    std::lock_guard lock(mutex_);
    const auto found = unassigned_.find(record.id());
    if (found == unassigned_.end() || found->second.epoch != record.epoch()) return Status::Ok();
    why = found->second.why;
  }
  return IsServed(record) ? Status::Ok() : why;
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
    const uint64_t former = record.epoch();
    record.set_epoch(catalog_->NewEpoch());
    SetOwner(server, &record);
    const Status committed = catalog_->Commit({.put_regions = {record}});
    NoteOutcome(record.id(), former, committed);
    TAMIS_RETURN_IF_ERROR(committed);
    fence->AdvanceExcluded(record.epoch());
  }
  if (auto owner = lives_->Find(server)) owner->OpenRegion(record, wait);
  return Status::Ok();
}

void RegionAssignment::OpenNew(const pb::RegionRecord& record, Duration wait) {
  fences_->Of(record.id())->Advance(record.epoch());
  if (auto owner = lives_->Find(record.server())) owner->OpenRegion(record, wait);
}

bool RegionAssignment::TryReopening(const pb::RegionRecord& record, Duration wait) {
  const std::string target = OwnerLike(record.server());
  return (!target.empty() && Assign(record, target, wait).ok()) || !IsCurrent(record);
}

void RegionAssignment::Reopen(const pb::RegionRecord& record, Duration wait) {
  if (TryReopening(record, wait)) return;
  std::lock_guard lock(mutex_);
  closed_.push_back({record, wait});
}

// A region leaves the list when it is settled, so that none is lost where memory does not suffice.
void RegionAssignment::ReopenClosed() {
  for (size_t i = 0;;) {
    Closed region;
    {
      std::lock_guard lock(mutex_);
      if (i >= closed_.size()) return;
      region = closed_[i];
    }
    if (!TryReopening(region.record, region.wait)) {
      ++i;
      continue;
    }
    std::lock_guard lock(mutex_);
    closed_.erase(closed_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace tamis
