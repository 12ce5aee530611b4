#include "tamis/server/engine_service.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tamis/base/exception_status.h"
#include "tamis/remote/messages.h"
#include "tamis/server/problem.h"
#include "tamis/server/streamed_call.h"

namespace tamis::server {
namespace {

constexpr size_t kPartBytes = 64 << 10;
constexpr std::chrono::milliseconds kPartTime{20};  // then rows are sent, however few
// A client keeps the combinations that it has; after so many it gets rows.
constexpr uint64_t kMostGroups = 1 << 16;

}  // namespace

// One operation.
class EngineService::Operation : public StreamedCall {
 public:
  Operation(EngineService* service, Call call)
      : StreamedCall(std::move(call.exchange), std::string(kRemoteContentType), service->workers_,
                     service->statements_),
        service_(service),
        table_(call.parameters.at("table")) {}

  // Instead of Start.
  virtual void Refuse(const Status& why) {
    Ended("refused", 0);
    exchange_->Send(Problem(why));
  }

 protected:
  virtual std::string ErrorPart(const Status& status) const = 0;
  // The search so far; null: none was begun.
  virtual const Explain* explain() const { return nullptr; }

  Status Parse(google::protobuf::MessageLite* message) const {
    if (message->ParseFromString(exchange_->request().body)) return Status::Ok();
    return InvalidArgument("cannot read the request: its body is no message " +
                           std::string(message->GetTypeName()));
  }
  template <class Message>
  Result<SchemaPtr> SchemaFor(const Message& message) const {
    return service_->SchemaFor(table_, message.table_id(), message.schema_version());
  }
  // Reads the request and finds the table's schema.
  template <class Message>
  Result<SchemaPtr> Read(Message* message) {
    TAMIS_RETURN_IF_ERROR(Parse(message));
    return SchemaFor(*message);
  }
  Duration TimeOf(Duration wanted) const { return std::min<Duration>(wanted, service_->max_time_); }

  void Fail(Status status) override {
    {
      std::lock_guard lock(mutex_);
      if (!why_cancelled_.ok() && status.code() == StatusCode::kCancelled) status = why_cancelled_;
    }
    Ended(OutcomeOf(status), 0);
    if (!has_begun()) return exchange_->Send(Problem(status));
    SendErrorPart(ErrorPart(status));
  }
  void Ended(const std::string& outcome, uint64_t rows) {
    if (std::exchange(ended_, true)) return;
    if (const Explain* const search = explain()) service_->metrics_->CountSearch(*search);
    service_->metrics_->CountStatement(outcome, rows);
  }

  EngineService* const service_;
  const std::string table_;
  std::atomic<bool> cancelled_ = false;

 private:
  void Interrupt() override { cancelled_ = true; }

  bool ended_ = false;
};

class EngineService::SearchOperation final : public Operation {
 public:
  using Operation::Operation;

 private:
  void Run() override {
    pb::TableSearch request;
    auto schema = Read(&request);
    if (!schema.ok()) return Fail(schema.status());
    schema_ = *std::move(schema);
    auto options = FromMessage(*schema_, request);
    if (!options.ok()) return Fail(options.status());
    options->timeout = TimeOf(options->timeout);
    options->cancelled = &cancelled_;
    rows_.emplace(service_->store_->engine().Search(schema_, *std::move(options)));
    part_.set_schema_version(schema_->version);
    Step();
  }

  std::string ErrorPart(const Status& status) const override {
    pb::TableSearchPart part;
    ToMessage(status, part.mutable_error());
    std::string bytes;
    AppendPart(part, &bytes);
    return bytes;
  }

  const Explain* explain() const override { return rows_ ? &rows_->explain() : nullptr; }

  // Makes rows until a part is full, or the search ends.
  void Step() {
    const auto begun = std::chrono::steady_clock::now();
    size_t bytes = 0;
    while (bytes < kPartBytes && std::chrono::steady_clock::now() - begun < kPartTime) {
      auto group = rows_->NextGroup();
      if (!group.ok()) return Fail(group.status());
      if (!group->has_value()) return Complete();
      pb::FoundRow* found = part_.add_rows();
      if (const Status fits = ToMessage(*schema_, **group, found); !fits.ok()) return Fail(fits);
      bytes += found->key().size() + found->row().size() + 16;
      if (!(*group)->has_key && ++groups_ == kMostGroups) rows_->StopGrouping();
      ++given_;
    }
    // Often enough for a client that stops early, and seldom enough to cost little.
    ++parts_;
    if ((parts_ & (parts_ - 1)) == 0) ToMessage(rows_->explain(), part_.mutable_explain());
    SendPart(TakePart(), [this](bool sent) {
      if (!sent) return Fail(Cancelled("the client takes no rows"));
      Step();
    });
  }

