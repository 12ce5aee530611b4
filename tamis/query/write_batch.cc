#include "tamis/query/write_batch.h"

#include <algorithm>
#include <map>

#include "tamis/cluster/error.h"
#include "tamis/query/gather.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

constexpr Duration kBackOff = std::chrono::milliseconds(20);

pb::Mutation::Kind KindOf(Write::Kind kind) {
  switch (kind) {
    case Write::Kind::kPut:
      return pb::Mutation::PUT;
    case Write::Kind::kInsert:
      return pb::Mutation::INSERT_IF_ABSENT;
    case Write::Kind::kUpdate:
      return pb::Mutation::UPDATE;
    case Write::Kind::kDelete:
      return pb::Mutation::DELETE;
  }
  return pb::Mutation::PUT;
}

class WriteBatch {
 public:
  WriteBatch(EngineContext* context, SchemaPtr schema, const std::vector<Write>& writes)
      : context_(*context), schema_(std::move(schema)), version_(schema_->version) {
    const KeyFormat format(*schema_);
    for (const Write& write : writes) {
      Item item;
      auto key = format.Encode(write.row);
      if (!key.ok()) {
        item.settled = true;
        item.status = key.status();
        items_.push_back(std::move(item));
        continue;
      }
      item.mutation.set_kind(KindOf(write.kind));
      item.mutation.set_key(*std::move(key));
      if (write.kind != Write::Kind::kDelete) item.mutation.set_row(EncodeRow(*schema_, write.row));
      for (const uint32_t column : write.columns) {
        item.mutation.add_columns(schema_->columns[column].id);
      }
      if (write.condition.has_value()) {
        item.mutation.set_condition(SerializePredicate(*write.condition));
      }
      items_.push_back(std::move(item));
    }
  }

  std::vector<Status> Run() {
    const Time deadline = context_.executor->Now() + context_.options.write_timeout;
    bool refresh = false;
    while (std::ranges::any_of(items_, [](const Item& item) { return !item.settled; })) {
      const Time now = context_.executor->Now();
      if (now >= deadline) break;
      Round(refresh, deadline - now);
      refresh = std::ranges::any_of(items_, [](const Item& item) { return !item.settled; });
      if (refresh) {
        Sleep(context_.executor, kBackOff);
        RefreshSchema();
      }
    }
    std::vector<Status> statuses;
    for (Item& item : items_) {
      if (!item.settled && item.status.ok())
        item.status = Unavailable("no region server took the write in time");
      statuses.push_back(
          item.status.WithContext("cannot write to table \"" + schema_->name + "\""));
    }
    return statuses;
  }

 private:
  struct Item {
    pb::Mutation mutation;
    bool settled = false;
    Status status;  // the last failure while it is not settled
  };
  struct RegionItems {
    pb::RegionMutations* mutations;
    std::vector<size_t> items;  // whose mutations these are, in order
  };
  struct Request {
    pb::MutateRequest request;
    std::map<uint64_t, RegionItems> regions;
  };

  void Settle(Item* item, Status status) {
    // Nothing was done: another try is safe. Anything else is an answer.
    item->settled = status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kBusy;
    item->status = std::move(status);
  }

  void RefreshSchema() {
    auto schema = context_.tables.RefreshTable(schema_->name);
    if (schema.ok() && (*schema)->id == schema_->id) {
      version_ = (*schema)->version;  // columns keep their ids: the encoded rows stay right
    } else if (!schema.ok() && schema.status().code() == StatusCode::kNotFound) {
      for (Item& item : items_) {
        if (item.settled) continue;
        item.settled = true;
        item.status = schema.status();
      }
    }
  }

