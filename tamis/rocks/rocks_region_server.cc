#include "tamis/rocks/rocks_region_server.h"

#include <algorithm>
#include <new>

#include "tamis/base/exception_status.h"
#include "tamis/base/join.h"
#include "tamis/cluster/error.h"
#include "tamis/rocks/answer_exceptions.h"
#include "tamis/rocks/mutate_operation.h"

namespace tamis {
namespace {

// Where there is no memory for the error either, the result has none: its writes may stand.
void RefuseForMemory(pb::RegionMutateResult* result) noexcept {
  try {
    SetError(OutOfMemory(), result->mutable_error());
  } catch (const std::bad_alloc&) {
    result->clear_error();
  }
}

}  // namespace

std::shared_ptr<RocksRegionServer> RocksRegionServer::Start(ServerContext context,
                                                            Executor* executor) {
  std::shared_ptr<RocksRegionServer> server(new RocksRegionServer(std::move(context), executor));
  std::weak_ptr<RocksRegionServer> weak = server;
  server->context_->is_verified = [weak] {
    auto self = weak.lock();
    return self && self->proof_->VerifiedUntil() > self->context_->executor->Now();
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
  server->proof_->Start();
  return server;
}

RocksRegionServer::RocksRegionServer(ServerContext context, Executor* executor)
    : context_(std::make_shared<ServerContext>(std::move(context))) {
  RegionServerOptions& options = context_->options;
  options.feed.faults = options.faults;
  options.feed.answer_inline = options.inline_steps;
  context_->executor = std::make_shared<ServerExecutor>(executor, options.inline_steps);
  context_->filter_budget = std::make_shared<FilterBudget>(options.filter_bytes);
  context_->feed = std::make_shared<FilterFeed>(context_->executor.get(), context_->name,
                                                context_->start_code, options.feed);
  proof_ = std::make_shared<OwnershipProof>(context_);
  builder_ = std::make_shared<IndexBuilder>(context_);
  regions_ = std::make_shared<OpenRegions>(context_, builder_);
  splitter_ = std::make_shared<RegionSplitter>(context_, regions_);
  clearer_ = std::make_shared<FilterClearer>(context_);
}

void RocksRegionServer::Kill() {
  context_->executor->Kill();
  context_->feed->Abandon();
  for (const auto& region : Regions()) region->Abandon();
  builder_->Abandon();
  clearer_->Abandon();
}

// ---- Requests

ServerStatus RocksRegionServer::GetStatus() const {
  ServerStatus status;
  if (killed()) return status;
  for (const auto& region : Regions()) {
    const auto indexes = region->indexes();
    for (const auto& [index_id, state] : *indexes) {
      status.filter_bytes += state.filter->SizeBytes();
      status.filters_of_bits += state.filter->bits_only() ? 1 : 0;
    }
  }
  status.max_filter_bytes = context_->options.filter_bytes;
  const FilterFeed& feed = *context_->feed;
  status.feed_events = feed.EventCount();
  status.feed_bytes = feed.EventBytes();
  status.searches = searched_->searches;
  status.regions_searched = searched_->regions;
  for (const FilterFeed::Follower& follower : feed.Followers()) {
    status.coordinators.push_back({.coordinator = follower.coordinator,
                                   .events_behind = follower.behind,
                                   .lease_left = follower.lease_left});
  }
  return status;
}

void RocksRegionServer::Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) {
  if (context_->executor->steps_are_inline() && !paused())
    return MutateRegions(request, std::move(done));
  context_->executor->Step([self = shared_from_this(), request, done = std::move(done)] {
    AnswerExceptions(done, [&] { self->MutateRegions(request, done); });
  });
}

void RocksRegionServer::MutateRegions(const pb::MutateRequest& request,
                                      Callback<pb::MutateReply> done) {
  auto join = std::make_shared<Join<pb::MutateReply>>(pb::MutateReply(), std::move(done));
  const auto finish = [join](pb::RegionMutateResult result) {
    join->End([&](pb::MutateReply* reply) {
      try {
        *reply->add_regions() = std::move(result);
      } catch (const std::bad_alloc&) {
        // The writes of a region without a result may stand.
      }
    });
  };
  const Duration timeout = request.timeout_ns() > 0 ? SentDuration(request.timeout_ns())
                                                    : context_->options.write_timeout;
  const Time deadline = context_->executor->Now() + timeout;
  for (const pb::RegionMutations& mutations : request.regions()) {
    join->Begin();
    std::shared_ptr<MutateOperation> operation;
    pb::RegionMutateResult refused;
    refused.set_region_id(mutations.region_id());
    try {
      auto id = RegionId::Of(mutations.region_id());
      auto region = id.ok() ? FindRegion(mutations.region_id()) : nullptr;
      if (region && region->info().epoch == mutations.epoch()) {
        operation = std::make_shared<MutateOperation>(context_, std::move(region), mutations,
                                                      request.schema_version(), deadline, finish);
      } else {
        SetError(id.ok() ? regions_->NotOpen(mutations.region_id()) : id.status(),
                 refused.mutable_error());
      }
    } catch (const std::bad_alloc&) {
      RefuseForMemory(&refused);
    }
    if (operation) {
      operation->Start();
    } else {
      finish(std::move(refused));
    }
  }
  join->End();
}

void RocksRegionServer::Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) {
  std::make_shared<SearchTask>(context_, regions_, searched_, request, std::move(done))->Start();
}

