// `tamis serve` beside the same work in one process, in one run; answers are verified, ratios are
// what counts.
//
//   server_benchmark
//
// The program `tamis` stands beside the benchmark. Both open one store of the embedded cluster, for
// reading only: the server as a process of its own, whose processor time is measured alone, and the
// benchmark itself. Goals: a routed query <= 1.3x of the processor time, rows streamed at >= .5x of
// the rate, p99 of a quick query beside 1,000 idle and 100 slow clients <= 1.2x, a scrape at 10,000
// regions <= 5 ms.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/answers.h"
#include "tamis/server/sql_database.h"
#include "tamis/server/testing/http_client.h"
#include "tamis/store/opened_store.h"

extern char** environ;

namespace tamis::server {
namespace {

constexpr int64_t kRows = 100'000;
constexpr int kRegionDoublings = 5;  // 32 regions
constexpr int kClients = 16;
constexpr int kRounds = 9;

using Clock = std::chrono::steady_clock;

double SecondsOf(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) Die("cannot read the processor time of a process");
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t OwnerOf(int64_t id) { return id * 7919 % kRows; }

// Splits each region of the table, so many times over.
void SplitAll(OpenedStore* store, const std::string& table, int doublings) {
  for (int i = 0; i < doublings; ++i) {
    const auto regions =
        Get(AwaitResult<std::vector<RegionInfo>>(&store->engine().executor(), {}, [&](auto done) {
          store->engine().cluster().ListRegions(table, {}, std::move(done));
        }));
    for (const RegionInfo& region : regions) {
      Check(AwaitStatus(&store->engine().executor(), {}, [&](auto done) {
        store->admin().SplitRegion(region.id, "", std::move(done));
      }));
    }
  }
}

void Fill(const std::string& directory) {
  const auto store = Get(OpenedStore::Open(directory, {.split_bytes = 0}));
  const SchemaPtr table =
      Get(store->Define("t", {"id int64", "owner int64", "size int64", "description", "key (id)",
                              "index owner (owner)"}));
  std::vector<Write> batch;
  for (int64_t id = 0; id < kRows; ++id) {
    batch.push_back({.row = {Value::Int64(id), Value::Int64(OwnerOf(id)), Value::Int64(id % 997),
                             Value::Text(std::string(100, 'd'))}});
    if (batch.size() < 1000) continue;
    for (const Status& status : store->engine().Apply(table, std::exchange(batch, {})))
      Check(status);
  }
  SplitAll(store.get(), "t", kRegionDoublings);
  const SchemaPtr now = Get(store->engine().Table("t"));
  if (!store->engine().WaitUntilRouted(*now, std::chrono::seconds(120))) Die("no filters came");
}

// `tamis serve` over the store.
class ServerProcess {
 public:
  ServerProcess(const std::string& program, const std::string& directory) {
    int ends[2];
    if (pipe(ends) != 0) Die("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    const std::string store = "rocks:" + directory + "?mode=ro";
    std::vector<const char*> words = {program.c_str(), "--store",  store.c_str(),
                                      "serve",         "--listen", "127.0.0.1:0",
                                      "--statements",  "1000",     nullptr};
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, const_cast<char**>(words.data()),
                    environ) != 0) {
      Die("cannot start " + program);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    std::string said;
    char byte = 0;
    while (read(ends[0], &byte, 1) == 1 && byte != '\n') said += byte;
    close(ends[0]);
    const size_t at = said.find("127.0.0.1:");
    if (at == std::string::npos) Die("the server did not say where it listens: " + said);
    port_ = static_cast<uint16_t>(std::stoi(said.substr(at + 10)));
    if (clock_getcpuclockid(pid_, &clock_) != 0) Die("no clock of the server's processor time");
    // Another process tells of its filters when it is asked, and not otherwise.
    while (HttpClient(port_).Get("/readyz").status != 200) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  ~ServerProcess() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  uint16_t port() const { return port_; }
  double cpu() const { return SecondsOf(clock_); }

 private:
  pid_t pid_ = 0;
  uint16_t port_ = 0;
  clockid_t clock_ = 0;
};

// ---- A routed query, 16 clients

constexpr int kQueries = 200;  // queries of a client, in a round
constexpr const char* kRouted = "SELECT id, size FROM t WHERE owner = ?";

void Expect(const std::string& got, const std::string& wanted) {
  if (got.find(wanted) == std::string::npos) Die("the answer is not " + wanted + " but " + got);
}

template <class Query>
void ByAll(Query query) {
  std::vector<std::thread> threads;
  for (int client = 0; client < kClients; ++client) threads.emplace_back([=] { query(client); });
  for (std::thread& thread : threads) thread.join();
}

int64_t IdOf(int client, int query) { return (client * 6151 + query * 389) % kRows; }

void QueryOverHttp(uint16_t port, int client) {
  HttpClient http(port);
  for (int i = 0; i < kQueries; ++i) {
    const int64_t id = IdOf(client, i);
    const nlohmann::json request = {{"sql", kRouted}, {"parameters", {OwnerOf(id)}}};
    Expect(http.Ask("POST", "/v1/sql", request.dump()).body,
           "[[" + std::to_string(id) + "," + std::to_string(id % 997) + "]]");
  }
}

// Each statement is prepared, as a program does that does not keep its statements.
void QueryHere(SqlDatabases* databases, int client) {
  auto database = Get(databases->Take());
  for (int i = 0; i < kQueries; ++i) {
    const int64_t id = IdOf(client, i);
    sqlite3_stmt* const statement = Get(database->Prepare(kRouted));
    sqlite3_bind_int64(statement, 1, OwnerOf(id));
    if (sqlite3_step(statement) != SQLITE_ROW || sqlite3_column_int64(statement, 0) != id ||
        sqlite3_column_int64(statement, 1) != id % 997 || sqlite3_step(statement) != SQLITE_DONE) {
      Die("a wrong row of owner " + std::to_string(OwnerOf(id)));
    }
    database->End(/*keep=*/false);
  }
  databases->GiveBack(std::move(database));
}

void RoutedQueries(const ServerProcess& server, SqlDatabases* databases) {
  std::vector<double> here_us, http_us, ratios, times;
  for (int round = -2; round < kRounds; ++round) {
    const double cpu = SecondsOf(CLOCK_PROCESS_CPUTIME_ID);
    const auto start = Clock::now();
    ByAll([=](int client) { QueryHere(databases, client); });
    const double here_seconds = SecondsSince(start);
    const double here = SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    const double server_cpu = server.cpu();
    const auto http_start = Clock::now();
    ByAll([&](int client) { QueryOverHttp(server.port(), client); });
    const double http_seconds = SecondsSince(http_start);
    const double http = server.cpu() - server_cpu;
    if (round < 0) continue;  // to warm up
    constexpr double kOne = 1e6 / (kClients * kQueries);
    here_us.push_back(here * kOne);
    http_us.push_back(http * kOne);
    ratios.push_back(http / here);
    times.push_back(http_seconds / here_seconds);
  }
  std::printf(
      "a routed query of one row, %d clients: %.0f us of the server's processor against %.0f in "
      "one process, prepared each time, %.2fx (goal <= 1.3x); time %.2fx, with the client's own "
      "processor time\n",
      kClients, Median(http_us), Median(here_us), Median(ratios), Median(times));
  Report({.work = Printed("a routed query of one row over HTTP, %d clients", kClients),
          .beside = "the same in one process, prepared each time",
          .now = Printed("%.0f us; %.0f us of the server's processor", Median(http_us),
                         Median(here_us)),
          .ratio = Printed("%.2fx the processor time", Median(ratios)),
          .goal = "<= 1.3x"});
}

// ---- 10,000 rows

constexpr const char* kMany = "SELECT id, owner, size FROM t WHERE id < 10000";

void StreamedRows(const ServerProcess& server, SqlDatabases* databases) {
  std::vector<double> ratios, rates;
  for (int round = -2; round < kRounds; ++round) {
    auto start = Clock::now();
    auto database = Get(databases->Take());
    sqlite3_stmt* const statement = Get(database->Prepare(kMany));
    int64_t sum = 0, rows = 0;
    for (; sqlite3_step(statement) == SQLITE_ROW; ++rows) {
      for (int column = 0; column < 3; ++column) sum += sqlite3_column_int64(statement, column);
    }
    database->End(/*keep=*/false);
    databases->GiveBack(std::move(database));
    const double here = SecondsSince(start);
    if (rows != 10'000 || sum == 0) Die("wrong rows");
    start = Clock::now();
    HttpClient http(server.port());
    const nlohmann::json request = {{"sql", kMany}};
    const auto answer =
        http.Ask("POST", "/v1/sql", request.dump(), {{"Accept", "application/x-ndjson"}});
    const double seconds = SecondsSince(start);
    Expect(answer.body, "\"complete\":true,\"row_count\":10000");
    if (round < 0) continue;
    ratios.push_back(here / seconds);
    rates.push_back(10'000 / seconds);
  }
  std::printf("10,000 rows streamed: %.0f a second, %.2fx of one process (goal >= .5x)\n",
              Median(rates), Median(ratios));
  Report({.work = "10,000 rows streamed over HTTP",
          .beside = "the same in one process",
          .now = Printed("%.0f a second", Median(rates)),
          .ratio = Printed("%.2fx the rows a second", Median(ratios)),
          .goal = ">= 0.5x"});
}

// ---- Many connections

double P99(uint16_t port) {
  HttpClient http(port);
  std::vector<double> times;
  for (int i = 0; i < 2000; ++i) {
    const int64_t id = IdOf(3, i);
    const nlohmann::json request = {{"sql", kRouted}, {"parameters", {OwnerOf(id)}}};
    const auto start = Clock::now();
    Expect(http.Ask("POST", "/v1/sql", request.dump()).body, "[[" + std::to_string(id) + ",");
    times.push_back(SecondsSince(start));
  }
  std::ranges::sort(times);
  return times[times.size() * 99 / 100];
}

// Waits until the server uses no processor time to speak of, which is measured over an interval.
void AwaitRest(const ServerProcess& server) {
  for (double before = server.cpu(), now = before + 1; now - before > 0.01;) {
    before = server.cpu();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    now = server.cpu();
  }
}

void ManyConnections(const ServerProcess& server) {
  std::vector<double> alone, beside;
  for (int round = -1; round < 5; ++round) {
    const double before = P99(server.port());
    std::vector<std::unique_ptr<HttpClient>> clients;
    for (int i = 0; i < 1000; ++i) {
      clients.push_back(std::make_unique<HttpClient>(server.port()));
      if (clients.back()->Get("/healthz").status != 200) Die("an idle client is refused");
    }
    const nlohmann::json all = {{"sql", "SELECT * FROM t"}};
    for (int i = 0; i < 100; ++i) {  // each takes the first rows of 13 MB, and no more
      clients.push_back(std::make_unique<HttpClient>(server.port()));
      clients.back()->Send("POST", "/v1/sql", all.dump(), {{"Accept", "application/x-ndjson"}});
      Expect(clients.back()->ReceiveUntil("\n["), "\n[");
    }
    // Until the server has made what it makes ahead of the slow clients, and waits for them.
    AwaitRest(server);
    const double after = P99(server.port());
    if (round < 0) continue;
    alone.push_back(before);
    beside.push_back(after / before);
  }
  std::printf(
      "p99 of a routed query beside 1,000 idle and 100 slow clients: %.2fx of %.2f ms alone (goal "
      "<= "
      "1.2x)\n",
      Median(beside), Median(alone) * 1e3);
  Report({.work = "p99 of a routed query beside 1,000 idle and 100 slow clients",
          .beside = "the same alone",
          .now = Printed("%.2f ms alone", Median(alone) * 1e3),
          .ratio = Printed("%.2fx", Median(beside)),
          .goal = "<= 1.2x"});
}

// ---- A scrape

void Scrape(const std::string& program, const std::string& directory) {
  {
    const auto store = Get(OpenedStore::Open(directory, {.split_bytes = 0}));
    const SchemaPtr table =
        Get(store->Define("r", {"id int64", "v int64", "key (id)", "index v (v)"}));
    std::vector<Write> batch;
    for (int64_t id = 0; id < 40'000; ++id) {
      batch.push_back({.row = {Value::Int64(id), Value::Int64(id)}});
      if (batch.size() < 1000) continue;
      for (const Status& status : store->engine().Apply(table, std::exchange(batch, {}))) {
        Check(status);
      }
    }
    SplitAll(store.get(), "r", 13);
    if (!store->engine().WaitUntilRouted(*table, std::chrono::seconds(300))) Die("no filters came");
  }
  const ServerProcess server(program, directory);
  HttpClient http(server.port());
  std::vector<double> times;
  std::string text;
  for (int i = 0; i < 50; ++i) {
    const auto start = Clock::now();
    text = http.Get("/metrics").body;
    times.push_back(SecondsSince(start));
  }
  const size_t at = text.find("\ntamis_coordinator_regions ");
  const std::string regions = text.substr(at + 26, text.find('\n', at + 1) - at - 26);
  std::printf("a scrape of /metrics with%s regions: %.2f ms (goal <= 5 ms)\n", regions.c_str(),
              Median(times) * 1e3);
  Report({.work = "a scrape of /metrics with" + regions + " regions",
          .ratio = Printed("%.2f ms", Median(times) * 1e3),
          .goal = "<= 5 ms"});
}

void Run(const std::string& program) {
  const auto directory = std::filesystem::temp_directory_path() / "tamis_server_benchmark";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  const std::string filled = directory / "store";
  Fill(filled);
  {
    const auto store = Get(OpenedStore::Open(filled, {.read_only = true}));
    if (!store->engine().WaitUntilRouted(*Get(store->engine().Table("t")),
                                         std::chrono::seconds(120))) {
      Die("no filters came");
    }
    SqlDatabases databases(store, /*may_write=*/false, kClients);
    const ServerProcess server(program, filled);
    RoutedQueries(server, &databases);
    StreamedRows(server, &databases);
    ManyConnections(server);
  }
  Scrape(program, directory / "many");
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace tamis::server

int main(int, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  tamis::server::Run(std::filesystem::path(argv[0]).parent_path() / "tamis");
  return 0;
}
