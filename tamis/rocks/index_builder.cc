#include "tamis/rocks/index_builder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "tamis/base/exception_status.h"
#include "tamis/rocks/entry_cursor.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/row_cursor.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr Duration kRetryAfter = std::chrono::seconds(1);

Status Unreadable(const Status& why) {
  return DataLoss(
      "an index entry cannot be read, so no filter is made (tamis index rebuild makes "
      "the index anew): " +
      why.message());
}

}  // namespace

void IndexBuilder::Enqueue(std::shared_ptr<Region> region, uint32_t index_id) {
  Add(std::move(region), index_id, nullptr);
}

void IndexBuilder::Rebuild(std::shared_ptr<Region> region, uint32_t index_id, DoneCallback done) {
  Add(std::move(region), index_id, std::move(done));
}

void IndexBuilder::Add(std::shared_ptr<Region> region, uint32_t index_id, DoneCallback rebuilt) {
  JobPtr first;
  {
    std::lock_guard lock(mutex_);
    const auto waits = std::ranges::find_if(waiting_, [&](const JobPtr& job) {
      return job->region == region && job->index_id == index_id;
    });
    if (waits != waiting_.end()) {
      if (rebuilt) (*waits)->rebuilt.push_back(std::move(rebuilt));
      return;
    }
    auto job = std::make_shared<Job>();
    job->region = std::move(region);
    job->index_id = index_id;
    if (rebuilt) job->rebuilt.push_back(std::move(rebuilt));
    waiting_.push_back(std::move(job));
    if (running_) return;
    first = running_ = waiting_.front();
    waiting_.pop_front();
  }
  try {
    Continue(first, &IndexBuilder::Start);
  } catch (const std::bad_alloc&) {
    std::lock_guard lock(mutex_);
    running_.reset();
    throw;
  }
}

void IndexBuilder::Continue(JobPtr job, Step step) {
  context_->executor->Post(
      [self = shared_from_this(), job = std::move(job), step] { self->Run(job, step); });
}

void IndexBuilder::Run(JobPtr job, Step step) noexcept {
  try {
    (this->*step)(job);
  } catch (...) {
    if (job->snapshot) {
      job->filter->AbandonGeneration();
      job->snapshot.reset();
    }
    Finish(job, StatusOfException());
  }
}

size_t IndexBuilder::pending() const {
  std::lock_guard lock(mutex_);
  return waiting_.size() + (running_ ? 1 : 0);
}

void IndexBuilder::Abandon() {
  std::deque<JobPtr> waiting;  // destroyed without the lock
  JobPtr running;
  std::lock_guard lock(mutex_);
  waiting.swap(waiting_);
  running.swap(running_);
}

void IndexBuilder::Finish(JobPtr job, const Status& status) noexcept {
  if (std::exchange(job->holds_clearing, false)) job->filter->ReleaseClearing();
  for (const DoneCallback& rebuilt : job->rebuilt) {
    try {
      rebuilt(status);
    } catch (const std::bad_alloc&) {
      rebuilt(OutOfMemory());
    }
  }
  try {
    NoteOutcome(*job, status);
  } catch (const std::bad_alloc&) {
    // The region is searched without the index until it is opened again.
  }
  JobPtr next;
  {
    std::lock_guard lock(mutex_);
    running_.reset();
    if (!waiting_.empty()) {
      running_ = next = waiting_.front();
      waiting_.pop_front();
    }
  }
  try {
    // After splits the upper daughters are complete by now.
    if (!next) return context_->store->CompactGarbage(context_->catalog->region_count());
    Continue(next, &IndexBuilder::Start);
  } catch (const std::bad_alloc&) {
    if (next) Run(next, &IndexBuilder::Start);
  }
}

void IndexBuilder::GiveUp(JobPtr job, Status reason) {
  job->given_up = std::move(reason);
  Finish(job, Status::Ok());
}

void IndexBuilder::NoteOutcome(const Job& job, const Status& status) {
  const std::vector<uint32_t> ids = IndexesOf(job);
  if (status.ok() && job.given_up.ok()) {
    for (const uint32_t id : ids) job.region->ForgetFailures(id);
    return;
  }
  // Without a filter the index was dropped, and all is well.
  const bool again = !status.ok() && !job.region->closed() &&
                     (job.rebuilt.empty() || !job.filter || !job.filter->published());
  if (again) TryAgainLater(job);
  if (!again && job.given_up.ok()) return;
  for (const uint32_t id : ids) {
    job.region->NoteFailure(id, again ? status : job.given_up, /*given_up=*/!again);
  }
}

// The store did not let us: later again. Until then the region is searched without the index.
void IndexBuilder::TryAgainLater(const Job& job) {
  context_->executor->PostAfter(
      kRetryAfter, [self = shared_from_this(), region = job.region, ids = IndexesOf(job)] {
        for (const uint32_t id : ids) self->Enqueue(region, id);
      });
}

