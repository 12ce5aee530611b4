#include "tamis/rocks/rocks_region_server.h"

#include <algorithm>

#include "tamis/base/coding.h"
#include "tamis/base/join.h"
#include "tamis/cluster/error.h"
#include "tamis/rocks/mutate_operation.h"
#include "tamis/rocks/searcher.h"

namespace tamis {

// One search request on its way through the regions.
struct SearchTask {
  pb::SearchRequest request;
  Callback<pb::SearchReply> done;
  Time deadline{};  // then it is answered, with what is done by then
  // By the version of the schema that a region follows.
  std::map<uint64_t, Result<std::unique_ptr<Searcher>>> searchers;
  pb::SearchReply reply;
  int next = 0;
  uint64_t rows = 0;
};

std::shared_ptr<RocksRegionServer> RocksRegionServer::Start(std::string name, uint64_t start_code,
                                                            RegionServerOptions options,
                                                            Surroundings surroundings) {
  std::shared_ptr<RocksRegionServer> server(
      new RocksRegionServer(std::move(name), start_code, options, std::move(surroundings)));
  std::weak_ptr<RocksRegionServer> weak = server;
  server->context_->is_verified = [weak] {
    auto self = weak.lock();
    return self && self->VerifiedUntil() > self->context_->executor->Now();
  };
  server->context_->after_write = [weak](const std::shared_ptr<Region>& region) {
    if (auto self = weak.lock()) self->AfterWrite(region);
  };
  server->context_->feed->SetProjectionSource(
      [weak](const pb::ColumnId& column, size_t max_bytes) -> std::optional<pb::Projection> {
        auto self = weak.lock();
        if (!self) return std::nullopt;
        auto region = self->FindRegion(column.region_id());
        auto filter = region ? region->filter(column.index_id()) : nullptr;
        return filter ? filter->Project(column, max_bytes) : std::nullopt;
      });
  server->Heartbeat();
  return server;
}

RocksRegionServer::RocksRegionServer(std::string name, uint64_t start_code,
                                     RegionServerOptions options, Surroundings surroundings)
    : start_code_(start_code), surroundings_(std::move(surroundings)) {
  context_ = std::make_shared<ServerContext>();
  context_->executor =
      std::make_shared<ServerExecutor>(surroundings_.executor, options.inline_steps);
  context_->name = std::move(name);
  options.feed.faults = options.faults;
  options.feed.answer_inline = options.inline_steps;
  context_->options = options;
  context_->store = surroundings_.store;
  context_->catalog = surroundings_.catalog;
  context_->filter_budget = std::make_shared<FilterBudget>(options.filter_bytes);
  context_->feed = std::make_shared<FilterFeed>(context_->executor.get(), context_->name,
                                                start_code, options.feed);
  builder_ = std::make_shared<IndexBuilder>(context_);
}

// ---- Proof of ownership

Time RocksRegionServer::VerifiedUntil() const {
  return proved_at_.load() + context_->options.proof_term;
}

void RocksRegionServer::Heartbeat() {
  // The proof is as of its beginning: what came after that, it does not see.
  const Time sent = context_->executor->Now();
  surroundings_.heartbeat(context_->name, start_code_, [weak = weak_from_this(), sent](bool alive) {
    auto self = weak.lock();
    if (!self) return;
    self->context_->executor->Step([self, sent, alive] {
      if (!alive) return self->surroundings_.on_expelled(self->name(), self->start_code_);
      const bool late = self->context_->options.faults.proof_as_of_answer;
      const Time proved = late ? self->context_->executor->Now() : sent;
      if (proved > self->proved_at_.load()) self->proved_at_ = proved;
    });
  });
  context_->executor->PostAfter(context_->options.heartbeat_interval, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Heartbeat();
  });
}

void RocksRegionServer::Kill() {
  context_->executor->Kill();
  context_->feed->Abandon();
  for (const auto& region : Regions()) region->Abandon();
}

// ---- Requests

std::vector<std::shared_ptr<Region>> RocksRegionServer::Regions() const {
  std::shared_lock lock(mutex_);
  std::vector<std::shared_ptr<Region>> regions;
  for (const auto& [id, region] : regions_) regions.push_back(region);
  return regions;
}

Status RocksRegionServer::NotOpen(uint64_t region_id) const {
  return Unavailable("region " + std::to_string(region_id) + " is not open on server " + name());
}

