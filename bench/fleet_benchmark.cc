// Many programs that write through `tamis serve`, beside one program with a coordinator of its own,
// on a real HBase: how long does a put with an index take, and how many coordinators do the region
// servers hear?
//
//   fleet_benchmark STORE               a namespace of an HBase (hbase_local_benchmark fleet)
//   fleet_benchmark client URL SEED     one of the programs, which the benchmark starts
//
// All put rows with a value that is new, so that each put waits for all coordinators, at the same
// total rate, which is far below what the cluster takes. Goals: the median of a put <= 1.3x of that
// of the direct coordinator; each region server hears 2 coordinators.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/answers.h"
#include "tamis/store/opened_store.h"

extern char** environ;

namespace tamis {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kTable[] = "benchmark_fleet";
constexpr int kPrograms = 200;
constexpr int kServers = 2;
constexpr int kRounds = 3;
constexpr int kPuts = 10;  // puts of a program, one a second
constexpr auto kInterval = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::minutes(2);

std::shared_ptr<OpenedStore> Open(const std::string& name) {
  return Get(OpenedStore::Open(name, {}));
}

// Puts rows of new values, one in each interval, the first after a part of it that the seed says.
// Returns the seconds of each put.
std::vector<double> PutRows(OpenedStore* store, int64_t seed) {
  const SchemaPtr table = Get(store->engine().Table(kTable));
  auto due = Clock::now() + kInterval * (seed % kPrograms) / kPrograms;
  std::vector<double> seconds;
  for (int64_t i = 0; i < kPuts; ++i, due += kInterval) {
    std::this_thread::sleep_until(due);
    // Odd factors, so that keys and values are spread and none comes twice.
    const int64_t id =
        static_cast<int64_t>(static_cast<uint64_t>(seed * kPuts + i) * 0x9e3779b97f4a7c15u);
    const auto start = Clock::now();
    const auto statuses = store->engine().Apply(
        table, {{.row = {Value::Int64(id), Value::Int64(id), Value::Text("a fleet")}}});
    seconds.push_back(SecondsSince(start));
    Check(statuses.at(0));
  }
  return seconds;
}

// Each row is found by its value.
void Verify(OpenedStore* store, int64_t first_seed) {
  const SchemaPtr table = Get(store->engine().Table(kTable));
  for (int64_t n = first_seed * kPuts; n < (first_seed + kPrograms) * kPuts; n += 97) {
    const auto id = static_cast<int64_t>(static_cast<uint64_t>(n) * 0x9e3779b97f4a7c15u);
    RowStream rows = store->engine().Search(
        table, {.predicate = Predicate::Compare(1, Predicate::Op::kEq, Value::Int64(id))});
    const auto row = Get(rows.Next());
    if (!row.has_value() || (*row)[0].int64() != id) Die("a row that was put is not found");
  }
}

// The greatest number of coordinators that a region server hears.
size_t Coordinators(OpenedStore* store) {
  const auto status =
      Get(AwaitResult<ClusterStatus>(&store->engine().executor(), {}, [&](auto done) {
        store->admin().GetStatus(std::move(done));
      }));
  size_t most = 0;
  for (const ServerStatus& server : status.servers) {
    most = std::max(most, server.coordinators.size());
  }
  return most;
}

// A child process, whose standard output is read.
class Program {
 public:
  explicit Program(const std::vector<std::string>& words) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) Die("cannot make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0) {
      Die("cannot start " + words[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  Program(Program&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::exchange(other.output_, nullptr)) {}
  ~Program() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    Wait();
  }

  // The next line; empty at the end.
  std::string Line() {
    char line[1000] = "";
    if (std::fgets(line, sizeof line, output_) == nullptr) return "";
    return line;
  }
  int Wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    std::fclose(output_);
    return status;
  }

 private:
  pid_t pid_ = 0;
  FILE* output_ = nullptr;
};

double Direct(const std::string& store_name, int64_t first_seed) {
  const auto store = Open(store_name);
  if (!store->engine().WaitUntilRouted(*Get(store->engine().Table(kTable)), kPatience)) {
    Die("no filters came");
  }
  std::vector<std::vector<double>> seconds(kPrograms);
  std::vector<std::thread> threads;
  for (int i = 0; i < kPrograms; ++i) {
    threads.emplace_back(
        [&, i] { seconds[static_cast<size_t>(i)] = PutRows(store.get(), first_seed + i); });
  }
  for (std::thread& thread : threads) thread.join();
  Verify(store.get(), first_seed);
  std::vector<double> all;
  for (const auto& some : seconds) all.insert(all.end(), some.begin(), some.end());
  return Median(std::move(all));
}

struct Fleet {
  double median_seconds = 0;
  size_t coordinators = 0;
};

Fleet ThroughServers(const std::string& store_name, const std::string& directory,
                     int64_t first_seed) {
  std::vector<Program> servers;
  std::vector<std::string> addresses;
  for (int i = 0; i < kServers; ++i) {
    servers.emplace_back(std::vector<std::string>{directory + "/tamis", "--store", store_name,
                                                  "serve", "--write", "--listen", "127.0.0.1:0"});
    const std::string said = servers.back().Line();
    const size_t at = said.find("http://127.0.0.1:");
    if (at == std::string::npos) Die("the server did not say where it listens: " + said);
    addresses.push_back(said.substr(at, said.find_first_of(", \n", at) - at));
  }
  const auto store = Open(addresses[0]);
  for (const std::string& address : addresses) {
    const auto each = Open(address);
    if (!each->engine().WaitUntilRouted(*Get(each->engine().Table(kTable)), kPatience)) {
      Die("no filters came");
    }
  }
  // A coordinator of before that a region server did not hear leave is known until its lease ends.
  const auto give_up = Clock::now() + kPatience;
  while (Coordinators(store.get()) != kServers && Clock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  std::vector<Program> programs;
  for (int i = 0; i < kPrograms; ++i) {
    programs.emplace_back(std::vector<std::string>{
        directory + "/fleet_benchmark", "client",
        addresses[static_cast<size_t>(i) % addresses.size()], std::to_string(first_seed + i)});
  }
  std::vector<double> seconds;
  Fleet fleet;
  for (Program& program : programs) {
    for (std::string line = program.Line(); !line.empty(); line = program.Line()) {
      seconds.push_back(std::strtod(line.c_str(), nullptr));
    }
    fleet.coordinators = std::max(fleet.coordinators, Coordinators(store.get()));
  }
  for (Program& program : programs) {
    if (program.Wait() != 0) Die("a program failed");
  }
  if (seconds.size() != size_t{kPrograms} * kPuts) Die("a program put too few rows");
  Verify(store.get(), first_seed);
  fleet.median_seconds = Median(std::move(seconds));
  return fleet;
}

void Run(const std::string& store_name, const std::string& directory) {
  {
    const auto store = Open(store_name);
    Get(store->Define(
        kTable, {"id int64", "owner int64", "description", "key (id)", "index owner (owner)"}));
  }
  std::vector<double> direct, fleet, ratios;
  size_t coordinators = 0;
  for (int round = -1; round < kRounds; ++round) {
    const int64_t seed = (round + 1) * 2 * kPrograms;
    const double one = Direct(store_name, seed);
    const Fleet many = ThroughServers(store_name, directory, seed + kPrograms);
    coordinators = std::max(coordinators, many.coordinators);
    if (round < 0) continue;  // to warm up
    std::printf("round %d: %.2f ms by a direct coordinator, %.2f ms through servers\n", round,
                one * 1e3, many.median_seconds * 1e3);
    direct.push_back(one);
    fleet.push_back(many.median_seconds);
    ratios.push_back(many.median_seconds / one);
  }
  {
    const auto store = Open(store_name);
    Check(AwaitStatus(&store->engine().executor(), {},
                      [&](auto done) { store->admin().DropTable(kTable, {}, std::move(done)); }));
  }
  std::printf(
      "median of a put of a new value: %.2f ms by %d programs through %d servers, %.2f ms by a "
      "direct coordinator, %.2fx (goal <= 1.3x); region servers hear %zu coordinators\n",
      Median(fleet) * 1e3, kPrograms, kServers, Median(direct) * 1e3, Median(ratios), coordinators);
  Report({.work = Printed("median of a put of a new value, %d programs through %d servers",
                          kPrograms, kServers),
          .beside = "threads of one program with a coordinator, at the same rate",
          .now = Printed("%.2f ms; %.2f ms", Median(fleet) * 1e3, Median(direct) * 1e3),
          .ratio = Printed("%.2fx", Median(ratios)),
          .goal = "<= 1.3x"});
  Report({.work = Printed("coordinators that a region server hears from %d programs", kPrograms),
          .ratio = Printed("%zu", coordinators),
          .goal = "<= 2"});
}

int Main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (argc == 4 && std::string(argv[1]) == "client") {
    const auto store = Open(argv[2]);
    for (const double seconds : PutRows(store.get(), std::strtoll(argv[3], nullptr, 10))) {
      std::printf("%.6f\n", seconds);
    }
    return 0;
  }
  if (argc != 2) Die("give the name of a store in an HBase");
  Run(argv[1], std::filesystem::canonical("/proc/self/exe").parent_path());
  return 0;
}

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) { return tamis::Main(argc, argv); }