  std::string TakePart() {
    std::string bytes;
    AppendPart(part_, &bytes);
    part_.Clear();
    return bytes;
  }

  void Complete() {
    part_.set_complete(true);
    ToMessage(rows_->explain(), part_.mutable_explain());
    Ended("complete", given_);
    SendLast(TakePart());
  }

  SchemaPtr schema_;
  std::optional<RowStream> rows_;
  pb::TableSearchPart part_;  // that is being filled
  uint64_t parts_ = 0;
  uint64_t groups_ = 0;
  uint64_t given_ = 0;
};

class EngineService::AggregateOperation final : public Operation {
 public:
  using Operation::Operation;

 private:
  void Run() override {
    pb::TableAggregate request;
    const auto schema = Read(&request);
    if (!schema.ok()) return Fail(schema.status());
    auto options = FromMessage(**schema, request);
    if (!options.ok()) return Fail(options.status());
    options->timeout = TimeOf(options->timeout);
    options->cancelled = &cancelled_;
    auto found = service_->store_->engine().Aggregate(*schema, *std::move(options));
    if (!found.ok()) return Fail(found.status());
    found_ = *std::move(found);
    has_found_ = true;
    Ended("complete", found_.groups.size());
    Send();
  }

  std::string ErrorPart(const Status& status) const override {
    pb::TableAggregatePart part;
    ToMessage(status, part.mutable_error());
    std::string bytes;
    AppendPart(part, &bytes);
    return bytes;
  }

  const Explain* explain() const override { return has_found_ ? &found_.explain : nullptr; }

  void Send() {
    pb::TableAggregatePart part;
    for (size_t bytes = 0; next_ < found_.groups.size() && bytes < kPartBytes; ++next_) {
      pb::FoundGroup* group = part.add_groups();
      ToMessage(found_.groups[next_], group);
      bytes += group->ByteSizeLong();
    }
    const bool is_last = next_ == found_.groups.size();
    if (is_last) {
      part.set_complete(true);
      ToMessage(found_.explain, part.mutable_explain());
    }
    std::string bytes;
    AppendPart(part, &bytes);
    if (is_last) return SendLast(std::move(bytes));
    SendPart(std::move(bytes), [this](bool sent) {
      if (!sent) return Fail(Cancelled("the client takes no groups"));
      Send();
    });
  }

  Aggregates found_;
  bool has_found_ = false;
  size_t next_ = 0;
};

class EngineService::WriteOperation final : public Operation {
 public:
  using Operation::Operation;

 private:
  void Run() override {
    pb::TableWrites request;
    if (const Status status = Parse(&request); !status.ok()) return Fail(status);
    WriteNumbers* const numbers = &service_->write_numbers_;
    if (IsForAnother(request)) return FailAsOther();
    if (!numbers->Take(request.client(), request.number())) return FailAsTwice();
    auto work = WithoutExceptions([&] { return Prepare(request); });
    if (!work.ok()) {
      numbers->Refuse(request.client(), request.number());
      return FailHere(HttpStatusOf(work.status().code()), work.status());
    }
    const std::vector<Status> done =
        service_->store_->engine().Apply(work->schema, std::move(work->writes), &cancelled_);
    const auto body = WithoutExceptions([&]() -> Result<std::string> {
      pb::TableWriteResults results;
      for (const Status& status : done) ToMessage(status, results.add_results());
      return results.SerializeAsString();
    });
    if (!body.ok())
      return Fail(
          DeadlineExceeded(body.status().message() + "; the writes may have been carried out"));
    Ended("complete", done.size());
    exchange_->Send({.content_type = std::string(kRemoteContentType), .body = *body});
  }