std::shared_ptr<Region> RocksRegionServer::FindRegion(uint64_t region_id) const {
  std::shared_lock lock(mutex_);
  auto found = regions_.find(region_id);
  return found == regions_.end() ? nullptr : found->second;
}

ServerStatus RocksRegionServer::GetStatus() const {
  ServerStatus status;
  if (killed()) return status;
  for (const auto& region : Regions()) {
    for (const auto& [index_id, state] : *region->indexes()) {
      status.filter_bytes += state.filter->SizeBytes();
      status.filters_of_bits += state.filter->bits_only() ? 1 : 0;
    }
  }
  status.max_filter_bytes = context_->options.filter_bytes;
  const FilterFeed& feed = *context_->feed;
  status.feed_events = feed.EventCount();
  status.feed_bytes = feed.EventBytes();
  for (const FilterFeed::Follower& follower : feed.Followers()) {
    status.coordinators.push_back({.coordinator = follower.coordinator,
                                   .events_behind = follower.behind,
                                   .lease_left = follower.lease_left});
  }
  return status;
}

void RocksRegionServer::Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) {
  if (context_->options.inline_steps && !paused()) return MutateRegions(request, std::move(done));
  context_->executor->Step([self = shared_from_this(), request, done = std::move(done)] {
    self->MutateRegions(request, done);
  });
}

void RocksRegionServer::MutateRegions(const pb::MutateRequest& request,
                                      Callback<pb::MutateReply> done) {
  auto join = std::make_shared<Join<pb::MutateReply>>(pb::MutateReply(), std::move(done));
  const auto finish = [join](pb::RegionMutateResult result) {
    join->End([&](pb::MutateReply* reply) { *reply->add_regions() = std::move(result); });
  };
  const Duration timeout =
      request.timeout_ns() > 0 ? Duration(request.timeout_ns()) : context_->options.write_timeout;
  const Time deadline = context_->executor->Now() + timeout;
  for (const pb::RegionMutations& mutations : request.regions()) {
    join->Begin();
    auto id = RegionId::Of(mutations.region_id());
    auto region = id.ok() ? FindRegion(mutations.region_id()) : nullptr;
    if (!region || region->info().epoch != mutations.epoch()) {
      pb::RegionMutateResult result;
      result.set_region_id(mutations.region_id());
      SetError(id.ok() ? NotOpen(mutations.region_id()) : id.status(), result.mutable_error());
      finish(std::move(result));
      continue;
    }
    std::make_shared<MutateOperation>(context_, std::move(region), mutations,
                                      request.schema_version(), deadline, finish)
        ->Start();
  }
  join->End();
}

void RocksRegionServer::Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
  auto task = std::make_shared<SearchTask>();
  task->request = request;
  task->done = std::move(done);
  const RegionServerOptions& options = context_->options;
  const Duration timeout =
      request.timeout_ns() > 0
          ? std::min(Duration(static_cast<int64_t>(std::min<uint64_t>(
                         request.timeout_ns(), std::chrono::nanoseconds::max().count()))),
                     options.search_timeout)
          : options.search_timeout;
  // The rest is for the way back.
  task->deadline = context_->executor->Now() + timeout / 4 * 3;
  context_->executor->Step([self = shared_from_this(), task] {
    if (!self->context_->options.faults.search_beyond_proof && !self->context_->is_verified()) {
      return task->done(
          Unavailable("server " + self->name() + " does not know that it still owns its regions"));
    }
    self->SearchNext(task);
  });
}

pb::RangeResult RocksRegionServer::SearchRange(SearchTask* task, const pb::SearchRange& range,
                                               uint64_t max_rows) {
  const auto failed = [&](const Status& status) {
    pb::RangeResult result;
    result.set_region_id(range.region_id());
    result.set_epoch(range.epoch());
    SetError(status, result.mutable_error());
    return result;
  };
  if (auto id = RegionId::Of(range.region_id()); !id.ok()) return failed(id.status());
  auto region = FindRegion(range.region_id());
  if (!region || region->info().epoch != range.epoch() ||
      region->info().table_id != task->request.table_id()) {
    return failed(NotOpen(range.region_id()));
  }
  const SchemaPtr schema = region->schema();
  auto found = task->searchers.find(schema->version);
  if (found == task->searchers.end()) {
    found =
        task->searchers.emplace(schema->version, Searcher::Create(*context_, task->request, schema))
            .first;
  }
  if (!found->second.ok()) {
    pb::RangeResult result = failed(found->second.status());
    if (schema->version != task->request.schema_version()) {
      result.mutable_error()->set_schema_version(schema->version);
    }
    return result;
  }
  return (*found->second)->Search(*region, range, max_rows, task->deadline);
}

