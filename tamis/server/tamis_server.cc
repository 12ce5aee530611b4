#include "tamis/server/tamis_server.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "tamis/base/exception_status.h"
#include "tamis/server/admission.h"
#include "tamis/server/cluster_calls.h"
#include "tamis/server/console_page.h"
#include "tamis/server/engine_service.h"
#include "tamis/server/metrics.h"
#include "tamis/server/operations.h"
#include "tamis/server/problem.h"
#include "tamis/server/routes.h"
#include "tamis/server/row_api.h"
#include "tamis/server/running_statements.h"
#include "tamis/server/store_api.h"
#include "tamis/server/store_calls.h"
#include "tamis/server/worker_threads.h"

namespace tamis::server {
namespace {

// The number of exchanges that are not released yet.
class OpenExchanges {
 public:
  void Add() {
    std::lock_guard lock(mutex_);
    ++count_;
  }
  void Remove() {
    std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }
  void AwaitNone() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  uint64_t count_ = 0;
};

// Counts the request when its answer has ended.
class CountedExchange final : public Exchange {
 public:
  CountedExchange(ExchangePtr exchange, OpenExchanges* open, Metrics* metrics, std::string route)
      : exchange_(std::move(exchange)), open_(open), metrics_(metrics), route_(std::move(route)) {
    open_->Add();
  }
  ~CountedExchange() override {
    if (!answered_) Drop();
    exchange_ = nullptr;
    metrics_->CountRequest(route_, status_, std::chrono::steady_clock::now() - begun_);
    open_->Remove();
  }

  const Request& request() const override { return exchange_->request(); }
  void Send(Response response) override {
    status_ = response.status;
    answered_ = true;
    exchange_->Send(std::move(response));
  }
  void Begin(Response head) override {
    status_ = head.status;
    exchange_->Begin(std::move(head));
  }
  void Write(std::string part, std::function<void(bool)> sent) override {
    exchange_->Write(std::move(part), std::move(sent));
  }
  void End() override {
    answered_ = true;
    exchange_->End();
  }
  void Abort() override {
    answered_ = true;
    exchange_->Abort();
  }
  void OnDisconnect(std::function<void()> gone) override {
    exchange_->OnDisconnect(std::move(gone));
  }

 private:
  // Without memory an answer may have been lost: the client must not wait for it.
  void Drop() noexcept {
    try {
      exchange_->Abort();
    } catch (...) {
    }
  }