  struct Work {
    SchemaPtr schema;
    std::vector<tamis::Write> writes;
  };
  Result<Work> Prepare(const pb::TableWrites& request) {
    TAMIS_ASSIGN_OR_RETURN(SchemaPtr schema, SchemaFor(request));
    TAMIS_RETURN_IF_ERROR(Check(*schema, request));
    std::vector<tamis::Write> writes;
    for (const pb::Mutation& mutation : request.mutations()) {
      TAMIS_ASSIGN_OR_RETURN(tamis::Write write, FromMessage(*schema, mutation));
      writes.push_back(std::move(write));
    }
    return Work{std::move(schema), std::move(writes)};
  }

  bool IsForAnother(const pb::TableWrites& request) const {
    return request.process() != 0 && request.process() != service_->write_numbers_.process();
  }
  // This server has carried out nothing of the request, and never will.
  void FailHere(int http_status, const Status& status) {
    Response refusal = ProblemOfProcess(service_->write_numbers_.process(), http_status, status);
    Ended("refused", 0);
    exchange_->Send(std::move(refusal));
  }
  void FailAsOther() {
    FailHere(421, FailedPrecondition(
                      "a request to write that is for another server, or for this one before it "
                      "was started again; nothing was written here, and that one may have carried "
                      "it out"));
  }
  // A proxy may have sent the request before.
  void Refuse(const Status& why) override {
    pb::TableWrites request;
    if (!request.ParseFromString(exchange_->request().body)) return Operation::Refuse(why);
    if (IsForAnother(request)) return FailAsOther();
    const bool is_first = service_->write_numbers_.Withdraw(request.client(), request.number());
    if (!is_first) return FailAsTwice();
    FailHere(HttpStatusOf(why.code()), why);
  }
  void FailAsTwice() {
    Fail(DeadlineExceeded(
        "this write request was received before; the first copy may have been carried out"));
  }

  static Status Check(const TableSchema& schema, const pb::TableWrites& request) {
    if (request.mutations_size() > kMostMutations) {
      return InvalidArgument("cannot write " + std::to_string(request.mutations_size()) +
                             " rows at once; send at most " + std::to_string(kMostMutations) +
                             " in a request");
    }
    // Values of columns that this server does not know yet would be lost.
    if (schema.version < request.schema_version()) {
      return Unavailable("table \"" + schema.name + "\" has version " +
                         std::to_string(schema.version) + " here, and the request is of version " +
                         std::to_string(request.schema_version()) +
                         "; nothing was written, try again");
    }
    return Status::Ok();
  }

  std::string ErrorPart(const Status&) const override { return {}; }  // it is no stream
};

template <class One>
void EngineService::Start(const Call& call) {
  const std::shared_ptr<Operation> operation = std::make_shared<One>(this, call);
  const Status added = statements_->Add(operation.get());
  if (added.ok()) return operation->Start();
  operation->Refuse(added);
}

void EngineService::Search(const Call& call) { Start<SearchOperation>(call); }
void EngineService::Aggregate(const Call& call) { Start<AggregateOperation>(call); }
void EngineService::Write(const Call& call) { Start<WriteOperation>(call); }

// Answered at once, also where no more statements are taken.
void EngineService::Withdraw(const Call& call) {
  pb::WithdrawWrite request;
  if (!request.ParseFromString(call.request().body)) {
    return call.exchange->Send(
        Problem(InvalidArgument("cannot read the request: its body is no message WithdrawWrite")));
  }
  pb::WriteNumberState state;
  state.set_process(write_numbers_.process());
  state.set_withdrawn(request.process() == write_numbers_.process() &&
                      write_numbers_.Withdraw(request.client(), request.number()));
  call.exchange->Send(
      {.content_type = std::string(kRemoteContentType), .body = state.SerializeAsString()});
}

Result<SchemaPtr> EngineService::SchemaFor(const std::string& table, uint32_t id,
                                           uint64_t version) {
  Engine& engine = store_->engine();
  TAMIS_ASSIGN_OR_RETURN(SchemaPtr schema, engine.Table(table));
  if (schema->id != id || schema->version < version) {
    engine.ForgetTable(table);
    TAMIS_ASSIGN_OR_RETURN(schema, engine.Table(table));
  }
  if (schema->id == id) return schema;
  return NotFound("table \"" + table + "\" is another one than that of the request");
}

}  // namespace tamis::server
