#include "tamis/hbase/batch.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "tamis/hbase/messages.h"
#include "tamis/hbase/printable.h"
#include "tamis/hbase/refusals.h"
#include "tamis/hbase/region_call.h"
#include "tamis/hbase/retry_pauses.h"
#include "tamis/hbase/session.h"

namespace tamis::hbase {
namespace {

// The limits of one call. A larger call saves little and stays in the server's queue for long.
constexpr size_t kMostActions = 1000;
constexpr size_t kMostBytes = 2 << 20;
class Batch {
 public:
  Batch(Session& session, std::string table, std::vector<std::variant<Get, Mutation>> actions,
        WriteOptions options, Deadline deadline)
      : session_(session),
        table_(NormalTableName(table)),
        actions_(std::move(actions)),
        options_(std::move(options)),
        deadline_(deadline),
        states_(actions_.size()) {}

  Task<std::vector<Result<Row>>> Run() {
    for (size_t i = 0; i < actions_.size(); ++i) Begin(i);
    while (!pending_.empty()) {
      if (session_.closed() || Clock::now() >= deadline_) {
        for (const size_t i : std::exchange(pending_, {})) GiveUp(i);
        break;
      }
      co_await Round();
      if (!pending_.empty() && wants_pause_) {
        wants_pause_ = false;
        co_await session_.SleepUntil(
            std::min(deadline_, Clock::now() + backoff_.Next(session_.random)));
      }
    }
    std::vector<Result<Row>> results;
    results.reserve(states_.size());
    for (State& state : states_) results.push_back(*std::move(state.result));
    co_return results;
  }

 private:
  struct State {
    std::optional<Result<Row>> result;
    uint64_t nonce = 0;
    std::optional<ServerName> may_have_run;
    Refusals refusals;
    int unknown = 0;
    Status last;
  };
  // The actions for one server in one call.
  struct Part {
    struct OfRegion {
      RegionPtr region;
      std::vector<size_t> actions;
    };
    ServerName server;
    std::vector<OfRegion> regions;
    size_t actions = 0;
    size_t bytes = 0;
  };

  const std::string& RowOf(size_t i) const {
    if (const Get* get = std::get_if<Get>(&actions_[i])) return get->row;
    return std::get<Mutation>(actions_[i]).row();
  }
  const Mutation* MutationOf(size_t i) const { return std::get_if<Mutation>(&actions_[i]); }

  void Begin(size_t i) {
    if (const Mutation* mutation = MutationOf(i)) {
      Status status = mutation->Check();
      if (status.ok() && options_.condition) {
        status = InvalidArgument("a batch has no conditions: change such rows one by one");
      }
      if (!status.ok()) {
        states_[i].result = std::move(status);
        return;
      }
      if (mutation->kind() == Mutation::Kind::kAppend ||
          mutation->kind() == Mutation::Kind::kIncrement) {
        states_[i].nonce = session_.NextNonce();
      }
    }
    pending_.push_back(i);
  }

  std::string What(size_t i) const {
    return std::string(MutationOf(i) ? "Mutate" : "Get") + " of row " + Printable(RowOf(i)) +
           " of table " + Printable(table_);
  }

  void GiveUp(size_t i) {
    State& state = states_[i];
    if (state.may_have_run) {
      state.result = MayHaveRun(What(i), state.last);
    } else if (session_.closed()) {
      state.result = Cancelled("the client was closed");
    } else {
      state.result =
          (state.last.ok() ? DeadlineExceeded("no time left") : state.last).WithContext(What(i));
    }
  }

  void Again(size_t i, Status why) {
    states_[i].last = std::move(why);
    pending_.push_back(i);
  }

  // The action may have run at `server`: tries it again if that is safe.
  void MaybeAgain(size_t i, const ServerName& server, Status why) {
    State& state = states_[i];
    if (MutationOf(i) != nullptr) {
      state.may_have_run = server;
      if (state.nonce == 0 && !options_.repeat) return End(i, std::move(why));
    }
    Again(i, std::move(why));
  }

  // Makes no further try. The status of the last try does not prove that earlier tries failed.
  void End(size_t i, Status why) {
    State& state = states_[i];
    state.last = std::move(why);
    if (state.may_have_run) return GiveUp(i);
    state.result = state.last.WithContext(What(i));
  }

