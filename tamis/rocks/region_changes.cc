#include "tamis/rocks/region_changes.h"

#include <algorithm>
#include <optional>

#include "tamis/rocks/answered_once.h"

namespace tamis {

RegionChanges::RegionChanges(Executor* executor, Duration timeout, Catalog* catalog,
                             FenceTable* fences, std::shared_ptr<ServerLives> lives,
                             std::shared_ptr<RegionAssignment> assignment)
    : executor_(executor),
      timeout_(timeout),
      catalog_(catalog),
      fences_(fences),
      lives_(std::move(lives)),
      assignment_(std::move(assignment)) {}

DoneCallback RegionChanges::Once(const std::string& doing, DoneCallback done) const {
  return OnceWithin(executor_, timeout_, doing, std::move(done));
}

Result<pb::RegionRecord> RegionChanges::FindRegion(RegionId region, std::string_view doing) const {
  auto record = catalog_->Region(region.number());
  if (record.has_value()) return *std::move(record);
  return NotFound("cannot " + std::string(doing) + " region " + region.ToString() +
                  ": there is none");
}

void RegionChanges::Split(RegionId region, std::string key, DoneCallback done) {
  const auto record = FindRegion(region, "split");
  if (!record.ok()) return done(record.status());
  auto server = lives_->FindRunning(record->server());
  if (!server) {
    return done(Unavailable("cannot split region " + region.ToString() +
                            ": its region server is not running"));
  }
  server->SplitRegion(region.number(), std::move(key),
                      Once("split region " + region.ToString(), std::move(done)));
}

void RegionChanges::Move(RegionId region, const std::string& target, DoneCallback done) {
  const auto record = FindRegion(region, "move");
  if (!record.ok()) return done(record.status());
  if (!lives_->Find(target)) {
    return done(NotFound("cannot move region " + region.ToString() +
                         ": there is no region server \"" + target + "\""));
  }
  auto source = lives_->FindRunning(record->server());
  if (!source || !lives_->IsMember(target)) {
    return done(Unavailable("cannot move region " + region.ToString() +
                            ": a region server is not running"));
  }
  if (record->server() == target) return done(Status::Ok());
  auto once = Once("move region " + region.ToString(), std::move(done));
  // Counted for as long as the order lives: a server that dies drops it unanswered.
  ++moving_;
  const std::shared_ptr<void> moving(nullptr, [weak = weak_from_this()](void*) {
    if (auto self = weak.lock()) --self->moving_;
  });
  source->CloseRegion(record->id(), record->epoch(),
                      [weak = weak_from_this(), moving, record = *record, target,
                       once](const Result<bool>& closed) {
                        auto self = weak.lock();
                        if (!self) return;
                        if (!closed.ok()) return once(closed.status());
                        // The target may have died meanwhile; the region must not stay closed.
                        RegionAssignment& assignment = *self->assignment_;
                        const Duration wait = assignment.WaitAfter(closed);
                        const Status moved =
                            assignment.Assign(record, assignment.OwnerLike(target), wait);
                        if (!moved.ok()) assignment.Reopen(record, wait);
                        once(moved);
                      });
}

void RegionChanges::Merge(RegionId region, DoneCallback done) {
  const auto found = FindRegion(region, "merge");
  if (!found.ok()) return done(found.status());
  const pb::RegionRecord left = *found;
  std::optional<pb::RegionRecord> behind;
  for (const auto& other : catalog_->Regions(left.table_id())) {
    if (!left.end().empty() && other.start() == left.end()) behind = other;
  }
  if (!behind.has_value()) {
    return done(FailedPrecondition("cannot merge region " + region.ToString() +
                                   ": it is the last one of its table"));
  }
  const pb::RegionRecord right = *behind;
  auto left_server = lives_->FindRunning(left.server());
  auto right_server = lives_->FindRunning(right.server());
  if (!left_server || !right_server) {
    return done(Unavailable("cannot merge region " + region.ToString() +
                            ": a region server is not running"));
  }
  auto once = Once("merge region " + region.ToString(), std::move(done));
  // The left region is opened again whatever the outcome: it must not stay closed.
  auto settled = std::make_shared<std::atomic<bool>>(false);
  left_server->CloseRegion(
      left.id(), left.epoch(), [=, weak = weak_from_this()](const Result<bool>& left_closed) {
        auto self = weak.lock();
        if (!self) return;
        if (!left_closed.ok()) return once(left_closed.status());
        const Duration left_wait = self->assignment_->WaitAfter(left_closed);
        const auto abandon = [=](const Status& status) {
          auto merging = weak.lock();
          if (!merging || settled->exchange(true)) return;
          merging->assignment_->Reopen(left, left_wait);
          once(status);
        };
        // A server that does not answer within two sessions is dead.
        self->executor_->PostAfter(2 * self->lives_->session_timeout(), [abandon] {
          abandon(Unavailable(
              "cannot merge the regions: the right one was not closed in time; merge again"));
        });
        right_server->CloseRegion(right.id(), right.epoch(), [=](const Result<bool>& right_closed) {
          auto merging = weak.lock();
          if (!merging) return;
          if (!right_closed.ok()) return abandon(right_closed.status());
          RegionAssignment& assignment = *merging->assignment_;
          const Duration right_wait = assignment.WaitAfter(right_closed);
          const Status merged =
              settled->exchange(true)
                  ? Unavailable(
                        "cannot merge the regions: the right one was closed too late; merge again")
                  : merging->CommitMerge(left, right, std::max(left_wait, right_wait));
          if (!merged.ok()) {
            assignment.Reopen(left, left_wait);
            assignment.Reopen(right, right_wait);
          }
          once(merged);
        });
      });
}

// REQUIRES: both neighbours are closed.
Status RegionChanges::CommitMerge(const pb::RegionRecord& left, const pb::RegionRecord& right,
                                  Duration wait) {
  pb::RegionRecord merged;
  {
    const auto left_fence = fences_->Of(left.id());
    const auto right_fence = fences_->Of(right.id());
    const bool in_order = left.id() < right.id();
    const auto first = (in_order ? left_fence : right_fence)->Exclude();
    const auto second = (in_order ? right_fence : left_fence)->Exclude();
    if (!assignment_->IsCurrent(left) || !assignment_->IsCurrent(right)) {
      return Unavailable(
          "cannot merge the regions: one of them was moved, split or merged meanwhile; look at the "
          "regions and merge again");
    }
    merged.set_id(catalog_->NewRegionId());
    merged.set_epoch(catalog_->NewEpoch());
    merged.set_table_id(left.table_id());
    merged.set_start(left.start());
    merged.set_end(right.end());
    assignment_->SetOwner(assignment_->OwnerLike(left.server()), &merged);
    TAMIS_RETURN_IF_ERROR(
        catalog_->Commit({.put_regions = {merged}, .erase_regions = {left.id(), right.id()}}));
    left_fence->AdvanceExcluded(merged.epoch());
    right_fence->AdvanceExcluded(merged.epoch());
  }
  assignment_->OpenNew(merged, wait);
  return Status::Ok();
}

void RegionChanges::Balance(Callback<uint64_t> done) {
  BalanceNext(std::make_shared<uint64_t>(0), std::move(done));
}

void RegionChanges::BalanceNext(std::shared_ptr<uint64_t> moved, Callback<uint64_t> done) {
  const auto loads = assignment_->Loads();
  if (loads.empty()) {
    return done(Unavailable("cannot balance regions: no region server is running; resume one"));
  }
  const auto by_load = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto least = std::ranges::min_element(loads, by_load);
  const auto most = std::ranges::max_element(loads, by_load);
  if (most->second <= least->second + 1) return done(*moved);
  // The youngest region of the fullest server: of a split, the upper daughter.
  std::optional<pb::RegionRecord> region;
  for (const auto& record : catalog_->Regions()) {
    if (record.server() == most->first) region = record;
  }
  if (!region.has_value()) return done(*moved);
  Move(RegionId(region->id()), least->first,
       [weak = weak_from_this(), moved, done](const Status& status) {
         auto self = weak.lock();
         if (!self) return;
         if (!status.ok()) return done(status);
         ++*moved;
         self->executor_->Post([weak, moved, done] {
           if (auto live = weak.lock()) live->BalanceNext(moved, done);
         });
       });
}

void RegionChanges::BalanceSoon() {
  if (balancing_.exchange(true)) return;
  Balance([weak = weak_from_this()](const Result<uint64_t>&) {
    if (auto self = weak.lock()) self->balancing_ = false;
  });
}

size_t RegionChanges::pending() const {
  return static_cast<size_t>(moving_.load()) + (balancing_ ? 1 : 0);
}

}  // namespace tamis