void RocksRegionServer::SearchNext(std::shared_ptr<SearchTask> task) {
  const uint64_t limit = task->request.limit();
  while (task->next < task->request.ranges_size()) {
    if (limit > 0 && task->rows >= limit) break;
    if (task->next > 0 && context_->executor->Now() >= task->deadline) break;
    if (task->rows >= context_->options.page_rows ||
        task->reply.ByteSizeLong() > context_->options.page_bytes)
      break;
    const pb::SearchRange& range = task->request.ranges(task->next++);
    uint64_t rows = context_->options.page_rows - task->rows;
    if (limit > 0) rows = std::min(rows, limit - task->rows);
    pb::RangeResult result = SearchRange(task.get(), range, rows);
    task->rows += result.counters().rows_returned();
    *task->reply.add_results() = std::move(result);
    if (!context_->options.inline_steps) {
      context_->executor->Step([self = shared_from_this(), task] { self->SearchNext(task); });
      return;
    }
  }
  task->done(std::move(task->reply));
}

void RocksRegionServer::Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) {
  context_->executor->Step([self = shared_from_this(), request, done = std::move(done)] {
    self->context_->feed->Poll(
        request,
        [weak = std::weak_ptr(self)] {
          auto server = weak.lock();
          return server ? server->VerifiedUntil() : Time{};
        },
        done);
  });
}

void RocksRegionServer::AfterWrite(const std::shared_ptr<Region>& region) {
  const RegionServerOptions& options = context_->options;
  if (options.split_bytes > 0 && region->size_bytes > options.split_bytes &&
      !region->split_requested.exchange(true)) {
    context_->executor->Post([self = shared_from_this(), region] { self->SplitGrown(region); });
  }
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.filter->WantsRebuild(options.rebuild_after_ignored)) {
      builder_->Enqueue(region, index_id);
    }
  }
}

// ---- Opening and closing

// The filters and states of the indexes of a schema; what `old` has goes on.
Region::Indexes RocksRegionServer::MakeIndexes(
    const RegionInfo& info, const TableSchema& schema, const Region::Indexes& old,
    const google::protobuf::RepeatedField<uint32_t>& complete) {
  Region::Indexes indexes;
  for (const IndexSpec& index : schema.indexes) {
    if (auto found = old.find(index.id); found != old.end()) {
      indexes.insert(*found);
      continue;
    }
    Region::IndexState state;
    state.filter =
        std::make_shared<IndexFilter>(context_->feed.get(), index, info.id.number(), info.epoch,
                                      context_->options.faults, context_->filter_budget);
    state.entries_complete = std::ranges::find(complete, index.id) != complete.end();
    if (!state.entries_complete) {
      // Entries of a backfill that did not come to its end are written anew, so that what stands
      // and what is counted agree.
      state.entries_cleared = ClearEntries(info.id.number(), index.id);
      state.filter->BeginGeneration(/*hold_removals=*/false);
    } else if (auto snapshot = surroundings_.snapshots->Take(info.id.number(), index.id)) {
      // Published once the region is told of. When it is damaged, the entries are counted.
      (void)state.filter->RestoreGeneration(*snapshot);
    }
    indexes.emplace(index.id, std::move(state));
  }
  return indexes;
}

bool RocksRegionServer::ClearEntries(uint64_t region_id, uint32_t index_id) {
  const std::string prefix = IndexPrefix(region_id, index_id);
  std::unique_ptr<rocksdb::Iterator> it(
      context_->store->db()->NewIterator(rocksdb::ReadOptions(), context_->store->index()));
  it->Seek(prefix);
  if (it->status().ok() && (!it->Valid() || !it->key().starts_with(prefix))) return true;
  rocksdb::WriteBatch batch;
  batch.DeleteRange(context_->store->index(), prefix, PrefixEnd(prefix));
  return context_->store->Write(&batch).ok();
}

uint64_t RocksRegionServer::TellOpened(const Region& region) {
  pb::Event event;
  event.set_kind(pb::Event::REGION_OPENED);
  event.set_region_id(region.info().id.number());
  event.set_epoch(region.info().epoch);
  event.set_table_id(region.info().table_id);
  event.set_start(region.info().start);
  event.set_end(region.info().end);
  return context_->feed->Append(std::move(event));
}