  ExchangePtr exchange_;
  OpenExchanges* const open_;
  Metrics* const metrics_;
  const std::string route_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::atomic<int> status_ = 0;  // 0: no answer was begun
  std::atomic<bool> answered_ = false;
};

// For statements that were cancelled.
constexpr std::chrono::minutes kLastWait{1};

constexpr const char* kProtobuf = "application/x-protobuf";

std::string NameOf(const Route* route) {
  return route == nullptr ? "none" : route->method + " " + route->pattern;
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

struct TamisServer::Parts {
  Parts(std::shared_ptr<OpenedStore> opened, const Options& options)
      : store(std::move(opened)),
        admission(options.host_names, options.token),
        workers(std::make_unique<WorkerThreads>(options.threads)),
        statements(options.sql.max_statements),
        databases(store, options.sql.may_write, 4),
        calls(&store->engine().executor(), workers.get(), &statements, &metrics,
              options.sql.max_time),
        api(&databases),
        rows(&store->engine()),
        sql(store, workers.get(), &statements, &metrics, options.sql),
        engine_service(store.get(), workers.get(), &statements, &metrics, options.sql.max_time),
        cluster(store.get(), options.may_administer),
        operations(store),
        events(store, {.hello = [this] { return Hello(); }, .totals = [this] { return Totals(); }},
               options.events),
        may_write(options.sql.may_write),
        is_tls(!options.http.tls_cert_file.empty()),
        routes(AllRoutes()) {}

  std::vector<Route> AllRoutes();
  std::vector<Route> MakeRoutes();
  std::vector<Route> OperationRoutes();
  std::optional<Response> Admit(const Request& head);
  void Answer(const ExchangePtr& exchange);
  // A route whose answer is made by a call that blocks.
  template <class Make>
  std::function<void(const Call&)> OnWorker(Make make);
  template <class Make>
  std::function<void(const Call&)> Writing(Make make);
  void IfWriting(const Call& call, const std::function<void(const Call&)>& write) const;
  void Ready(const Call& call);
  // Documents of the console's streams of events.
  std::string Hello() const;
  std::string Totals() const;

  const std::shared_ptr<OpenedStore> store;
  Metrics metrics;
  OpenExchanges open_exchanges;
  const Admission admission;
  const std::unique_ptr<WorkerThreads> workers;
  RunningStatements statements;
  SqlDatabases databases;
  StoreCalls calls;
  StoreApi api;
  RowApi rows;
  SqlService sql;
  EngineService engine_service;
  ClusterCalls cluster;
  Operations operations;
  const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  EventStreams events;
  const bool may_write;
  const bool is_tls;
  const Routes routes;
  std::unique_ptr<HttpServer> http;
  std::atomic<bool> stopped = false;
  bool has_ended = false;
};

template <class Make>
std::function<void(const Call&)> TamisServer::Parts::OnWorker(Make make) {
  return [this, make](const Call& call) {
    calls.Start(call, [make](const StoreCallPtr& one) { one->Answer(make(*one)); });
  };
}

template <class Make>
std::function<void(const Call&)> TamisServer::Parts::Writing(Make make) {
  return [this, write = OnWorker(make)](const Call& call) { IfWriting(call, write); };
}

void TamisServer::Parts::IfWriting(const Call& call,
                                   const std::function<void(const Call&)>& write) const {
  if (may_write) return write(call);
  call.exchange->Send(
      Problem(403, FailedPrecondition("this server only reads: it was started without --write")));
}

void TamisServer::Parts::Ready(const Call& call) {
  const Engine::Knowledge known = store->engine().knowledge();
  const bool complete = known.indexes_missing == known.indexes_left_out;
  const nlohmann::ordered_json json = {
      {"ready", complete && !stopped.load()},
      {"regions", known.regions},
      {"indexes_missing", known.indexes_missing},
      {"indexes_left_out", known.indexes_left_out},
      {"detail", stopped.load() ? "the server is stopping"
                 : complete     ? "the filters of all regions are here"
                                : "some filters are not here yet: searches ask these regions, and "
                                  "their answers are complete"}};
  call.exchange->Send(
      {.status = complete && !stopped.load() ? 200 : 503, .body = json.dump() + "\n"});
}

std::string TamisServer::Parts::Hello() const {
  const auto uptime = std::chrono::steady_clock::now() - begun;
  const nlohmann::ordered_json json = {
      {"store", store->name()},
      {"version", TAMIS_VERSION},
      {"may_write", may_write},
      {"can_operate", may_write && operations.ArePossible()},
      {"uptime_ms", std::chrono::duration_cast<std::chrono::milliseconds>(uptime).count()}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string TamisServer::Parts::Totals() const {
  const Metrics::Totals totals = metrics.totals();
  const Engine::Knowledge known = store->engine().knowledge();
  const Engine::Totals work = store->engine().totals();
  nlohmann::ordered_json json = {{"searches", totals.searches},
                                 {"statements", totals.statements},
                                 {"rows", totals.rows},
                                 {"filter_bytes", known.filter_bytes},
                                 {"indexes_missing", known.indexes_missing},
                                 {"servers_without_lease", known.servers_without_lease},
                                 {"writes", work.writes},
                                 {"writes_unknown", work.writes_unknown},
                                 {"batches", work.batches},
                                 {"batch_us", work.batch_time / std::chrono::microseconds(1)},
                                 {"events", work.events}};
  for (const Explain::Number& number : Explain::Numbers()) {
    json[std::string(number.name)] = totals.sums.*number.value;
  }
  return json.dump();
}

std::vector<Route> TamisServer::Parts::AllRoutes() {
  std::vector<Route> all = MakeRoutes();
  for (auto& more : {OperationRoutes(), ConsoleRoutes()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

std::vector<Route> TamisServer::Parts::OperationRoutes() {
  return {
      {.method = "POST",
       .pattern = "/v1/servers/{server}/kill",
       .summary = "Kills a region server of an embedded store",
       .answer = Writing([this](StoreCall& call) { return operations.KillServer(call); })},
      {.method = "POST",
       .pattern = "/v1/servers/{server}/pause",
       .summary = "Pauses a region server of an embedded store",
       .answer = Writing([this](StoreCall& call) { return operations.PauseServer(call); })},
      {.method = "POST",
       .pattern = "/v1/servers/{server}/resume",
       .summary = "Lets a paused region server go on, or starts a killed one",
       .answer = Writing([this](StoreCall& call) { return operations.ResumeServer(call); })},
      {.method = "POST",
       .pattern = "/v1/regions/{region}/split",
       .summary = "Splits a region of an embedded store near its middle",
       .answer = Writing([this](StoreCall& call) { return operations.SplitRegion(call); })},
      {.method = "POST",
       .pattern = "/v1/regions/{region}/move",
       .summary = "Moves a region of an embedded store to the server of the body",
       .answer = Writing([this](StoreCall& call) { return operations.MoveRegion(call); })},
      {.method = "GET",
       .pattern = "/v1/events",
       .summary = "Events of the store, as server-sent events (docs/SERVER.md)",
       .answer_type = "text/event-stream",
       .answer = [this](const Call& call) { events.Answer(call.exchange); }},
  };
}

std::vector<Route> TamisServer::Parts::MakeRoutes() {
  return {
      {.method = "POST",
       .pattern = "/v1/sql",
       .summary = "Runs a statement; with Accept: application/x-ndjson the rows are streamed",
       .answer = [this](const Call& call) { sql.Answer(call.exchange); }},
      {.method = "GET",
       .pattern = "/v1/tables",
       .summary = "The tables",
       .answer = OnWorker([this](StoreCall& call) { return api.Tables(call); })},
      {.method = "GET",
       .pattern = "/v1/tables/{table}",
       .summary = "A table's columns, key and indexes",
       .answer = OnWorker([this](StoreCall& call) { return api.Table(call); })},
      {.method = "GET",
       .pattern = "/v1/tables/{table}/regions",
       .summary = "The regions of a table and their servers",
       .answer = OnWorker([this](StoreCall& call) { return api.Regions(call); })},
      {.method = "GET",
       .pattern = "/v1/tables/{table}/indexes",
       .summary = "The indexes of a table, and in how many regions they are complete",
       .answer = OnWorker([this](StoreCall& call) { return api.Indexes(call); })},
      {.method = "POST",
       .pattern = "/v1/tables/{table}/rows",
       .summary = "Writes the rows of an array, each replaced whole",
       .is_conditional = true,
       .answer = Writing([this](StoreCall& call) { return rows.Post(call); })},
      {.method = "GET",
       .pattern = "/v1/tables/{table}/rows/{key}",
       .summary = "A row by its key; values of several columns have commas between them",
       .is_conditional = true,
       .answer = OnWorker([this](StoreCall& call) { return rows.Get(call); })},
      {.method = "PUT",
       .pattern = "/v1/tables/{table}/rows/{key}",
       .summary = "Writes a row, replaced whole",
       .is_conditional = true,
       .answer = Writing([this](StoreCall& call) { return rows.Put(call); })},
      {.method = "DELETE",
       .pattern = "/v1/tables/{table}/rows/{key}",
       .summary = "Deletes a row",
       .is_conditional = true,
       .answer = Writing([this](StoreCall& call) { return rows.Delete(call); })},
      {.method = "POST",
       .pattern = "/v1/tables/{table}/search",
       .summary = "Streams the rows of a TableSearch (remote.proto) as messages TableSearchPart",
       .request_type = kProtobuf,
       .answer_type = kProtobuf,
       .answer = [this](const Call& call) { engine_service.Search(call); }},
      {.method = "POST",
       .pattern = "/v1/tables/{table}/aggregate",
       .summary =
           "Streams the groups of a TableAggregate (remote.proto) as messages TableAggregatePart",
       .request_type = kProtobuf,
       .answer_type = kProtobuf,
       .answer = [this](const Call& call) { engine_service.Aggregate(call); }},
      {.method = "POST",
       .pattern = "/v1/tables/{table}/write",
       .summary = "Carries out TableWrites (remote.proto); the answer is a TableWriteResults",
       .request_type = kProtobuf,
       .answer_type = kProtobuf,
       .answer =
           [this](const Call& call) {
             IfWriting(call, [this](const Call& one) { engine_service.Write(one); });
           }},
      {.method = "POST",
       .pattern = "/v1/writes/withdraw",
       .summary = "Carries out a WithdrawWrite (remote.proto); the answer is a WriteNumberState",
       .request_type = kProtobuf,
       .answer_type = kProtobuf,
       .answer =
           [this](const Call& call) {
             IfWriting(call, [this](const Call& one) { engine_service.Withdraw(one); });
           }},
      {.method = "POST",
       .pattern = "/v1/cluster",
       .summary = "Carries out a ClusterCall (remote.proto); the answer is a ClusterAnswer",
       .request_type = kProtobuf,
       .answer_type = kProtobuf,
       .answer =
           [this](const Call& call) {
             calls.Start(call, [this](const StoreCallPtr& one) { cluster.Answer(one); });
           }},
      {.method = "GET",
       .pattern = "/v1/servers",
       .summary = "The region servers",
       .answer = OnWorker([this](StoreCall& call) { return api.Servers(call); })},
      {.method = "GET",
       .pattern = "/v1/openapi.json",
       .summary = "This description",
       .answer =
           [this](const Call& call) {
             call.exchange->Send({.body = routes.OpenApi(TAMIS_VERSION)});
           }},
      {.method = "GET",
       .pattern = "/metrics",
       .summary = "Metrics in the format of OpenMetrics",
       .answer_type = "application/openmetrics-text",
       .answer =
           [this](const Call& call) {
             call.exchange->Send(
                 {.content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8",
                  .body = metrics.Text({.known = store->engine().knowledge(),
                                        .totals = store->engine().totals(),
                                        .connections = http->connections(),
                                        .event_streams = events.open(),
                                        .statements = statements.count()})});
           }},
      {.method = "GET",
       .pattern = "/healthz",
       .summary = "Whether the process answers",
       .is_open = true,
       .answer = [](const Call& call) { call.exchange->Send({.body = "{\"alive\":true}\n"}); }},
      {.method = "GET",
       .pattern = "/readyz",
       .summary = "Whether the filters of all regions are known",
       .is_open = true,
       .answer = [this](const Call& call) { Ready(call); }},
  };
}

// A request with a body is looked at before the body is read, and any request when it is answered.
std::optional<Response> TamisServer::Parts::Admit(const Request& head) {
  const auto begun = std::chrono::steady_clock::now();
  std::map<std::string, std::string> parameters;
  std::vector<std::string> methods;
  const Route* const route = routes.Find(head, &parameters, &methods);
  auto refusal = admission.Refuse(head, route != nullptr && route->is_open);
  if (refusal) {
    metrics.CountRequest(NameOf(route), refusal->status, std::chrono::steady_clock::now() - begun);
  }
  return refusal;
}

void TamisServer::Parts::Answer(const ExchangePtr& exchange) {
  Call call;
  std::vector<std::string> methods;
  const Route* const route = routes.Find(exchange->request(), &call.parameters, &methods);
  call.exchange =
      std::make_shared<CountedExchange>(exchange, &open_exchanges, &metrics, NameOf(route));
  auto refusal = admission.Refuse(exchange->request(), route != nullptr && route->is_open);
  if (refusal) return call.exchange->Send(*std::move(refusal));
  if (route != nullptr) return route->answer(call);
  if (methods.empty()) {
    return call.exchange->Send(
        Problem(404, NotFound("there is nothing at \"" + exchange->request().path +
                              "\"; GET /v1/openapi.json lists what there is")));
  }
  Response response =
      Problem(405, InvalidArgument("\"" + exchange->request().path + "\" takes " + Joined(methods) +
                                   ", not " + exchange->request().method));
  response.headers.emplace_back("Allow", Joined(methods));
  call.exchange->Send(std::move(response));
}

Result<std::unique_ptr<TamisServer>> TamisServer::Start(std::shared_ptr<OpenedStore> store,
                                                        const Options& options) {
  auto parts = std::make_unique<Parts>(std::move(store), options);
  TAMIS_ASSIGN_OR_RETURN(parts->http, HttpServer::Listen(options.http));
  parts->http->Serve([raw = parts.get()](const ExchangePtr& exchange) { raw->Answer(exchange); },
                     [raw = parts.get()](const Request& head) { return raw->Admit(head); });
  return std::unique_ptr<TamisServer>(new TamisServer(std::move(parts)));
}

TamisServer::TamisServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

TamisServer::~TamisServer() {
  while (!Stop(std::chrono::milliseconds(0))) {
  }
}

std::string TamisServer::address() const {
  std::string host = parts_->http->host();
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (parts_->is_tls ? "https://" : "http://") + host + ":" + std::to_string(port());
}

uint16_t TamisServer::port() const { return parts_->http->port(); }

bool TamisServer::Stop(std::chrono::milliseconds patience) {
  if (parts_->has_ended) return true;
  if (!parts_->stopped.exchange(true)) {
    parts_->events.Stop();
    parts_->http->Drain(patience);
  }
  if (!parts_->statements.Stop(kLastWait)) return false;
  // No request comes any more, then no work, and at last no connection is referred to. The objects
  // are kept for those that still name them.
  parts_->http->Close();
  parts_->workers->Join();
  parts_->open_exchanges.AwaitNone();
  parts_->has_ended = true;
  return true;
}

}  // namespace tamis::server
