#include "tamis/rocks/mutate_operation.h"

#include <algorithm>
#include <new>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/error.h"
#include "tamis/rocks/entry_copy.h"
#include "tamis/table/stored_row.h"

namespace tamis {

MutateOperation::MutateOperation(std::shared_ptr<const ServerContext> context,
                                 std::shared_ptr<Region> region, pb::RegionMutations mutations,
                                 uint64_t schema_version, Time deadline, Done done)
    : context_(std::move(context)),
      region_(std::move(region)),
      mutations_(std::move(mutations)),
      schema_version_(schema_version),
      deadline_(deadline),
      done_(std::move(done)) {}

void MutateOperation::Next(StepFunction step) {
  context_->executor->Step([self = shared_from_this(), step] { self->Run(step); });
}

void MutateOperation::Run(StepFunction step) noexcept {
  try {
    (this->*step)();
  } catch (...) {
    Fail(StatusOfStep());
  }
}

Status MutateOperation::StatusOfStep() const noexcept {
  Status status = StatusOfException();
  if (!may_stand_) return status;
  try {
    return DeadlineExceeded("the write may have been carried out: " + status.message());
  } catch (const std::bad_alloc&) {
    return DeadlineExceeded("it may be done");  // short enough to take no memory
  }
}

void MutateOperation::Begin() {
  if (Status refused = context_->store->RefuseChange(); !refused.ok()) {
    return Fail(std::move(refused));
  }
  auto keys = std::make_shared<std::vector<std::string>>();
  for (const pb::Mutation& mutation : mutations_.mutations()) {
    if (!region_->info().Contains(mutation.key())) {
      return Finish(Unavailable("a row key does not lie in the region: the region map is old"));
    }
    keys->push_back(mutation.key());
  }
  std::ranges::sort(*keys);
  keys->erase(std::unique(keys->begin(), keys->end()), keys->end());
  keys_ = std::move(keys);
  results_.resize(static_cast<size_t>(mutations_.mutations_size()));
  Enter();
}

void MutateOperation::Enter() {
  switch (region_->Enter([self = shared_from_this()] { self->Run(&MutateOperation::Enter); })) {
    case Region::Entry::kWaiting:
      return;
    case Region::Entry::kClosed:
      return Fail(Unavailable("the region is not open here any more"));
    case Region::Entry::kInside:
      inside_ = true;
  }
  if (context_->feed->Crowded()) {
    return Fail(Busy("too many writes wait for coordinators on server " + context_->name +
                     "; nothing was done, repeat it later"));
  }
  schema_ = region_->schema();
  if (schema_->version != schema_version_) {
    other_schema_version_ = schema_->version;
    return Fail(Unavailable("table \"" + schema_->name + "\" has schema version " +
                            std::to_string(schema_->version) + ", the request is for version " +
                            std::to_string(schema_version_)));
  }
  Next(&MutateOperation::Lock);
}

void MutateOperation::Lock() {
  region_->locks().Acquire(keys_, [self = shared_from_this()] {
    self->locked_ = true;
    self->Run(&MutateOperation::Locked);
  });
}

void MutateOperation::Locked() { Next(&MutateOperation::Read); }

void MutateOperation::Read() {
  std::vector<std::string> values;
  const std::vector<rocksdb::Status> statuses = ReadRows(&values);
  changes_.reserve(keys_->size());
  for (size_t i = 0; i < keys_->size(); ++i) {
    RowChange change{.key = (*keys_)[i], .before = {}, .after = {}};
    if (statuses[i].ok()) {
      auto old = ReadStoredRow(*schema_, change.key, values[i]);
      if (!old.ok()) return Fail(old.status().WithContext("cannot read the old row"));
      if (old->state == StoredRow::State::kRow) change.before = std::move(old->row);
      change.stored = std::move(values[i]);
      change.there = true;
    } else if (!statuses[i].IsNotFound()) {
      return Fail(FromRocks(statuses[i], "read the old row"));
    }
    change.after = change.before;
    changes_.push_back(std::move(change));
  }
  for (int i = 0; i < mutations_.mutations_size(); ++i) {
    const pb::Mutation& mutation = mutations_.mutations(i);
    results_[static_cast<size_t>(i)] = ChangeOf(mutation.key()).Apply(*schema_, mutation);
  }
  Next(&MutateOperation::Count);
}

std::vector<rocksdb::Status> MutateOperation::ReadRows(std::vector<std::string>* values) const {
  const uint32_t table_id = region_->info().table_id;
  const Store& store = *context_->store;
  const rocksdb::ReadOptions read_options;
  if (keys_->size() == 1) {
    return {store.db()->Get(read_options, store.rows(), RowStoreKey(table_id, keys_->front()),
                            &values->emplace_back())};
  }
  std::vector<std::string> store_keys;
  store_keys.reserve(keys_->size());
  for (const std::string& key : *keys_) store_keys.push_back(RowStoreKey(table_id, key));
  const std::vector<rocksdb::Slice> slices(store_keys.begin(), store_keys.end());
  const std::vector<rocksdb::ColumnFamilyHandle*> families(slices.size(), store.rows());
  return store.db()->MultiGet(read_options, families, slices, values);
}

RowChange& MutateOperation::ChangeOf(const std::string& key) {
  return changes_[static_cast<size_t>(std::ranges::lower_bound(*keys_, key) - keys_->begin())];
}

void MutateOperation::Count() {
  const auto indexes = region_->indexes();
  for (const auto& [index_id, state] : *indexes) {
    IndexChange index_change{.filter = state.filter};
    Status status = index_change.Collect(*context_, region_->info(), *schema_, index_id,
                                         state.entries_complete, changes_);
    if (!status.ok()) return Fail(std::move(status));
    index_changes_.push_back(std::move(index_change));
  }
  if (!context_->options.faults.increment_after_ack) {
    for (IndexChange& index : index_changes_) {
      if (index.add.empty()) continue;
      own_events_ = std::max(own_events_, index.filter->Add(index.add, &index.ticket));
    }
  }
  Next(&MutateOperation::Commit);
}

void MutateOperation::Commit() {
  rocksdb::WriteBatch batch;
  const uint32_t table_id = region_->info().table_id;
  for (const RowChange& change : changes_) {
    if (!change.touched) continue;
    const std::string key = RowStoreKey(table_id, change.key);
    if (change.stored.has_value()) {
      bytes_ += key.size() + change.stored->size();
      batch.Put(context_->store->rows(), key, *change.stored);
    } else if (change.there) {
      batch.Delete(context_->store->rows(), key);
    }
  }
  for (const IndexChange& index : index_changes_) {
    for (const std::string& key : index.delete_keys) batch.Delete(context_->store->index(), key);
    for (const auto& [key, value] : index.puts) batch.Put(context_->store->index(), key, value);
  }
  Status status;
  {
    auto fence = region_->fence().Enter(region_->info().epoch);
    if (!fence.owns_lock()) {
      status = Unavailable("the region has moved to another server");
    } else if (batch.Count() > 0) {
      may_stand_ = true;
      status = WriteEntries(context_->store, *region_, &batch);
      // Its record may be in the log all the same: what was counted stays counted.
      if (!status.ok())
        status = DeadlineExceeded("the write may have been carried out: " + status.message());
    }
  }
  if (!status.ok()) return Fail(status);
  Next(&MutateOperation::Uncount);
}

void MutateOperation::Uncount() {
  for (IndexChange& index : index_changes_) {
    if (!index.remove.empty()) index.filter->Remove(index.remove);
    index.filter->Leave(index.ticket);
  }
  uint64_t sequence = region_->acknowledge_after;
  for (IndexChange& index : index_changes_) {
    if (!index.held.empty()) sequence = std::max(sequence, index.filter->WaitFor(index.held));
  }
  const Faults& faults = context_->options.faults;
  if (faults.own_flips_only) sequence = std::max(own_events_, region_->acknowledge_after.load());
  if (faults.ignore_pending_flips) sequence = region_->acknowledge_after;
  own_events_ = sequence;
  region_->size_bytes += bytes_;
  Release();
  try {
    context_->after_write(region_);
  } catch (const std::bad_alloc&) {
    // The region is looked at again after the next write.
  }
  Acknowledge();
}

void MutateOperation::Acknowledge() {
  const bool holds_rows = std::ranges::any_of(
      changes_, [](const RowChange& change) { return change.touched && change.after.has_value(); });
  if (!holds_rows) return Finish(Status::Ok());
  Time not_before = region_->acknowledge_not_before;
  if (context_->options.faults.no_open_wait) {
    not_before = Time{};
    if (own_events_ == region_->acknowledge_after) own_events_ = 0;
  }
  context_->feed->WaitAcknowledged(
      own_events_, not_before, deadline_,
      [self = shared_from_this()](Status status) { self->Finish(std::move(status)); });
}

void MutateOperation::Release() noexcept {
  if (locked_) {
    locked_ = false;
    for (const auto& granted : region_->locks().Release(*keys_)) {
      context_->executor->PostOrRun(granted);
    }
  }
  if (inside_) {
    inside_ = false;
    region_->Leave();
  }
}

void MutateOperation::Fail(Status status) noexcept {
  if (!may_stand_) {
    for (IndexChange& index : index_changes_) index.filter->Leave(index.ticket);
  }
  Release();
  for (RowChange& change : changes_) change.touched = false;
  Finish(std::move(status));
}

void MutateOperation::Finish(Status status) noexcept {
  pb::RegionMutateResult result;
  result.set_region_id(mutations_.region_id());
  try {
    if (!status.ok()) {
      SetError(status, result.mutable_error());
      result.mutable_error()->set_schema_version(other_schema_version_);
    }
    for (const Status& each : results_) SetError(each, result.add_results());
  } catch (const std::bad_alloc&) {
    result.clear_error();
    result.clear_results();
  }
  done_(std::move(result));
  if (context_->options.faults.increment_after_ack) {
    context_->executor->Post([self = shared_from_this()] {
      for (IndexChange& index : self->index_changes_) {
        if (!index.add.empty()) index.filter->Add(index.add);
      }
    });
  }
}

}  // namespace tamis