uint64_t RocksRegionServer::TellClosed(const Region& region) {
  pb::Event event;
  event.set_kind(pb::Event::REGION_CLOSED);
  event.set_region_id(region.info().id.number());
  event.set_epoch(region.info().epoch);
  return context_->feed->Append(std::move(event));
}

std::shared_ptr<Region> RocksRegionServer::Install(const pb::RegionRecord& record,
                                                   Time not_before) {
  const auto schema = context_->catalog->Table(record.table_id());
  if (!schema.has_value()) return nullptr;  // dropped meanwhile
  RegionInfo info{.id = RegionId(record.id()),
                  .name = std::to_string(record.id()),
                  .epoch = record.epoch(),
                  .table_id = record.table_id(),
                  .start = record.start(),
                  .end = record.end(),
                  .server = name()};
  auto shared_schema = std::make_shared<const TableSchema>(*schema);
  auto region = std::make_shared<Region>(
      info, shared_schema, surroundings_.fences->Of(info.id.number()), context_->executor.get());
  Region::Indexes made;
  {
    auto fence = region->fence().Enter(info.epoch);
    if (!fence.owns_lock()) return nullptr;  // an old order: the region is elsewhere by now
    made = MakeIndexes(info, *schema, {}, record.complete_indexes());
  }
  region->SetSchema(shared_schema, std::move(made));
  region->acknowledge_not_before = not_before;
  region->size_bytes = context_->store->ApproximateRowBytes(info.table_id, info.start, info.end);
  context_->feed->TellTable(info.table_id, schema->version);
  region->acknowledge_after = TellOpened(*region);
  {
    std::unique_lock lock(mutex_);
    regions_[info.id.number()] = region;
  }
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.entries_complete) state.filter->Publish();  // what was restored
  }
  BuildMissing(region);
  return region;
}

void RocksRegionServer::BuildMissing(const std::shared_ptr<Region>& region) {
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (!state.filter->published() && (state.entries_complete || state.entries_cleared))
      builder_->Enqueue(region, index_id);
  }
}

void RocksRegionServer::OpenRegion(const pb::RegionRecord& record, Duration wait) {
  const Time not_before = wait > Duration(0) ? context_->executor->Now() + wait : Time{};
  context_->executor->Step([self = shared_from_this(), record, not_before] {
    auto region = self->Install(record, not_before);
    if (!region) return;
    // The schema may have changed between reading it and entering the region among the open ones.
    auto schema = self->context_->catalog->Table(record.table_id());
    if (schema.has_value() && schema->version != region->schema()->version) {
      self->UpdateSchema(record.table_id(), [] {});
    }
  });
}

void RocksRegionServer::CloseRegion(uint64_t region_id, uint64_t epoch, Callback<bool> done) {
  context_->executor->Step([self = shared_from_this(), region_id, epoch, done] {
    auto region = self->FindRegion(region_id);
    const Status gone = self->NotOpen(region_id);
    if (!region || region->info().epoch != epoch) return done(gone);
    const bool open = region->Quiesce([self, region, done, gone] {
      if (region->closed()) return done(gone);
      region->Close();
      {
        std::unique_lock lock(self->mutex_);
        self->regions_.erase(region->info().id.number());
      }
      const uint64_t sequence = self->TellClosed(*region);
      // Who gave up waiting for a coordinator has not closed it in good order; nor has who may not
      // acknowledge yet: a former owner may still be trusted.
      const FilterFeed::Options& leases = self->context_->options.feed;
      const Time deadline =
          self->context_->executor->Now() + 2 * (leases.lease + leases.lease_margin);
      self->context_->feed->WaitAcknowledged(
          sequence, Time{}, deadline, [self, region, done](const Status& status) {
            const bool waited =
                self->context_->executor->Now() >= region->acknowledge_not_before.load() ||
                self->context_->options.faults.early_close_in_order;
            done(status.ok() && waited);
          });
    });
    if (!open) done(gone);
  });
}

void RocksRegionServer::CloseTable(uint32_t table_id) {
  context_->executor->Step([self = shared_from_this(), table_id] {
    self->feed().TellTable(table_id, 0);
    for (auto& region : self->Regions()) {
      const RegionInfo& info = region->info();
      if (info.table_id == table_id)
        self->CloseRegion(info.id.number(), info.epoch, [](Result<bool>) {});
    }
  });
}

