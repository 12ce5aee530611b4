#include "tamis/query/write_delivery.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tamis/base/exception_status.h"
#include "tamis/cluster/error.h"
#include "tamis/cluster/region_server.h"
#include "tamis/cluster/trace.h"
#include "tamis/table/codec.h"
#include "tamis/table/key_format.h"

namespace tamis {
namespace {

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

class WriteDelivery {
 public:
  WriteDelivery(QueryContext* context, SchemaPtr schema, const std::vector<Write>& writes,
                const std::atomic<bool>* cancelled)
      : context_(*context),
        schema_(std::move(schema)),
        cancelled_(cancelled),
        version_(schema_->version) {
    const KeyFormat format(*schema_);
    for (const Write& write : writes) {
      Item item;
      auto key = format.Encode(write.row);
      if (!key.ok()) {
        item.resolved = true;
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
    const Status ended = WithoutExceptions([this] {
      Deliver();
      return Status::Ok();
    });
    std::vector<Status> statuses;
    for (Item& item : items_) {
      if (!item.resolved && item.sent) {
        item.status = DeadlineExceeded(ended.message() + "; the write may have been carried out");
      } else if (!item.resolved && !ended.ok()) {
        item.status = ended;
      } else if (!item.resolved && IsCancelled()) {
        item.status = Cancelled("cancelled before a region server took the write");
      } else if (!item.resolved && item.status.ok()) {
        item.status = Unavailable("no region server took the write in time");
      }
      statuses.push_back(
          item.status.WithContext("cannot write to table \"" + schema_->name + "\""));
    }
    return statuses;
  }

 private:
  struct Item {
    pb::Mutation mutation;
    bool sent = false;  // and not answered
    bool resolved = false;
    Status status;  // the last failure while it is not resolved
  };
  struct RegionItems {
    KeyRange keys;  // keys of the region
    pb::RegionMutations* mutations;
    std::vector<size_t> items;  // the items of these mutations, in order
  };
  struct Request {
    std::string server;
    pb::MutateRequest request;
    std::map<uint64_t, RegionItems> regions;
  };

  void Deliver() {
    const Time deadline = context_.executor->Now() + context_.options.write_timeout;
    while (std::ranges::any_of(items_, [](const Item& item) { return !item.resolved; })) {
      if (context_.executor->Now() >= deadline || IsCancelled()) break;
      Round(deadline);
      if (std::ranges::all_of(items_, [](const Item& item) { return item.resolved; })) break;
      const Duration pause = std::min(backoff_.Next(), deadline - context_.executor->Now());
      if (pause > Duration(0)) WaitFor(pause);
      if (std::exchange(schema_is_old_, false)) RefreshSchema();
    }
    // Nothing waits for this refresh: it keeps the next write of these keys from asking a silent
    // server.
    if (!stale_.empty()) {
      context_.tables->RefreshRegions(*schema_, stale_, [](const Result<TableCache::Regions>&) {});
    }
  }

  bool IsCancelled() const { return cancelled_ != nullptr && cancelled_->load(); }

  // Waits for the time to pass: no answer comes.
  void WaitFor(Duration pause) {
    Answers<Status>(context_.executor)
        .Next({.deadline = context_.executor->Now() + pause, .cancelled = cancelled_});
  }

  void Resolve(Item* item, Status status) {
    // Nothing was done: another try is safe. Anything else is an answer.
    const StatusCode code = status.code();
    item->resolved = code != StatusCode::kUnavailable && code != StatusCode::kBusy;
    if (item->resolved) backoff_.Reset();
    item->sent = false;
    item->status = std::move(status);
  }

  void RefreshSchema() {
    auto schema = context_.tables->RefreshTable(schema_->name, cancelled_);
    if (schema.ok() && (*schema)->id == schema_->id) {
      version_ = (*schema)->version;  // columns keep their ids: the encoded rows stay right
    } else if (!schema.ok() && schema.status().code() == StatusCode::kNotFound) {
      for (Item& item : items_) {
        if (item.resolved) continue;
        item.resolved = true;
        item.status = schema.status();
      }
    }
  }

  // The regions, fresh where the last round found them not to be so.
  Result<TableCache::Regions> Regions(Time deadline) {
    auto known = context_.tables->KnownRegions(schema_->id);
    if (known && stale_.empty()) return known;
    return AwaitResult<TableCache::Regions>(
        context_.executor, {.deadline = deadline, .cancelled = cancelled_}, [&](auto done) {
          context_.tables->RefreshRegions(*schema_, std::exchange(stale_, {}), std::move(done));
        });
  }

  void Round(Time deadline) {
    auto regions = Regions(deadline);
    if (!regions.ok()) {
      // Writes that were not taken had no effect.
      Status status = regions.status();
      if (status.code() == StatusCode::kDeadlineExceeded) status = Unavailable(status.message());
      for (Item& item : items_) {
        if (!item.resolved) Resolve(&item, status);
      }
      return;
    }
    const Time now = context_.executor->Now();
    if (now >= deadline) return;
    std::map<std::string, Request> by_server;
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].resolved) continue;
      const std::string& key = items_[i].mutation.key();
      auto region = std::ranges::upper_bound(**regions, key, {}, &RegionInfo::start);
      if (region == (*regions)->begin() || !std::prev(region)->Contains(key) ||
          std::prev(region)->server.empty()) {
        Resolve(&items_[i], Unavailable("no region server has the key now"));
        if (stale_.empty() || !stale_.back().Contains(key)) stale_.push_back({key, key + '\0'});
        continue;
      }
      --region;
      Add(*region, i, &by_server[region->server]);
    }
    const Time until = std::min(deadline, now + context_.options.request_timeout);
    Answers<Result<pb::MutateReply>> answers(context_.executor);
    std::vector<std::shared_ptr<Request>> sent;
    for (auto& [server, request] : by_server) {
      request.server = server;
      request.request.set_table_id(schema_->id);
      request.request.set_schema_version(version_);
      request.request.set_timeout_ns(static_cast<uint64_t>((until - now).count()));
      SetTrace(CurrentTrace(), &request.request);
      sent.push_back(std::make_shared<Request>(std::move(request)));
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      for (const auto& [region_id, mutations] : sent[i]->regions) {
        for (const size_t item : mutations.items) items_[item].sent = true;
      }
      // A request may be read until it is answered, however late.
      context_.cluster->Server(sent[i]->server)
          ->Mutate(sent[i]->request, [to = answers.To(i), request = sent[i]](
                                         Result<pb::MutateReply> reply) { to(std::move(reply)); });
    }
    std::vector<std::optional<Result<pb::MutateReply>>> replies(sent.size());
    for (size_t missing = sent.size(); missing > 0;) {
      auto answer = answers.Next({.deadline = until, .cancelled = cancelled_});
      if (!answer.has_value()) break;
      if (replies[answer->question].has_value()) continue;  // it came twice
      replies[answer->question].emplace(std::move(answer->value));
      --missing;
    }
    for (size_t i = 0; i < sent.size(); ++i) {
      if (!replies[i].has_value()) {
        replies[i].emplace(DeadlineExceeded(
            IsCancelled() ? "cancelled before region server " + sent[i]->server + " answered"
                          : "region server " + sent[i]->server + " did not answer in time"));
      }
      TakeReply(*sent[i], *replies[i]);
      NoteStale(*sent[i], replies[i]->ok());
      TakeBack(*sent[i]);
    }
  }