void IndexBuilder::Start(JobPtr job) {
  job->schema = job->region->schema();
  job->filter = job->region->filter(job->index_id);
  if (job->region->closed()) return Finish(job, RegionMoved());
  if (!job->filter) return Finish(job, Status::Ok());  // dropped meanwhile
  if (job->region->IsEntriesComplete(job->index_id) && job->rebuilt.empty()) {
    // Asked for more than once, and done since.
    const bool done =
        job->filter->published() && !job->filter->WantsRecount(context_->options.recount);
    if (done) return Finish(job, Status::Ok());
    BeginRecount(job);
    return;
  }
  // An index that is not complete stays so in a store that is read only, and is searched without.
  if (context_->store->options().read_only) {
    return GiveUp(job, FailedPrecondition("the store is open for reading only; the index is built "
                                          "when a program opens it for writing"));
  }
  if (!job->rebuilt.empty()) {
    job->filter->HoldClearing();  // entries may be missing
    job->holds_clearing = true;
  }
  // Where the index is not complete, the generation that counts the entries was begun when it came
  // into the region.
  job->targets = TakeTargets(*job);
  job->schema = job->region->schema();  // knows the columns of all of them
  Backfill(job);
}

std::vector<uint32_t> IndexBuilder::IndexesOf(const Job& job) {
  std::vector<uint32_t> ids = {job.index_id};
  for (size_t i = 1; i < job.targets.size(); ++i) ids.push_back(job.targets[i].index_id);
  return ids;
}

std::vector<RepairedIndex> IndexBuilder::TakeTargets(const Job& job) {
  std::vector<RepairedIndex> targets = {{job.index_id, job.filter}};
  if (!job.rebuilt.empty()) return targets;
  std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const JobPtr& other) {
    if (other->region != job.region || !other->rebuilt.empty() ||
        job.region->IsEntriesComplete(other->index_id)) {
      return false;
    }
    // Asked for twice, it is written and counted once.
    if (std::ranges::find(targets, other->index_id, &RepairedIndex::index_id) != targets.end())
      return true;
    auto filter = job.region->filter(other->index_id);
    if (!filter) return false;
    targets.push_back({other->index_id, std::move(filter)});
    return true;
  });
  return targets;
}

// ---- Backfill

void IndexBuilder::Backfill(JobPtr job) {
  const Region& region = *job->region;
  if (region.closed()) return Finish(job, RegionMoved());
  const RegionInfo& info = region.info();
  auto keys = std::make_shared<std::vector<std::string>>();
  const std::string start = job->cursor.empty() ? info.start : job->cursor + '\0';
  RowCursor rows(*context_->store, info.table_id, {start, info.end});
  for (; rows.Valid() && keys->size() < context_->options.build_rows; rows.Next()) {
    if (rows.key().empty()) continue;  // no row of any table; and no cursor to go on from
    keys->emplace_back(rows.key());
  }
  if (Status status = rows.status("read rows"); !status.ok()) return Finish(job, status);
  if (keys->empty()) {
    job->cursor.clear();
    if (region.IsEntriesComplete(job->index_id)) return Sweep(job);
    if (!job->region->Quiesce([self = shared_from_this(), job] {
          self->Run(job, &IndexBuilder::CompleteBackfill);
        })) {
      Finish(job, RegionMoved());
    }
    return;
  }
  job->locked = keys;
  job->region->locks().Acquire(keys, [self = shared_from_this(), job] {
    self->RunLocked(job, &IndexBuilder::WriteEntries);
  });
}

// An operation that was granted its locks goes on in a step, or on this thread where there is no
// memory for that. It frees them before it does anything else that may throw.
void IndexBuilder::RunLocked(JobPtr job, Step step) noexcept {
  try {
    context_->executor->Step([self = shared_from_this(), job, step] { self->Run(job, step); });
  } catch (const std::bad_alloc&) {
    Run(job, step);
  }
}

void IndexBuilder::Unlock(const Job& job) noexcept {
  for (const auto& granted : job.region->locks().Release(*job.locked)) {
    context_->executor->PostOrRun(granted);
  }
}

void IndexBuilder::WriteEntries(JobPtr job) {
  const auto keys = job->locked;
  const Status status = WithoutExceptions([&] {
    return WriteMissingEntries(*context_, *job->region, *job->schema, job->targets, *keys);
  });
  Unlock(*job);
  if (!status.ok()) return Finish(job, status);
  job->cursor = keys->back();
  Continue(job, &IndexBuilder::Backfill);
}

void IndexBuilder::CompleteBackfill(JobPtr job) {
  const RegionInfo& info = job->region->info();
  if (job->region->closed()) return Finish(job, RegionMoved());
  for (const RepairedIndex& target : job->targets) {
    const auto marked =
        context_->catalog->MarkComplete(info.id.number(), info.epoch, target.index_id);
    if (!marked.ok()) return Finish(job, marked.status());
    if (!*marked) return Finish(job, RegionMoved());
    job->region->SetEntriesComplete(target.index_id);
    target.filter->Publish();
    CountAgainToFit(job->region, target);
  }
  Finish(job, Status::Ok());
}

