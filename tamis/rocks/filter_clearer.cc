#include "tamis/rocks/filter_clearer.h"

#include <algorithm>
#include <new>

#include "tamis/rocks/index_entry.h"

namespace tamis {
namespace {

constexpr size_t kCellsAtOnce = 64;
constexpr int kMostEntries = 64;  // looked at for one cell, or for one end of the range

}  // namespace

void FilterClearer::Enqueue(std::shared_ptr<Region> region, uint32_t index_id) noexcept {
  try {
    const auto job = std::make_shared<Job>();
    job->region = std::move(region);
    job->index_id = index_id;
    {
      std::lock_guard lock(mutex_);
      const bool waits = std::ranges::any_of(jobs_, [&](const JobPtr& other) {
        return other->region == job->region && other->index_id == index_id;
      });
      if (waits) return;
      jobs_.push_back(job);
    }
    try {
      context_->executor->PostAfter(
          context_->options.clear_delay,
          [self = shared_from_this(), job] { self->Run(job, &FilterClearer::Begin); });
    } catch (const std::bad_alloc&) {
      Finish(job);
    }
  } catch (const std::bad_alloc&) {
    // The next write asks again.
  }
}

size_t FilterClearer::pending() const {
  std::lock_guard lock(mutex_);
  return jobs_.size();
}

void FilterClearer::Abandon() {
  std::deque<JobPtr> jobs;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  jobs.swap(jobs_);
}

void FilterClearer::Continue(const JobPtr& job, Step step) {
  context_->executor->Post([self = shared_from_this(), job, step] { self->Run(job, step); });
}

// Where a step throws (std::bad_alloc), nothing is cleared; the next write asks again.
void FilterClearer::Run(const JobPtr& job, Step step) noexcept {
  try {
    (this->*step)(job);
  } catch (...) {
    Finish(job);
  }
}

void FilterClearer::Finish(const JobPtr& job) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(jobs_, job);
}

void FilterClearer::Begin(const JobPtr& job) {
  job->schema = job->region->schema();
  job->filter = job->region->filter(job->index_id);
  if (job->region->closed() || !job->filter || !job->filter->WantsClearing()) return Finish(job);
  if (!context_->options.faults.clear_by_old_snapshot) return BeginRound(job);
  TakeSnapshot(job.get());
  Continue(job, &FilterClearer::BeginRound);
}

void FilterClearer::BeginRound(const JobPtr& job) {
  job->clearing = job->filter->BeginClearing(kCellsAtOnce);
  job->cleared = {};
  if (job->clearing.round == 0) return Finish(job);
  Continue(job, &FilterClearer::Search);
}

void FilterClearer::TakeSnapshot(Job* job) const {
  rocksdb::DB* const db = context_->store->db();
  job->snapshot = std::shared_ptr<const rocksdb::Snapshot>(
      db->GetSnapshot(),
      [db](const rocksdb::Snapshot* snapshot) { db->ReleaseSnapshot(snapshot); });
}

void FilterClearer::Search(const JobPtr& job) {
  if (job->region->closed()) return Finish(job);
  if (!context_->options.faults.clear_by_old_snapshot) TakeSnapshot(job.get());
  rocksdb::ReadOptions read_options;
  read_options.snapshot = job->snapshot.get();
  EntryCursor entries(*context_->store, IndexPrefix(job->region->info().id.number(), job->index_id),
                      read_options);
  for (const uint32_t cell : job->clearing.cells) LookAt(job.get(), cell, &entries);
  if (job->clearing.range) job->cleared.range_known = FindRange(job.get(), &entries);
  const bool good = entries.status().ok();
  job->snapshot.reset();
  if (!good) return Finish(job);
  Continue(job, &FilterClearer::End);
}

void FilterClearer::End(const JobPtr& job) {
  if (job->region->closed()) return Finish(job);
  job->filter->EndClearing(job->clearing, job->cleared);
  job->undecided += job->cleared.undecided.size();
  if (job->clearing.range && !job->cleared.range_known) ++job->undecided;
  const bool goes_on = job->undecided < kCellsAtOnce;
  if (goes_on && job->clearing.cells.size() == kCellsAtOnce) return Begin(job);
  Finish(job);
  // Cells that writes were registered for, and those of removals since. Undecided cells will not be
  // decided soon: they are looked at again after a later write.
  if (job->undecided == 0 && job->filter->WantsClearing()) Enqueue(job->region, job->index_id);
}

std::optional<std::string> FilterClearer::FirstOf(const Job& job, std::string_view entry,
                                                  bool* inside) const {
  const auto split = SplitIndexEntry(*job.schema, job.filter->index(), entry);
  if (!split.ok()) return std::nullopt;
  auto read = IndexEntry::OfValues(*job.schema, job.filter->index(), split->first);
  if (!read.ok()) return std::nullopt;
  *inside = job.region->info().Contains(split->second);
  return std::move(read->filter_key.first);
}

void FilterClearer::LookAt(Job* job, uint32_t cell, EntryCursor* entries) const {
  const CellMap& map = *job->clearing.map;
  entries->Seek(map.LowestOf(cell));
  for (int seen = 0; entries->Valid(); entries->Next(), ++seen) {
    if (seen == kMostEntries && context_->options.faults.undecided_is_empty) break;
    bool inside = false;
    const auto first =
        seen < kMostEntries ? FirstOf(*job, entries->entry(), &inside) : std::nullopt;
    if (!first.has_value()) return job->cleared.undecided.push_back(cell);
    const uint32_t of = map.CellOf(*first);
    if (of > cell) break;
    if (of == cell && inside) return;
  }
  // An error of the cursor ends the job.
  job->cleared.empty.push_back(cell);
}

// False when it is not decided.
bool FilterClearer::FindRange(Job* job, EntryCursor* entries) const {
  std::optional<std::string> ends[2];
  for (const bool last : {false, true}) {
    last ? entries->SeekBefore("") : entries->Seek("");
    for (int seen = 0; entries->Valid(); last ? entries->Prev() : entries->Next(), ++seen) {
      if (seen == kMostEntries) return false;
      bool inside = false;
      auto first = FirstOf(*job, entries->entry(), &inside);
      if (!first.has_value()) return false;
      if (!inside) continue;
      ends[last] = std::move(first);
      break;
    }
    if (!entries->status().ok()) return false;
  }
  if (ends[0].has_value()) job->cleared.range.emplace(*ends[0], *ends[1]);
  return true;
}

}  // namespace tamis
