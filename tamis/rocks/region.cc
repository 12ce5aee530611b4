#include "tamis/rocks/region.h"

#include <new>
#include <utility>

namespace tamis {

void RowLocks::Acquire(std::shared_ptr<const std::vector<std::string>> keys, Task granted) {
  const auto request = std::make_shared<Request>();
  request->keys = std::move(keys);
  for (const std::string& key : *request->keys) {
    request->own.emplace_hint(request->own.end(), key, Queue());
  }
  Queue place = {request};
  request->granted.push_back(std::make_shared<Task>(std::move(granted)));
  request->place = std::move(place);
  bool all;
  {
    std::lock_guard lock(mutex_);
    if (abandoned_) {
      request->place.clear();  // it would hold itself
      return;
    }
    all = Advance(request.get());
  }
  if (!all) return;
  request->place.clear();
  (*request->granted.front())();
}

bool RowLocks::Advance(Request* request) {
  while (request->held < request->keys->size()) {
    const std::string& key = (*request->keys)[request->held];
    if (const auto entry = waiting_.find(key); entry != waiting_.end()) {
      entry->second.splice(entry->second.end(), request->place);
      return false;
    }
    waiting_.insert(request->own.extract(key));
    ++request->held;
  }
  return true;
}

std::list<std::shared_ptr<RowLocks::Task>> RowLocks::Release(
    const std::vector<std::string>& keys) noexcept {
  std::list<std::shared_ptr<Task>> granted;
  std::lock_guard lock(mutex_);
  if (abandoned_) return granted;
  for (const std::string& key : keys) {
    auto entry = waiting_.find(key);
    if (entry->second.empty()) {
      waiting_.erase(entry);
      continue;
    }
    // The lock goes to the first that waits.
    const std::shared_ptr<Request> next = entry->second.front();
    next->place.splice(next->place.end(), entry->second, entry->second.begin());
    ++next->held;
    if (!Advance(next.get())) continue;
    granted.splice(granted.end(), next->granted);
    next->place.clear();
  }
  return granted;
}

void RowLocks::Abandon() {
  decltype(waiting_) dropped;  // destroyed without the lock: the tasks may hold the region
  std::lock_guard lock(mutex_);
  abandoned_ = true;
  dropped.swap(waiting_);
}

std::shared_ptr<IndexFilter> Region::filter(uint32_t index_id) const {
  std::lock_guard lock(mutex_);
  auto found = indexes_->find(index_id);
  return found == indexes_->end() ? nullptr : found->second.filter;
}

bool Region::IsEntriesComplete(uint32_t index_id) const {
  std::lock_guard lock(mutex_);
  auto found = indexes_->find(index_id);
  return found != indexes_->end() && found->second.entries_complete;
}

std::optional<Region::IndexFailures> Region::failures(uint32_t index_id) const {
  std::lock_guard lock(mutex_);
  auto found = failures_.find(index_id);
  return found == failures_.end() ? std::nullopt : std::optional(found->second);
}

void Region::NoteFailure(uint32_t index_id, const Status& failure, bool given_up) {
  std::lock_guard lock(mutex_);
  IndexFailures& failures = failures_[index_id];
  ++failures.attempts;
  failures.given_up = given_up;
  failures.last = failure;
}

void Region::ForgetFailures(uint32_t index_id) {
  std::lock_guard lock(mutex_);
  failures_.erase(index_id);
}

Region::Entry Region::Enter(Task retry) {
  std::lock_guard lock(mutex_);
  if (closed_) return Entry::kClosed;
  if (!alone_.empty() || alone_running_) {
    at_gate_.push_back(std::make_shared<Task>(std::move(retry)));
    return Entry::kWaiting;
  }
  ++inside_;
  return Entry::kInside;
}

void Region::Leave() {
  std::unique_lock lock(mutex_);
  --inside_;
  RunAlone(std::move(lock));
}

bool Region::Quiesce(Task alone) {
  std::unique_lock lock(mutex_);
  if (closed_) return false;
  alone_.push_back(std::move(alone));
  RunAlone(std::move(lock));
  return true;
}

void Region::RunAlone(std::unique_lock<std::mutex> lock) {
  while (inside_ == 0 && !alone_running_ && !alone_.empty()) {
    Task task = std::move(alone_.front());
    alone_.pop_front();
    alone_running_ = true;
    lock.unlock();
    try {
      task();
    } catch (const std::bad_alloc&) {  // the task found no memory; the write that leaves did not
                                       // cause it
    }
    lock.lock();
    alone_running_ = false;
  }
  if (alone_running_ || !alone_.empty()) return;
  std::list<std::shared_ptr<Task>> tasks;
  tasks.swap(at_gate_);
  lock.unlock();
  for (const auto& task : tasks) executor_->PostOrRun(task);
}

void Region::Close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

bool Region::SetEntryCopy(std::shared_ptr<EntryCopy> copy) {
  std::lock_guard lock(mutex_);
  if (entry_copy_) return false;
  entry_copy_ = std::move(copy);
  return true;
}

void Region::DropEntryCopy(const std::shared_ptr<EntryCopy>& copy) {
  std::shared_ptr<EntryCopy> dropped;  // destroyed without the lock
  std::lock_guard lock(mutex_);
  if (entry_copy_ == copy) dropped.swap(entry_copy_);
}

void Region::Abandon() {
  std::shared_ptr<EntryCopy> entry_copy;  // destroyed without the lock
  std::deque<Task> alone;
  std::list<std::shared_ptr<Task>> at_gate;
  {
    std::lock_guard lock(mutex_);
    entry_copy.swap(entry_copy_);
    closed_ = true;
    alone.swap(alone_);
    at_gate.swap(at_gate_);
  }
  locks_.Abandon();
}

void Region::SetSchema(SchemaPtr schema, Indexes indexes) {
  std::lock_guard lock(mutex_);
  schema_ = std::move(schema);
  indexes_ = std::make_shared<const Indexes>(std::move(indexes));
}

void Region::SetEntriesComplete(uint32_t index_id) {
  ChangeState(index_id, [](IndexState* state) { state->entries_complete = true; });
}

void Region::SetEntriesCleared(uint32_t index_id) {
  ChangeState(index_id, [](IndexState* state) { state->entries_cleared = true; });
}

void Region::ChangeState(uint32_t index_id, const std::function<void(IndexState*)>& change) {
  std::lock_guard lock(mutex_);
  Indexes changed = *indexes_;
  auto found = changed.find(index_id);
  if (found == changed.end()) return;
  change(&found->second);
  indexes_ = std::make_shared<const Indexes>(std::move(changed));
}

}  // namespace tamis