// ---- Schema

void RocksRegionServer::FollowSchema(const std::shared_ptr<Region>& region, SchemaPtr schema) {
  if (region->closed() || region->schema()->version >= schema->version) return;
  const auto old = region->indexes();
  auto fence = region->fence().Enter(region->info().epoch);
  if (!fence.owns_lock()) return;
  auto indexes = MakeIndexes(region->info(), *schema, *old, {});
  for (const auto& [index_id, state] : *old) {
    if (indexes.contains(index_id)) continue;
    pb::Event event;
    state.filter->Retire();
    event.set_kind(pb::Event::INDEX_DROPPED);
    event.set_region_id(region->info().id.number());
    event.set_epoch(region->info().epoch);
    event.set_index_id(index_id);
    // Puts do not count for the index any more: who still prunes by it must know first.
    region->acknowledge_after = context_->feed->Append(std::move(event));
  }
  region->SetSchema(std::move(schema), std::move(indexes));
}

void RocksRegionServer::UpdateSchema(uint32_t table_id, std::function<void()> done) {
  context_->executor->Step([self = shared_from_this(), table_id, done] {
    auto table = self->context_->catalog->Table(table_id);
    if (!table.has_value()) return done();  // dropped: its regions are being closed
    auto schema = std::make_shared<const TableSchema>(std::move(*table));
    auto join = std::make_shared<Join<bool>>(true, [self, schema, done](bool) {
      self->feed().TellTable(schema->id, schema->version);
      done();
    });
    for (auto& region : self->Regions()) {
      if (region->info().table_id != table_id) continue;
      join->Begin();
      const bool open = region->Quiesce([self, region, schema, join] {
        self->FollowSchema(region, schema);
        self->BuildMissing(region);
        join->End();
      });
      if (!open) join->End();
    }
    join->End();
  });
}

void RocksRegionServer::MendIndex(uint32_t table_id, uint32_t index_id, DoneCallback done) {
  context_->executor->Step([self = shared_from_this(), table_id, index_id, done] {
    auto join = std::make_shared<Join<Status>>(Status::Ok(), [self, done](const Status& status) {
      if (!status.ok()) return done(status);
      FilterFeed& feed = self->feed();
      const Time deadline = self->context_->executor->Now() + self->context_->options.write_timeout;
      feed.WaitAcknowledged(feed.Last(), Time{}, deadline, done);
    });
    for (auto& region : self->Regions()) {
      if (region->info().table_id != table_id) continue;
      join->Begin();
      self->builder_->Mend(region, index_id,
                           [join](const Status& status) { EndWith(join.get(), status); });
    }
    join->End();
  });
}

void RocksRegionServer::Check(uint32_t table_id, Callback<CheckReport> done) {
  context_->executor->Step([self = shared_from_this(), table_id, done] {
    auto join = std::make_shared<Join<Result<CheckReport>>>(CheckReport(), done);
    const auto finish = [join](const Result<CheckReport>& part) {
      join->End([&](Result<CheckReport>* all) { AddTo(part, all); });
    };
    const Status moved = Unavailable("a region moved during the check; check again");
    for (auto& region : self->Regions()) {
      if (region->info().table_id != table_id) continue;
      join->Begin();
      const bool open = region->Quiesce([self, region, finish, moved] {
        if (region->closed()) return finish(moved);
        const auto is_owner = [&] {
          return region->fence().Enter(region->info().epoch).owns_lock();
        };
        // Expelled without knowing it: the next owner is asked, too, and has other filters.
        if (!is_owner()) return finish(CheckReport());
        const Result<CheckReport> report = CheckRegion(*self->context_->store, *region);
        finish(is_owner() ? report : Result<CheckReport>(moved));
      });
      if (!open) finish(moved);
    }
    join->End();
  });
}

// ---- Split