// The size of the first generation is a guess; now it is known.
void IndexBuilder::CountAgainToFit(const std::shared_ptr<Region>& region,
                                   const RepairedIndex& target) {
  if (target.filter->WantsRecount(context_->options.recount)) {
    Enqueue(region, target.index_id);
  }
}

// ---- Sweep

void IndexBuilder::Sweep(JobPtr job) {
  const Region& region = *job->region;
  if (region.closed()) return Finish(job, RegionMoved());
  auto keys = std::make_shared<std::vector<std::string>>();
  job->suspects.clear();
  EntryCursor entries(*context_->store, IndexPrefix(region.info().id.number(), job->index_id));
  entries.SeekBehind(job->cursor);
  uint64_t seen = 0;
  for (; entries.Valid() && seen < context_->options.build_rows; entries.Next(), ++seen) {
    job->cursor = entries.entry();
    const auto split = SplitIndexEntry(*job->schema, job->filter->index(), job->cursor);
    if (split.ok()) {
      if (!region.info().Contains(split->second)) continue;  // garbage is the compactions' matter
      keys->emplace_back(split->second);
    }
    job->suspects.push_back(job->cursor);
  }
  if (Status status = entries.status(); !status.ok()) return Finish(job, status);
  if (seen == 0) {
    job->cursor.clear();
    return BeginRecount(job);
  }
  std::ranges::sort(*keys);
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  job->locked = keys;
  job->region->locks().Acquire(keys, [self = shared_from_this(), job] {
    self->RunLocked(job, &IndexBuilder::RemoveForeign);
  });
}

void IndexBuilder::RemoveForeign(JobPtr job) {
  const Status status = WithoutExceptions([&] {
    return RemoveForeignEntries(*context_, *job->region, *job->schema, {job->index_id, job->filter},
                                job->suspects);
  });
  Unlock(*job);
  if (!status.ok()) return Finish(job, status);
  Continue(job, &IndexBuilder::Sweep);
}

// ---- Recount

void IndexBuilder::BeginRecount(JobPtr job) {
  const bool open = job->region->Quiesce(
      [self = shared_from_this(), job] { self->Run(job, &IndexBuilder::BeginRecountAlone); });
  if (!open) Finish(job, RegionMoved());
}

void IndexBuilder::BeginRecountAlone(JobPtr job) {
  auto fence = job->region->fence().Enter(job->region->info().epoch);
  if (job->region->closed() || !fence.owns_lock()) {
    if (fence.owns_lock()) fence.unlock();
    return Finish(job, RegionMoved());
  }
  rocksdb::DB* db = context_->store->db();
  job->snapshot = std::shared_ptr<const rocksdb::Snapshot>(
      db->GetSnapshot(),
      [db](const rocksdb::Snapshot* snapshot) { db->ReleaseSnapshot(snapshot); });
  job->filter->BeginGeneration(/*hold_removals=*/true);
  fence.unlock();
  Continue(job, &IndexBuilder::Recount);
}

void IndexBuilder::Recount(JobPtr job) {
  const Region& region = *job->region;
  if (region.closed()) return Finish(job, RegionMoved());
  rocksdb::ReadOptions read_options;
  read_options.snapshot = job->snapshot.get();
  read_options.fill_cache = false;
  EntryCursor entries(*context_->store, IndexPrefix(region.info().id.number(), job->index_id),
                      read_options);
  std::vector<EntryKey> counted;
  entries.SeekBehind(job->cursor);
  uint64_t seen = 0;
  for (; entries.Valid() && seen < context_->options.build_rows; entries.Next(), ++seen) {
    job->cursor = entries.entry();
    const auto split = SplitIndexEntry(*job->schema, job->filter->index(), job->cursor);
    if (!split.ok()) {
      // Unreadable entries cannot be counted; without a filter the region is always asked.
      job->filter->AbandonGeneration();
      return GiveUp(job, Unreadable(split.status()));
    }
    if (!region.info().Contains(split->second)) continue;  // garbage
    auto key = IndexEntry::OfValues(*job->schema, job->filter->index(), split->first);
    if (!key.ok()) {
      job->filter->AbandonGeneration();
      return GiveUp(job, Unreadable(key.status()));
    }
    counted.push_back(std::move(key->filter_key));
  }
  if (Status status = entries.status(); !status.ok()) {
    job->filter->AbandonGeneration();
    return Finish(job, status);
  }
  const bool more = entries.Valid();
  job->filter->CountExisting(counted);
  if (more) {
    return Continue(job, &IndexBuilder::Recount);
  }
  // The entries of a dropped index go at compactions, maybe before this region hears of it.
  if (context_->catalog->HasIndex(region.info().table_id, job->index_id)) {
    job->filter->Publish();
    job->snapshot.reset();
    CountAgainToFit(job->region, {job->index_id, job->filter});
  } else {
    job->filter->AbandonGeneration();
    job->snapshot.reset();
  }
  Finish(job, Status::Ok());
}

}  // namespace tamis