  void Round(bool refresh, Duration time_left) {
    auto regions = refresh ? nullptr : context_.tables.KnownRegions(schema_->id);
    if (!regions) {
      auto fresh = context_.tables.RefreshRegions(*schema_);
      if (!fresh.ok()) {
        for (Item& item : items_) {
          if (!item.settled) Settle(&item, fresh.status());
        }
        return;
      }
      regions = std::move(*fresh);
    }
    std::map<std::string, Request> requests;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].settled) continue;
      const std::string& key = items_[i].mutation.key();
      auto region = std::ranges::upper_bound(*regions, key, {}, &RegionInfo::start);
      if (region == regions->begin() || !std::prev(region)->Contains(key)) {
        Settle(&items_[i], Unavailable("no region holds the key"));
        continue;
      }
      --region;
      Add(*region, i, &requests[region->server]);
    }
    std::vector<std::function<void(std::function<void(Result<pb::MutateReply>)>)>> calls;
    std::vector<Request*> sent;
    for (auto& [server, request] : requests) {
      request.request.set_table_id(schema_->id);
      request.request.set_schema_version(version_);
      request.request.set_timeout_ns(static_cast<uint64_t>(time_left.count()));
      sent.push_back(&request);
      calls.push_back([this, server = server,
                       sent = &request](std::function<void(Result<pb::MutateReply>)> done) {
        context_.cluster->Server(server)->Mutate(sent->request, std::move(done));
      });
    }
    auto replies = Gather<pb::MutateReply>(
        context_.executor, std::min(time_left, context_.options.request_timeout), nullptr, calls);
    for (size_t i = 0; i < sent.size(); ++i) {
      TakeReply(*sent[i], replies[i]);
      TakeBack(*sent[i]);
    }
  }

  void Add(const RegionInfo& region, size_t i, Request* request) {
    auto [found, is_new] = request->regions.try_emplace(region.id.number());
    RegionItems& sent = found->second;
    if (is_new) {
      sent.mutations = request->request.add_regions();
      sent.mutations->set_region_id(region.id.number());
      sent.mutations->set_epoch(region.epoch);
    }
    sent.items.push_back(i);
    sent.mutations->add_mutations()->Swap(&items_[i].mutation);
  }

  // What is to be sent again.
  void TakeBack(const Request& request) {
    for (const auto& [region_id, sent] : request.regions) {
      for (size_t k = 0; k < sent.items.size(); ++k) {
        Item& item = items_[sent.items[k]];
        if (!item.settled)
          sent.mutations->mutable_mutations(static_cast<int>(k))->Swap(&item.mutation);
      }
    }
  }

  void TakeReply(const Request& request, const Result<pb::MutateReply>& reply) {
    if (!reply.ok()) {
      Status status = reply.status();
      if (status.code() == StatusCode::kDeadlineExceeded) {
        status = DeadlineExceeded("a region server did not answer in time; the write may stand");
      }
      for (const auto& [region_id, sent] : request.regions) {
        for (const size_t i : sent.items) Settle(&items_[i], status);
      }
      return;
    }
    std::map<uint64_t, const pb::RegionMutateResult*> results;
    for (const auto& result : reply->regions()) results[result.region_id()] = &result;
    for (const auto& [region_id, sent] : request.regions) {
      auto found = results.find(region_id);
      for (size_t k = 0; k < sent.items.size(); ++k) {
        Item& item = items_[sent.items[k]];
        if (found == results.end() ||
            (!found->second->has_error() && static_cast<int>(k) >= found->second->results_size())) {
          Settle(&item, DeadlineExceeded("the answer of a region is missing; the write may stand"));
        } else if (found->second->has_error()) {
          Settle(&item, ToStatus(found->second->error()));
        } else {
          Settle(&item, ToStatus(found->second->results(static_cast<int>(k))));
        }
      }
    }
  }

  EngineContext& context_;
  const SchemaPtr schema_;
  uint64_t version_;
  std::vector<Item> items_;
};

}  // namespace

std::vector<Status> ApplyWrites(EngineContext* context, SchemaPtr schema,
                                const std::vector<Write>& writes) {
  return WriteBatch(context, std::move(schema), writes).Run();
}

}  // namespace tamis