  Task<void> Round() {
    std::map<ServerName, std::vector<Part>> parts;
    const std::vector<size_t> pending = std::exchange(pending_, {});
    for (const size_t i : pending) {
      RegionPtr region = session_.locator.Known(table_, RowOf(i));
      if (!region) {
        auto found = co_await session_.locator.Holding(table_, RowOf(i), deadline_);
        if (!found.ok()) {
          if (states_[i].may_have_run) {
            GiveUp(i);
          } else {
            const Status& last = states_[i].last;
            states_[i].result = last.ok() ? found.status() : After(found.status(), last);
          }
          continue;
        }
        region = *std::move(found);
      }
      const ServerName& server = region->server;
      // The action's nonce is known only to the server that may have run it.
      if (states_[i].nonce != 0 && states_[i].may_have_run && server != *states_[i].may_have_run) {
        GiveUp(i);
        continue;
      }
      AddTo(parts[server], region, i);
    }
    std::vector<Part> sent;
    std::vector<std::pair<Channel*, Call>> calls;
    for (auto& [server, of_server] : parts) {
      for (Part& part : of_server) {
        calls.emplace_back(&session_.channels.To(server.address, "ClientService"), MakeCall(part));
        sent.push_back(std::move(part));
      }
    }
    const std::vector<Reply> replies = co_await session_.SendAll(std::move(calls));
    for (size_t i = 0; i < sent.size(); ++i) Take(sent[i], replies[i]);
  }

  void AddTo(std::vector<Part>& of_server, const RegionPtr& region, size_t i) {
    const Mutation* mutation = MutationOf(i);
    const size_t bytes = RowOf(i).size() + (mutation ? mutation->cells().size() : 0);
    if (of_server.empty() || of_server.back().actions >= kMostActions ||
        of_server.back().bytes + bytes > kMostBytes) {
      of_server.push_back({.server = region->server, .regions = {}});
    }
    Part& part = of_server.back();
    const auto found = std::ranges::find_if(
        part.regions, [&](const Part::OfRegion& one) { return one.region == region; });
    Part::OfRegion& of_region = found != part.regions.end()
                                    ? *found
                                    : part.regions.emplace_back(Part::OfRegion{region, {}});
    of_region.actions.push_back(i);
    ++part.actions;
    part.bytes += bytes;
  }

  Call MakeCall(const Part& part) const {
    auto request = std::make_shared<pb::MultiRequest>();
    Call call{.method = "Multi",
              .parameter = {},
              .cells = {},
              .deadline = session_.CallDeadline(deadline_)};
    call.cells.reserve(part.bytes + 1024);
    bool has_nonce = false;
    for (const Part::OfRegion& of_region : part.regions) {
      pb::RegionAction& out = *request->add_regionaction();
      ToProto(*of_region.region, out.mutable_region());
      for (size_t position = 0; position < of_region.actions.size(); ++position) {
        const size_t i = of_region.actions[position];
        pb::Action& action = *out.add_action();
        action.set_index(static_cast<uint32_t>(position));
        if (const Mutation* mutation = MutationOf(i)) {
          ToProto(*mutation, states_[i].nonce, action.mutable_mutation(), &call.cells);
          has_nonce |= states_[i].nonce != 0;
        } else {
          ToProto(std::get<Get>(actions_[i]), action.mutable_get());
        }
      }
    }
    if (has_nonce) request->set_noncegroup(session_.nonce_group);
    call.parameter = std::move(request);
    return call;
  }

  void Take(const Part& part, const Reply& reply) {
    const auto each = [&](const auto& visit) {
      for (const Part::OfRegion& of_region : part.regions) {
        for (const size_t i : of_region.actions) visit(i);
      }
    };
    switch (reply.outcome) {
      case Reply::Outcome::kAnswer:
        TakeAnswer(part, reply);
        return;
      case Reply::Outcome::kNotSent:
        if (reply.status.code() == StatusCode::kInvalidArgument) {
          each([&](size_t i) { End(i, reply.status); });
          return;
        }
        if (reply.status.code() == StatusCode::kBusy) {
          wants_pause_ = true;  // kBusy comes from the client's own queue, not from the server
        } else {
          SuspectAll(part);
        }
        each([&](size_t i) {
          if (!states_[i].refusals.IsFinal(part.server, reply.status)) {
            return Again(i, reply.status);
          }
          End(i, reply.status);
        });
        return;
      case Reply::Outcome::kUnknown:
        if (reply.status.code() == StatusCode::kResourceExhausted) {
          each([&](size_t i) { FailUnread(i, part.server, reply.status); });
          return;
        }
        SuspectAll(part);
        each([&](size_t i) { MaybeAgain(i, part.server, reply.status); });
        return;
      case Reply::Outcome::kException:
        for (const Part::OfRegion& of_region : part.regions) {
          Refused(of_region, part.server, reply.exception, of_region.actions);
        }
    }
  }