void RocksRegionServer::Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) {
  context_->executor->Step([self = shared_from_this(), request, done = std::move(done)] {
    AnswerExceptions(done, [&] {
      self->context_->feed->Poll(
          request,
          [weak = std::weak_ptr(self)] {
            auto server = weak.lock();
            return server ? server->proof_->VerifiedUntil() : Time{};
          },
          done);
    });
  });
}

void RocksRegionServer::AfterWrite(const std::shared_ptr<Region>& region) {
  splitter_->SplitIfGrown(region);
  const auto indexes = region->indexes();
  for (const auto& [index_id, state] : *indexes) {
    if (state.filter->WantsRecount(context_->options.recount)) {
      builder_->Enqueue(region, index_id);
    }
    if (state.filter->WantsClearing()) clearer_->Enqueue(region, index_id);
  }
}

// ---- Opening and closing

void RocksRegionServer::OpenRegion(const pb::RegionRecord& record, Duration wait) {
  const Time not_before = wait > Duration(0) ? context_->executor->Now() + wait : Time{};
  context_->executor->Step([self = shared_from_this(), record, not_before] {
    (void)self->regions_->Open(record, not_before);
  });
}

void RocksRegionServer::CloseRegion(uint64_t region_id, uint64_t epoch, Callback<bool> done) {
  context_->executor->Step([self = shared_from_this(), region_id, epoch, done] {
    auto region = self->FindRegion(region_id);
    const Status gone = self->regions_->NotOpen(region_id);
    if (!region || region->info().epoch != epoch) return done(gone);
    const bool open = region->Quiesce([self, region, done, gone] {
      if (region->closed()) return done(gone);
      uint64_t sequence = 0;
      try {
        sequence = self->regions_->Close(region.get());
      } catch (const std::bad_alloc&) {
        return done(OutOfMemory());  // it is open as before
      }
      // A close that gave up waiting for a coordinator is not clean; nor is one of a server
      // that may not acknowledge yet: a former owner may still be trusted.
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
    for (auto& region : self->regions_->OfTable(table_id)) {
      self->CloseRegion(region->info().id.number(), region->info().epoch, [](Result<bool>) {});
    }
  });
}

// ---- Schema

void RocksRegionServer::UpdateSchema(uint32_t table_id, std::function<void()> done) {
  context_->executor->Step([self = shared_from_this(), table_id, done] {
    auto table = self->context_->catalog->Table(table_id);
    if (!table.has_value()) return done();  // dropped: its regions are being closed
    auto schema = std::make_shared<const TableSchema>(std::move(*table));
    auto join = std::make_shared<Join<bool>>(true, [self, schema, done](bool) {
      self->feed().TellTable(schema->id, schema->version);
      done();
    });
    for (auto& region : self->regions_->OfTable(table_id)) {
      join->Begin();
      const bool open = region->Quiesce([self, region, schema, join] {
        self->regions_->Follow(region, schema);
        join->End();
      });
      if (!open) join->End();
    }
    join->End();
  });
}

void RocksRegionServer::RebuildIndex(const std::vector<uint64_t>& region_ids, uint32_t index_id,
                                     DoneCallback done) {
  context_->executor->Step([self = shared_from_this(), region_ids, index_id, done] {
    auto join = std::make_shared<Join<Status>>(Status::Ok(), [self, done](const Status& status) {
      if (!status.ok()) return done(status);
      FilterFeed& feed = self->feed();
      const Time deadline = self->context_->executor->Now() + self->context_->options.write_timeout;
      feed.WaitAcknowledged(feed.Last(), Time{}, deadline, done);
    });
    for (const uint64_t id : region_ids) {
      auto region = self->regions_->Find(id);
      join->Begin();
      if (region == nullptr) {
        EndWith(join.get(), self->regions_->NotOpen(id));
        continue;
      }
      self->builder_->Rebuild(region, index_id,
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
    for (auto& region : self->regions_->OfTable(table_id)) {
      join->Begin();
      const bool open = region->Quiesce([self, region, finish, moved] {
        if (region->closed()) return finish(moved);
        const auto is_owner = [&] {
          return region->fence().Enter(region->info().epoch).owns_lock();
        };
        // A server that was expelled without knowing it reports nothing: the new owner of the
        // region is asked as well, and has filters of its own.
        if (!is_owner()) return finish(CheckReport());
        const Result<CheckReport> report =
            WithoutExceptions([&] { return CheckRegion(*self->context_->store, *region); });
        finish(is_owner() ? report : Result<CheckReport>(moved));
      });
      if (!open) finish(moved);
    }
    join->End();
  });
}

void RocksRegionServer::SplitRegion(uint64_t region_id, std::string key, DoneCallback done) {
  context_->executor->Step([self = shared_from_this(), region_id, key = std::move(key), done] {
    auto region = self->FindRegion(region_id);
    if (!region) return done(self->regions_->NotOpen(region_id));
    self->splitter_->Split(region, key, done);
  });
}

}  // namespace tamis