Result<RocksRegionServer::Rows> RocksRegionServer::MeasureRows(const Region& region) const {
  const RegionInfo& info = region.info();
  rocksdb::ReadOptions read_options;
  read_options.fill_cache = false;
  const std::string upper =
      info.end.empty() ? RowPrefix(info.table_id + 1) : RowStoreKey(info.table_id, info.end);
  const rocksdb::Slice upper_slice(upper);
  read_options.iterate_upper_bound = &upper_slice;
  std::unique_ptr<rocksdb::Iterator> it(
      context_->store->db()->NewIterator(read_options, context_->store->rows()));
  const std::string first = RowStoreKey(info.table_id, info.start);
  Rows rows;
  for (it->Seek(first); it->Valid(); it->Next())
    rows.bytes += it->key().size() + it->value().size();
  uint64_t seen = 0;
  for (it->Seek(first); it->Valid() && rows.middle.empty(); it->Next()) {
    std::string key = it->key().ToString().substr(kRowPrefixSize);
    if (seen > 0 && seen * 2 >= rows.bytes && key > info.start) rows.middle = std::move(key);
    seen += it->key().size() + it->value().size();
  }
  if (!it->status().ok()) return FromRocks(it->status(), "read rows to find a split key");
  return rows;
}

Status RocksRegionServer::SplitAlone(const std::shared_ptr<Region>& region,
                                     const std::string& key) {
  const RegionInfo& info = region->info();
  if (region->closed()) return Unavailable("the region was closed");
  if (key <= info.start || !info.Contains(key)) {
    return InvalidArgument("cannot split region " + std::to_string(info.id.number()) +
                           ": the key does not lie inside of it");
  }
  Catalog& catalog = *context_->catalog;
  const auto fence = surroundings_.fences->Of(info.id.number());
  auto excluded = fence->Exclude();
  auto record = catalog.Region(info.id.number());
  if (!record.has_value() || record->epoch() != info.epoch)
    return Unavailable("the region has moved");
  // The lower daughter keeps the id, so its entries stand already; those of the upper half become
  // garbage. The upper daughter's are written under a new id.
  pb::RegionRecord lower = *record, upper = *record;
  lower.set_epoch(catalog.NewEpoch());
  lower.set_end(key);
  upper.set_id(catalog.NewRegionId());
  upper.set_epoch(catalog.NewEpoch());
  upper.set_start(key);
  upper.clear_complete_indexes();
  TAMIS_RETURN_IF_ERROR(catalog.Commit({.put_regions = {lower, upper}}));
  fence->AdvanceExcluded(lower.epoch());
  excluded.unlock();
  surroundings_.fences->Of(upper.id())->Advance(upper.epoch());
  region->Close();
  {
    std::unique_lock lock(mutex_);
    regions_.erase(info.id.number());
  }
  TellClosed(*region);
  const uint64_t half = region->size_bytes / 2;
  for (const auto* daughter : {&lower, &upper}) {
    auto opened = Install(*daughter, region->acknowledge_not_before);
    if (!opened) continue;
    opened->size_bytes = half;
    AfterWrite(opened);  // it may still be too large
  }
  return Status::Ok();
}

void RocksRegionServer::SplitRegion(uint64_t region_id, std::string key, DoneCallback done) {
  context_->executor->Step([self = shared_from_this(), region_id, key = std::move(key), done] {
    auto region = self->FindRegion(region_id);
    if (!region) return done(self->NotOpen(region_id));
    self->SplitAt(region, key, done);
  });
}

// What was written was counted; what was overwritten or deleted by it was not.
void RocksRegionServer::SplitGrown(const std::shared_ptr<Region>& region) {
  auto rows = MeasureRows(*region);
  if (rows.ok()) region->size_bytes = rows->bytes;
  if (!rows.ok() || rows->bytes <= context_->options.split_bytes || rows->middle.empty()) {
    region->split_requested = false;
    return;
  }
  SplitAt(region, rows->middle, [self = shared_from_this(), region](const Status& status) {
    region->split_requested = false;
    if (status.ok()) self->surroundings_.on_split();
  });
}

void RocksRegionServer::SplitAt(const std::shared_ptr<Region>& region, std::string key,
                                DoneCallback done) {
  if (key.empty()) {
    auto rows = MeasureRows(*region);
    if (!rows.ok()) return done(rows.status());
    key = std::move(rows->middle);
  }
  if (key.empty()) {
    return done(FailedPrecondition("cannot split region " +
                                   std::to_string(region->info().id.number()) +
                                   ": it has fewer than two rows; name a key to split at"));
  }
  const bool open = region->Quiesce(
      [self = shared_from_this(), region, key, done] { done(self->SplitAlone(region, key)); });
  if (!open) done(NotOpen(region->info().id.number()));
}

}  // namespace tamis
