// Region: an open region of a region server: its gate, its row locks, its filters.
//
// Writes pass the gate: Enter before they lock rows, Leave after their commit and their decrements.
// Quiesce closes the gate, waits until no write is inside, runs a task alone, and opens the gate
// again; opening, closing, splitting, changing the schema and starting a new filter generation
// happen there. No thread blocks: an operation that has to wait leaves a task.
//
// Threads: safe, except the functions under "Alone": only a task that Quiesce runs may call them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.h"
#include "tamis/feed/index_filter.h"
#include "tamis/rocks/fence.h"
#include "tamis/rocks/server_executor.h"
#include "tamis/table/schema.h"

namespace tamis {

// Exclusive locks of row keys, granted in the order of asking.
//
// All memory that a request needs is taken when it is made, so that a release never fails.
class RowLocks {
 public:
  using Task = std::function<void()>;

  // Calls granted once all keys are held, maybe before it returns. After std::bad_alloc, unless it
  // is granted's, nothing is held and granted is not called. REQUIRES: keys sorted, distinct.
  void Acquire(std::shared_ptr<const std::vector<std::string>> keys, Task granted);
  // Returns the tasks of the requests that hold everything they wanted now.
  std::list<std::shared_ptr<Task>> Release(const std::vector<std::string>& keys) noexcept;
  // Drops the waiting requests and grants nothing any more.
  void Abandon();

 private:
  struct Request;
  using Queue = std::list<std::shared_ptr<Request>>;
  using Queues = std::map<std::string, Queue>;
  struct Request {
    std::shared_ptr<const std::vector<std::string>> keys;
    size_t held = 0;
    std::list<std::shared_ptr<Task>> granted;  // exactly one task
    Queue place;                               // this request, unless it stands in a queue
    Queues own;  // spare map nodes, for the keys that no other request holds
  };
  // Takes keys until one is held by another; true when all are held.
  bool Advance(Request* request);

  std::mutex mutex_;
  bool abandoned_ = false;
  Queues waiting_;  // waiters for held keys
};

class EntryCopy;

class Region : public std::enable_shared_from_this<Region> {
 public:
  using Task = std::function<void()>;
  struct IndexState {
    std::shared_ptr<IndexFilter> filter;
    bool entries_complete = false;  // all entries stand under the region's id
    bool entries_cleared = false;   // all that stand there were written since the region was opened
  };
  using Indexes = std::map<uint32_t, IndexState>;  // by id
  // Attempts to complete an index that failed, since the last one that succeeded.
  struct IndexFailures {
    uint64_t attempts = 0;
    bool given_up = false;  // there is no further attempt while the region is open
    Status last;
  };

  Region(RegionInfo info, SchemaPtr schema, std::shared_ptr<Fence> fence, ServerExecutor* executor)
      : info_(std::move(info)),
        fence_(std::move(fence)),
        executor_(executor),
        schema_(std::move(schema)) {}

  const RegionInfo& info() const { return info_; }
  Fence& fence() const { return *fence_; }
  RowLocks& locks() { return locks_; }

  SchemaPtr schema() const {
    std::lock_guard lock(mutex_);
    return schema_;
  }
  // The indexes that writes keep, as they are now.
  std::shared_ptr<const Indexes> indexes() const {
    std::lock_guard lock(mutex_);
    return indexes_;
  }
  std::shared_ptr<IndexFilter> filter(uint32_t index_id) const;
  bool IsEntriesComplete(uint32_t index_id) const;

  // nullopt: the last attempt did not fail, or there was none.
  std::optional<IndexFailures> failures(uint32_t index_id) const;
  void NoteFailure(uint32_t index_id, const Status& failure, bool given_up);
  void ForgetFailures(uint32_t index_id);

  enum class Entry { kInside, kWaiting, kClosed };
  // A write passes the gate. kWaiting: the gate is closed; `retry` runs later and must call Enter
  // again. It throws nothing.
  Entry Enter(Task retry);
  void Leave();
  // Runs `alone` when no write is inside and no other such task runs: before Quiesce returns if
  // that is so now, else on the thread of the last one to end. Returns false when the region is
  // closed already; it may also be closed by the time that `alone` runs, which must check closed().
  // If `alone` throws std::bad_alloc, the exception is dropped: the write whose thread it ran on
  // did not cause it.
  bool Quiesce(Task alone);

  // The region is open, no write is inside, and no task runs alone or waits to.
  bool IsQuiet() const {
    std::lock_guard lock(mutex_);
    return !closed_ && inside_ == 0 && !alone_running_ && alone_.empty();
  }

  // The copy of entries that a split makes, else nullptr. Batches that change entries are written
  // by WriteEntries (entry_copy.h), which notes them there.
  std::shared_ptr<EntryCopy> entry_copy() const {
    std::lock_guard lock(mutex_);
    return entry_copy_;
  }
  // False: there is one already.
  bool SetEntryCopy(std::shared_ptr<EntryCopy> copy);
  // Does nothing if the region has another one, or none.
  void DropEntryCopy(const std::shared_ptr<EntryCopy>& copy);

  // Closes the region of a server that dies: waiting operations are dropped, unanswered. They own
  // the region and would keep it for ever.
  void Abandon();

  // Alone:
  void Close();
  void SetSchema(SchemaPtr schema, Indexes indexes);
  void SetEntriesComplete(uint32_t index_id);
  void SetEntriesCleared(uint32_t index_id);

  bool closed() const {
    std::lock_guard lock(mutex_);
    return closed_;
  }

  // No put is acknowledged before this time, or before coordinators have applied this event.
  std::atomic<Time> acknowledge_not_before{Time{}};
  std::atomic<uint64_t> acknowledge_after{0};

  std::atomic<uint64_t> size_bytes{0};
  std::atomic<bool> split_requested{false};

 private:
  void ChangeState(uint32_t index_id, const std::function<void(IndexState*)>& change);
  void RunAlone(std::unique_lock<std::mutex> lock);

  const RegionInfo info_;
  const std::shared_ptr<Fence> fence_;
  ServerExecutor* const executor_;
  RowLocks locks_;

  mutable std::mutex mutex_;
  SchemaPtr schema_;
  std::shared_ptr<const Indexes> indexes_ = std::make_shared<const Indexes>();
  std::map<uint32_t, IndexFailures> failures_;  // by index id
  std::shared_ptr<EntryCopy> entry_copy_;
  bool closed_ = false;
  bool alone_running_ = false;
  uint64_t inside_ = 0;
  std::deque<Task> alone_;                    // waiting to run alone
  std::list<std::shared_ptr<Task>> at_gate_;  // waiting to enter
};

}  // namespace tamis
