#include "tamis/query/table_cache.h"

#include <algorithm>
#include <iterator>

#include "tamis/base/exception_status.h"

namespace tamis {
namespace {

bool IsSame(const RegionInfo& a, const RegionInfo& b) {
  return a.id == b.id && a.epoch == b.epoch && a.server == b.server && a.start == b.start &&
         a.end == b.end;
}

// The range, widened to whole known regions. A caller that asks only for the keys of one daughter
// of a known region would otherwise leave a gap where the other daughters are.
KeyRange Widened(KeyRange range, const std::vector<RegionInfo>& known) {
  auto region = std::ranges::upper_bound(known, range.start, {}, &RegionInfo::start);
  if (region != known.begin() && std::prev(region)->Contains(range.start)) {
    range.start = std::prev(region)->start;
  }
  for (auto next = region == known.begin() ? region : std::prev(region);
       next != known.end() && range.Overlaps(next->keys()); ++next) {
    if (!range.end.empty() && (next->end.empty() || next->end > range.end)) range.end = next->end;
  }
  return range;
}

// The regions known after `listed` arrived as the answer for `asked`.
std::vector<RegionInfo> Merge(const std::vector<RegionInfo>& known, const KeyRanges& asked,
                              const std::vector<RegionInfo>& listed) {
  std::vector<RegionInfo> merged = listed;
  KeyRanges fresh = asked;
  for (const RegionInfo& region : listed) fresh.Add(region.keys());
  for (const RegionInfo& old : known) {
    if (!fresh.Overlaps(old.keys())) merged.push_back(old);
  }
  std::ranges::sort(merged, {}, &RegionInfo::start);
  return merged;
}

// Why a region of these keys is open nowhere, if that lasts. The caller would otherwise ask again
// until its time is over.
Status WhyUnserved(const std::vector<RegionInfo>& unserved, const std::vector<KeyRange>& stale) {
  for (const RegionInfo& region : unserved) {
    const KeyRange keys = region.keys();
    if (std::ranges::any_of(stale, [&](const KeyRange& range) { return range.Overlaps(keys); })) {
      return region.unserved;
    }
  }
  return Status::Ok();
}

}  // namespace

Result<SchemaPtr> TableCache::Table(const std::string& name) {
  SchemaPtr older;
  {
    std::lock_guard lock(mutex_);
    if (auto found = tables_.find(name); found != tables_.end()) {
      auto newest = versions_.find(found->second->id);
      if (newest == versions_.end() || newest->second <= found->second->version) {
        return found->second;
      }
      older = found->second;
    }
  }
  auto refreshed = RefreshTable(name);
  // An older schema serves, too, while the cluster cannot be asked.
  if (!refreshed.ok() && older && refreshed.status().code() != StatusCode::kNotFound) return older;
  return refreshed;
}

Result<SchemaPtr> TableCache::RefreshTable(const std::string& name,
                                           const std::atomic<bool>* cancelled) {
  TAMIS_ASSIGN_OR_RETURN(
      TableSchema table,
      AwaitResult<TableSchema>(
          executor_, {.deadline = executor_->Now() + options_.timeout, .cancelled = cancelled},
          [&](auto done) { cluster_->GetTable(name, std::move(done)); }));
  auto schema = std::make_shared<const TableSchema>(std::move(table));
  std::lock_guard lock(mutex_);
  tables_[name] = schema;
  return SchemaPtr(schema);
}

TableCache::Regions TableCache::KnownRegions(uint32_t table_id) const {
  std::lock_guard lock(mutex_);
  auto found = regions_.find(table_id);
  return found == regions_.end() ? nullptr : found->second.known;
}

void TableCache::RefreshRegions(const TableSchema& table, const std::vector<KeyRange>& stale,
                                Callback<Regions> done) {
  std::unique_lock lock(mutex_);
  TableRegions& regions = regions_[table.id];
  regions.name = table.name;
  if (stale.empty() || regions.known == nullptr) regions.all_stale = true;
  for (KeyRange range : stale) {
    if (regions.known != nullptr) range = Widened(std::move(range), *regions.known);
    regions.stale.Add(std::move(range));
  }
  regions.waiting.push_back({stale, std::move(done)});
  if (!regions.asking) AskSoon(table.id, &regions, &lock);
}

void TableCache::AskSoon(uint32_t table_id, TableRegions* regions,
                         std::unique_lock<std::mutex>* lock) {
  regions->asking = true;
  const Duration pause = regions->not_before - executor_->Now();
  if (pause < -kRetryPauses.longest()) regions->backoff.Reset();  // another trouble than the last
  lock->unlock();
  if (pause > Duration(0)) {
    const Status posted = WithoutExceptions([&] {
      executor_->PostAfter(pause, [weak = weak_from_this(), table_id] {
        if (auto self = weak.lock()) self->Ask(table_id);
      });
      return Status::Ok();
    });
    if (posted.ok()) return;  // else it is asked without the pause
  }
  Ask(table_id);
}

class TableCache::Call {
 public:
  explicit Call(TableCache* cache) : cache_(cache) { ++cache_->calls_; }
  ~Call() {
    std::lock_guard lock(cache_->mutex_);
    if (--cache_->calls_ == 0) cache_->idle_.notify_all();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  TableCache* const cache_;
};

void TableCache::Ask(uint32_t table_id) {
  std::string name;
  std::vector<KeyRange> asked;
  uint64_t question;
  Status failed;
  std::optional<Call> call;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return;
    call.emplace(this);
    TableRegions& regions = regions_.at(table_id);
    regions.asked = std::exchange(regions.stale, {});
    if (std::exchange(regions.all_stale, false)) regions.asked = {};
    regions.sharing = std::exchange(regions.waiting, {});
    question = ++regions.question;
    failed = WithoutExceptions([&] {
      name = regions.name;
      asked = regions.asked.ranges();
      return Status::Ok();
    });
  }
  if (failed.ok()) {
    failed = WithoutExceptions([&] {
      Send(table_id, question, name, std::move(asked));
      return Status::Ok();
    });
  }
  if (!failed.ok()) Take(table_id, question, failed);
}

void TableCache::Send(uint32_t table_id, uint64_t question, const std::string& name,
                      std::vector<KeyRange> asked) {
  // A question that is never answered must not end the asking.
  executor_->PostAfter(options_.timeout, [weak = weak_from_this(), table_id, question] {
    if (auto self = weak.lock()) {
      self->Take(table_id, question, DeadlineExceeded("the regions were not listed in time"));
    }
  });
  cluster_->ListRegions(
      name, std::move(asked),
      [weak = weak_from_this(), table_id, question](Result<std::vector<RegionInfo>> listed) {
        if (auto self = weak.lock()) {
          self->Take(table_id, question, std::move(listed));
        }
      });
}

void TableCache::Take(uint32_t table_id, uint64_t question,
                      Result<std::vector<RegionInfo>> listed) {
  std::vector<Caller> sharing;
  std::vector<RegionInfo> unserved;
  Result<Regions> answer = Regions();
  {
    std::unique_lock lock(mutex_);
    auto found = regions_.find(table_id);
    if (found == regions_.end() || !found->second.asking || found->second.question != question) {
      return;
    }
    TableRegions& regions = found->second;
    // A question is answered once. A late second answer must not end the next question before it is
    // asked: the callers that wait for that one would never get an answer.
    ++regions.question;
    bool news = false;
    answer = WithoutExceptions([&]() -> Result<Regions> {
      // A table of that name that was made since is another one.
      const bool gone = listed.ok() && ((listed->empty() && regions.asked.empty()) ||
                                        (!listed->empty() && listed->front().table_id != table_id));
      if (gone) return NotFound("the table does not exist any more");
      if (!listed.ok()) return listed.status();
      std::ranges::copy_if(*listed, std::back_inserter(unserved),
                           [](const RegionInfo& region) { return !region.unserved.ok(); });
      const std::vector<RegionInfo> none;
      const std::vector<RegionInfo>& known = regions.known ? *regions.known : none;
      auto merged = std::make_shared<const std::vector<RegionInfo>>(
          regions.asked.empty() ? *std::move(listed) : Merge(known, regions.asked, *listed));
      news = !std::ranges::equal(known, *merged, IsSame);
      regions.known = merged;
      return Regions(merged);
    });
    // The next request for the name finds the table that has it now, if there is one.
    if (answer.status().code() == StatusCode::kNotFound) Drop(table_id);
    if (news) regions.backoff.Reset();
    regions.not_before = executor_->Now() + std::max(regions.backoff.Next(), kRetryPauses.first());
    sharing = std::exchange(regions.sharing, {});
    regions.asking = false;
    if (!regions.waiting.empty()) AskSoon(table_id, &regions, &lock);
  }
  for (const Caller& caller : sharing) {
    // A lack of memory ends this caller's request, and the others get their answers.
    auto of_caller = WithoutExceptions([&]() -> Result<Regions> {
      if (answer.ok()) TAMIS_RETURN_IF_ERROR(WhyUnserved(unserved, caller.stale));
      return answer;
    });
    caller.done(std::move(of_caller));
  }
}

void TableCache::Heard(uint32_t table_id, uint64_t version) {
  std::lock_guard lock(mutex_);
  if (version > 0) {
    versions_[table_id] = std::max(versions_[table_id], version);
    return;
  }
  Drop(table_id);
}

void TableCache::Drop(uint32_t table_id) {
  versions_.erase(table_id);
  if (auto found = regions_.find(table_id); found != regions_.end()) found->second.known = nullptr;
  std::erase_if(tables_, [table_id](const auto& table) { return table.second->id == table_id; });
}

void TableCache::Forget(const std::string& name) {
  std::lock_guard lock(mutex_);
  auto found = tables_.find(name);
  if (found == tables_.end()) return;
  if (auto regions = regions_.find(found->second->id); regions != regions_.end()) {
    regions->second.known = nullptr;
  }
  tables_.erase(found);
}

void TableCache::Stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  idle_.wait(lock, [this] { return calls_ == 0; });
}

}  // namespace tamis