  void SuspectAll(const Part& part) {
    for (const Part::OfRegion& one : part.regions) session_.locator.Suspect(one.region);
  }

  // Handles an exception that applies to all of `actions`.
  void Refused(const Part::OfRegion& of_region, const ServerName& server,
               const Exception& exception, const std::vector<size_t>& actions) {
    const Status status = exception.ToStatus().WithContext(server.address.ToString());
    const RetryAction retry_action = exception.retry_action();
    if (retry_action == RetryAction::kRelocate) {
      session_.locator.Refused(of_region.region, exception);
    }
    if (retry_action == RetryAction::kElsewhere) session_.locator.Suspect(of_region.region);
    for (const size_t i : actions) {
      switch (retry_action) {
        case RetryAction::kBackOff:
          wants_pause_ = true;
          [[fallthrough]];
        case RetryAction::kRelocate:
          Again(i, status);
          break;
        case RetryAction::kElsewhere:
        case RetryAction::kUnknown:
          if (MutationOf(i) == nullptr &&
              (retry_action == RetryAction::kElsewhere || ++states_[i].unknown < kTriesOfUnknown)) {
            wants_pause_ = true;
            Again(i, status);
            break;
          }
          [[fallthrough]];
        default:
          if (MutationOf(i) != nullptr && exception.may_have_run()) {
            states_[i].may_have_run = server;
          }
          End(i, status);
      }
    }
  }

  void TakeAnswer(const Part& part, const Reply& reply) {
    pb::MultiResponse answer;
    if (!answer.ParseFromArray(reply.message.data(), static_cast<int>(reply.message.size())) ||
        answer.regionactionresult_size() != static_cast<int>(part.regions.size())) {
      const Status fault = DataLoss("an answer that does not fit its call");
      for (const Part::OfRegion& one : part.regions) {
        for (const size_t i : one.actions) FailUnread(i, part.server, fault);
      }
      return;
    }
    std::string_view cells = reply.cells;
    for (size_t r = 0; r < part.regions.size(); ++r) {
      const Part::OfRegion& of_region = part.regions[r];
      const pb::RegionActionResult& result = answer.regionactionresult(static_cast<int>(r));
      std::vector<bool> told(of_region.actions.size());
      for (const pb::ResultOrException& one : result.resultorexception()) {
        // Results come in another order than the actions; cells come in the order of the results.
        Result<Row> row = TakeRow(one.result(), &cells, reply.frame);
        if (!row.ok()) cells = {};  // the position of the next result's cells is unknown
        if (one.index() >= told.size() || told[one.index()]) continue;
        const size_t i = of_region.actions[one.index()];
        told[one.index()] = true;
        row = WithKey(RowOf(i), std::move(row));
        if (one.has_exception()) {
          Refused(of_region, part.server, ExceptionOf(one.exception()), {i});
        } else if (!row.ok()) {
          FailUnread(i, part.server, row.status());
        } else {
          states_[i].result = std::move(row);
        }
      }
      for (size_t position = 0; position < told.size(); ++position) {
        if (told[position]) continue;
        const size_t i = of_region.actions[position];
        if (result.has_exception()) {
          Refused(of_region, part.server, ExceptionOf(result.exception()), {i});
        } else {
          FailUnread(i, part.server,
                     DataLoss("the answer of " + part.server.ToString() + " has no result for it"));
        }
      }
    }
  }

  void FailUnread(size_t i, const ServerName& server, const Status& fault) {
    if (MutationOf(i) != nullptr) states_[i].may_have_run = server;
    End(i, fault);
  }

  Session& session_;
  const std::string table_;
  const std::vector<std::variant<Get, Mutation>> actions_;
  const WriteOptions options_;
  const Deadline deadline_;
  std::vector<State> states_;
  std::vector<size_t> pending_;
  bool wants_pause_ = false;
  Backoff backoff_ = kRetryPauses;
};

}  // namespace

Task<std::vector<Result<Row>>> RunBatch(Session& session, std::string table,
                                        std::vector<std::variant<Get, Mutation>> actions,
                                        WriteOptions options, Deadline deadline) {
  Batch batch(session, std::move(table), std::move(actions), std::move(options), deadline);
  co_return co_await batch.Run();
}

}  // namespace tamis::hbase