  void Add(const RegionInfo& region, size_t i, Request* request) {
    auto [found, is_new] = request->regions.try_emplace(region.id.number());
    RegionItems& sent = found->second;
    if (is_new) {
      sent.keys = region.keys();
      sent.mutations = request->request.add_regions();
      sent.mutations->set_region_id(region.id.number());
      sent.mutations->set_epoch(region.epoch);
    }
    sent.items.push_back(i);
    sent.mutations->add_mutations()->Swap(&items_[i].mutation);
  }

  // Takes back the writes that must be sent again.
  void TakeBack(const Request& request) {
    for (const auto& [region_id, sent] : request.regions) {
      for (size_t k = 0; k < sent.items.size(); ++k) {
        Item& item = items_[sent.items[k]];
        if (!item.resolved)
          sent.mutations->mutable_mutations(static_cast<int>(k))->Swap(&item.mutation);
      }
    }
  }

  // The map is looked at again where a region did not take its writes, or its server did not
  // answer.
  void NoteStale(const Request& request, bool answered) {
    for (const auto& [region_id, sent] : request.regions) {
      if (!answered ||
          std::ranges::any_of(sent.items, [&](size_t i) { return !items_[i].resolved; })) {
        stale_.push_back(sent.keys);
      }
    }
  }

  void TakeReply(const Request& request, const Result<pb::MutateReply>& reply) {
    if (!reply.ok()) {
      Status status = reply.status();
      if (status.code() == StatusCode::kDeadlineExceeded) {
        status = status.WithContext("the write may have been carried out");
      }
      for (const auto& [region_id, sent] : request.regions) {
        for (const size_t i : sent.items) Resolve(&items_[i], status);
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
          Resolve(&item,
                  DeadlineExceeded(
                      "the answer of a region is missing; the write may have been carried out"));
        } else if (found->second->has_error()) {
          const pb::Error& error = found->second->error();
          schema_is_old_ |= error.schema_version() != 0 && error.schema_version() != version_;
          Resolve(&item, error.code() == pb::Error::OK
                             ? DeadlineExceeded(FailureOf(error).message() +
                                                "; the write may have been carried out")
                             : ToStatus(error));
        } else {
          Resolve(&item, ToStatus(found->second->results(static_cast<int>(k))));
        }
      }
      KeepOrder(sent);
    }
  }

  // The writes of a row are applied in order or not at all: a write that its region refused is not
  // sent again once a later write of the same row was answered.
  void KeepOrder(const RegionItems& sent) {
    const auto is_resolved = [this](size_t i) { return items_[i].resolved; };
    if (std::ranges::all_of(sent.items, is_resolved)) return;
    std::set<std::string> answered;  // rows
    for (size_t k = sent.items.size(); k-- > 0;) {
      Item& item = items_[sent.items[k]];
      const std::string& row = sent.mutations->mutations(static_cast<int>(k)).key();
      if (item.resolved) {
        answered.insert(row);
      } else if (answered.contains(row)) {
        item.resolved = true;
        item.status = Status(item.status.code(),
                             item.status.message() +
                                 "; not sent again, since a later write of the row was answered");
      }
    }
  }

  QueryContext& context_;
  const SchemaPtr schema_;
  const std::atomic<bool>* const cancelled_;
  uint64_t version_;
  std::vector<Item> items_;
  Backoff backoff_ = kRetryPauses;
  bool schema_is_old_ = false;   // a region follows another version
  std::vector<KeyRange> stale_;  // keys that were not where the map has them
};

}  // namespace

std::vector<Status> ApplyWrites(QueryContext* context, SchemaPtr schema,
                                const std::vector<Write>& writes,
                                const std::atomic<bool>* cancelled) {
  return WriteDelivery(context, std::move(schema), writes, cancelled).Run();
}

}  // namespace tamis
