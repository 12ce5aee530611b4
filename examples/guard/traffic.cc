// guard_traffic: an application that looks up rows of a PostgreSQL table, most of which are not
// there, through a Redis server, as `./run --redis` has it: the cache alone, a cache that notes
// what is not there, or a filter before both. It counts what that costs, and each row that stands
// in the table and was refused.
//
//   guard_traffic DATABASE REDIS_URL MODE ROWS SEED
//
// MODE is cache, null, bf (BF.EXISTS) or guard (TAMIS.CHECK); "+few" behind it: the rows that are
// not there are of 20,000 ids that come again, else each is a new one. Commands on the standard
// input:
//
//   phase NAME    what was counted so far is printed as a line of JSON, and NAME begins
//   redis URL     the server is another one now
//
// The end of the input ends it. A line {"tick": ...} every quarter of a second tells how it goes.
//
//   guard_traffic --plot FILE <JSON    draws lines over the time
#include <fmt/core.h>
#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "papers/plot/plot.h"
#include "tamis/base/random.h"
#include "tamis/guard/redis_connection.h"

namespace {

using Clock = std::chrono::steady_clock;
using tamis::AppendCommand;
using tamis::RedisConnection;
using tamis::RedisReply;

constexpr char kFilter[] = "items";
constexpr int kReaders = 2;
constexpr int kTimeoutMs = 100;                       // then the application asks the database
constexpr uint64_t kFirstNew = uint64_t{1} << 32;     // ids of rows that come and go
constexpr uint64_t kFirstAbsent = uint64_t{1} << 40;  // ids that no row has
constexpr uint64_t kMostNew = 1 << 20;
constexpr auto kRedisPause = std::chrono::milliseconds(20);  // before a server is tried again

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "guard_traffic: {}\n", why);
  std::exit(1);
}

// --- what was measured -------------------------------------------------------------------------

// Times in buckets whose borders are a sixteenth of a power of two apart.
class Times {
 public:
  void Add(Clock::duration time) {
    const double us = std::max(1.0, std::chrono::duration<double, std::micro>(time).count());
    const size_t bucket = static_cast<size_t>(std::log2(us) * 16);
    counts_[std::min(bucket, counts_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
  }
  // The time that this share of all do not exceed, in microseconds; and forgets them.
  std::pair<double, double> Take() {
    std::array<uint64_t, 400> counts;
    uint64_t all = 0;
    for (size_t i = 0; i < counts.size(); ++i) all += counts[i] = counts_[i].exchange(0);
    const auto quantile = [&](double share) {
      uint64_t seen = 0;
      for (size_t i = 0; i < counts.size(); ++i) {
        seen += counts[i];
        if (all > 0 && static_cast<double>(seen) >= share * static_cast<double>(all)) {
          return std::exp2(static_cast<double>(i + 1) / 16);
        }
      }
      return 0.0;
    };
    return {quantile(0.5), quantile(0.99)};
  }

 private:
  std::array<std::atomic<uint64_t>, 400> counts_ = {};
};

struct Counters {
  std::atomic<uint64_t> lookups = 0;
  std::atomic<uint64_t> existing = 0;  // lookups of rows that are there
  std::atomic<uint64_t> queries = 0;   // that reached the database
  std::atomic<uint64_t> refused = 0;   // rows that are there, and the answer was no
  std::atomic<uint64_t> unknown = 0;   // the filter did not know
  std::atomic<uint64_t> failures = 0;  // failures of Redis
  std::atomic<uint64_t> inserts = 0;
  std::atomic<uint64_t> deletes = 0;
  std::atomic<uint64_t> rolled_back = 0;  // since the filter could not be told
  Times times;                            // times of lookups of rows that are there
};

// --- the application ---------------------------------------------------------------------------

enum class Mode { kCache, kNull, kBloom, kGuard };

struct Shared {
  std::string database;
  Mode mode = Mode::kCache;
  bool few = false;
  uint64_t rows = 0;
  uint64_t seed = 0;

  std::mutex mutex;
  tamis::RedisAddress address;  // under the mutex
  std::atomic<uint64_t> address_version = 0;

  std::atomic<bool> stopped = false;
  Counters counters;

  // Rows that come and go: 1 = committed, 2 = about to go.
  std::vector<std::atomic<uint8_t>> states = std::vector<std::atomic<uint8_t>>(kMostNew);
  std::atomic<uint64_t> next_new = 0;
};

class Database {
 public:
  explicit Database(const std::string& name) : connection_(PQconnectdb(name.c_str())) {
    if (PQstatus(connection_) != CONNECTION_OK) Die(PQerrorMessage(connection_));
    Run("SET synchronous_commit = off");
    PQclear(PQprepare(connection_, "get", "SELECT note FROM items WHERE id = $1", 1, nullptr));
  }
  ~Database() { PQfinish(connection_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  std::optional<std::string> Get(uint64_t id) {
    const std::string text = std::to_string(id);
    const char* values[] = {text.c_str()};
    PGresult* result = PQexecPrepared(connection_, "get", 1, values, nullptr, nullptr, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) Die(PQerrorMessage(connection_));
    std::optional<std::string> note;
    if (PQntuples(result) > 0) note = PQgetvalue(result, 0, 0);
    PQclear(result);
    return note;
  }
  // How many rows it changed.
  uint64_t Run(const std::string& statement) {
    PGresult* result = PQexec(connection_, statement.c_str());
    if (PQresultStatus(result) != PGRES_COMMAND_OK) Die(PQerrorMessage(connection_));
    const uint64_t rows = std::strtoull(PQcmdTuples(result), nullptr, 10);
    PQclear(result);
    return rows;
  }

 private:
  PGconn* connection_;
};

// A connection that is opened again when it broke or when the server is another one. A failure of
// any kind is no answer, and the application goes on without.
class Redis {
 public:
  explicit Redis(Shared* shared) : shared_(shared) {}

  // The replies to all commands; none of them when anything failed.
  std::vector<RedisReply> Ask(const std::string& bytes, size_t commands) {
    std::vector<RedisReply> replies;
    if (!Ready()) return replies;
    bool well = connection_->Send(bytes).ok();
    while (well && replies.size() < commands) {
      auto reply = connection_->Receive();
      well = reply.ok();
      if (well) replies.push_back(std::move(*reply));
    }
    if (well) return replies;
    ++shared_->counters.failures;
    connection_.reset();
    replies.clear();
    return replies;
  }

 private:
  bool Ready() {
    if (shared_->address_version != version_) connection_.reset();
    if (connection_) return true;
    if (Clock::now() < again_ && shared_->address_version == version_) return false;
    again_ = Clock::now() + kRedisPause;
    version_ = shared_->address_version;
    tamis::RedisAddress address;
    {
      const std::scoped_lock lock(shared_->mutex);
      address = shared_->address;
    }
    auto opened = RedisConnection::Open(address, kTimeoutMs);
    if (opened.ok()) connection_.emplace(std::move(*opened));
    return opened.ok();
  }

  Shared* const shared_;
  std::optional<RedisConnection> connection_;
  uint64_t version_ = 0;
  Clock::time_point again_;
};

class Application {
 public:
  explicit Application(Shared* shared)
      : shared_(shared), database_(shared->database), redis_(shared) {}

  // Whether there is such a row, as the application believes.
  bool LookUp(uint64_t id) {
    const std::string key = std::to_string(id);
    const std::string cached = "row:" + key;
    const Mode mode = shared_->mode;
    const bool filtered = mode == Mode::kBloom || mode == Mode::kGuard;
    bytes_.clear();
    if (mode == Mode::kBloom) AppendCommand({"BF.EXISTS", kFilter, key}, &bytes_);
    if (mode == Mode::kGuard) AppendCommand({"TAMIS.CHECK", kFilter, key}, &bytes_);
    AppendCommand({"GET", cached}, &bytes_);
    const std::vector<RedisReply> replies = redis_.Ask(bytes_, filtered ? 2 : 1);
    if (filtered) {
      const int answer = replies.empty() ? -1 : FilterAnswer(replies[0]);
      if (answer == 0) return false;
      if (answer < 0) ++shared_->counters.unknown;
    }
    if (!replies.empty() && !replies.back().is_nothing() && !replies.back().is_error()) {
      return !replies.back().text().empty();  // an empty one: there is no such row
    }
    ++shared_->counters.queries;
    const std::optional<std::string> note = database_.Get(id);
    if (note || mode == Mode::kNull) {
      bytes_.clear();
      AppendCommand({"SET", cached, note ? *note : "", "EX", "60"}, &bytes_);
      redis_.Ask(bytes_, 1);
    }
    return note.has_value();
  }

  // False: the filter could not be told, so the row is not there.
  bool Insert(uint64_t id) {
    const std::string key = std::to_string(id);
    database_.Run("BEGIN");
    database_.Run("INSERT INTO items VALUES (" + key + ", repeat('x', 100))");
    const Mode mode = shared_->mode;
    if (mode == Mode::kBloom || mode == Mode::kGuard) {
      bytes_.clear();
      AppendCommand({mode == Mode::kBloom ? "BF.ADD" : "TAMIS.ADD", kFilter, key}, &bytes_);
      const auto replies = redis_.Ask(bytes_, 1);
      const bool added =
          !replies.empty() && !replies[0].is_error() && (mode == Mode::kBloom || Added(replies[0]));
      // Without a filter nothing is refused, and the next one is made of all rows.
      const bool no_filter =
          mode == Mode::kGuard && !replies.empty() && replies[0].text() == "ERR not found";
      if (!added && !no_filter) {
        database_.Run("ROLLBACK");
        return false;
      }
    }
    database_.Run("COMMIT");
    return true;
  }

  void Delete(uint64_t id) {
    const std::string key = std::to_string(id);
    std::string generation = "0";
    if (shared_->mode == Mode::kGuard) {
      bytes_.clear();
      AppendCommand({"TAMIS.GENERATION", kFilter}, &bytes_);
      const auto replies = redis_.Ask(bytes_, 1);
      if (!replies.empty()) generation = std::to_string(replies[0].integer());
    }
    const bool deleted = database_.Run("DELETE FROM items WHERE id = " + key) > 0;
    bytes_.clear();
    AppendCommand({"DEL", "row:" + key}, &bytes_);
    // Only a transaction that deleted the row may erase its key.
    const bool erase = shared_->mode == Mode::kGuard && deleted;
    if (erase) AppendCommand({"TAMIS.DELIF", kFilter, generation, key}, &bytes_);
    // Never sent twice, whatever the outcome is.
    redis_.Ask(bytes_, erase ? 2 : 1);
  }

 private:
  static bool Added(const RedisReply& reply) { return reply.size() == 1 && reply.integer(0) >= 0; }

  int FilterAnswer(const RedisReply& reply) const {
    if (shared_->mode == Mode::kBloom)
      return reply.is_integer() ? static_cast<int>(reply.integer()) : -1;
    return reply.size() == 1 && reply.is_integer(0) ? static_cast<int>(reply.integer(0)) : -1;
  }

  Shared* const shared_;
  Database database_;
  Redis redis_;
  std::string bytes_;
};

// --- the traffic -------------------------------------------------------------------------------

void Read(Shared* shared, uint64_t seed) {
  Application application(shared);
  tamis::Random random(seed);
  Counters& counters = shared->counters;
  while (!shared->stopped) {
    ++counters.lookups;
    if (!random.OneIn(20)) {
      const uint64_t id = shared->few ? random.Uniform(20'000) : random() >> 24;
      if (application.LookUp(kFirstAbsent + id)) Die("a row was found that nobody wrote");
      continue;
    }
    // Most lookups are for few rows, and some for those that came last.
    uint64_t id = static_cast<uint64_t>(static_cast<double>(shared->rows) *
                                        std::pow(random.UniformDouble(), 4));
    std::atomic<uint8_t>* state = nullptr;
    const uint64_t next = shared->next_new;
    if (next > 0 && random.OneIn(3)) {
      const uint64_t back = random.Uniform(std::min<uint64_t>(next, 400));
      state = &shared->states[next - 1 - back];
      if (*state != 1) continue;
      id = kFirstNew + next - 1 - back;
    }
    const auto begin = Clock::now();
    const bool found = application.LookUp(id);
    counters.times.Add(Clock::now() - begin);
    ++counters.existing;
    if (!found && (state == nullptr || *state == 1)) ++counters.refused;
  }
}

// 200 rows a second come, half of them go again.
void Write(Shared* shared) {
  Application application(shared);
  tamis::Random random(shared->seed + 99);
  auto due = Clock::now();
  while (!shared->stopped && shared->next_new < kMostNew) {
    std::this_thread::sleep_until(due += std::chrono::milliseconds(5));
    const uint64_t number = shared->next_new;
    if (application.Insert(kFirstNew + number)) {
      shared->states[number] = 1;
      ++shared->counters.inserts;
    } else {
      ++shared->counters.rolled_back;
    }
    ++shared->next_new;
    if (!random.OneIn(2)) continue;
    const uint64_t old = random.Uniform(number + 1);
    if (shared->states[old] != 1) continue;
    shared->states[old] = 2;
    application.Delete(kFirstNew + old);
    ++shared->counters.deletes;
  }
}

class Phases {
 public:
  explicit Phases(Shared* shared) : shared_(shared) {}

  void Begin(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    const auto now = Clock::now();
    Counters& c = shared_->counters;
    const nlohmann::json now_counted = {
        {"lookups", c.lookups.load()},        {"existing", c.existing.load()},
        {"queries", c.queries.load()},        {"refused", c.refused.load()},
        {"unknown", c.unknown.load()},        {"failures", c.failures.load()},
        {"inserts", c.inserts.load()},        {"deletes", c.deletes.load()},
        {"rolled_back", c.rolled_back.load()}};
    nlohmann::json line;
    for (const auto& [field, value] : now_counted.items()) {
      line[field] = value.get<uint64_t>() - before_.value(field, uint64_t{0});
    }
    const auto [median, p99] = c.times.Take();
    line["phase"] = name_;
    line["at"] = Seconds(begin_);
    line["seconds"] = std::chrono::duration<double>(now - begin_).count();
    line["p50_us"] = median;
    line["p99_us"] = p99;
    if (!name_.empty()) std::cout << line.dump() << std::endl;
    before_ = now_counted;
    begin_ = now;
    name_ = name;
  }

  void Tick() {
    const std::scoped_lock lock(mutex_);
    const Counters& c = shared_->counters;
    std::cout << nlohmann::json{{"tick", Seconds(Clock::now())},
                                {"lookups", c.lookups.load()},
                                {"queries", c.queries.load()},
                                {"refused", c.refused.load()}}
                     .dump()
              << std::endl;
  }

 private:
  double Seconds(Clock::time_point at) const {
    return std::chrono::duration<double>(at - start_).count();
  }

  Shared* const shared_;
  std::mutex mutex_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point begin_ = start_;
  std::string name_;
  nlohmann::json before_ = nlohmann::json::object();
};

void SetAddress(Shared* shared, const std::string& url) {
  auto address = tamis::RedisAddress::Parse(url);
  if (!address.ok()) Die(address.status().message());
  const std::scoped_lock lock(shared->mutex);
  shared->address = *address;
  ++shared->address_version;
}

int Run(int argc, char** argv) {
  if (argc != 6) Die("usage: guard_traffic DATABASE REDIS_URL MODE ROWS SEED, or --plot FILE");
  Shared shared;
  shared.database = argv[1];
  std::string mode = argv[3];
  if (mode.ends_with("+few")) {
    shared.few = true;
    mode.resize(mode.size() - 4);
  }
  const std::vector<std::string> modes = {"cache", "null", "bf", "guard"};
  const auto found = std::find(modes.begin(), modes.end(), mode);
  if (found == modes.end()) Die("there is no mode " + mode);
  shared.mode = static_cast<Mode>(found - modes.begin());
  shared.rows = std::stoull(argv[4]);
  shared.seed = std::stoull(argv[5]);
  SetAddress(&shared, argv[2]);
  Phases phases(&shared);
  std::vector<std::thread> threads;
  for (int i = 0; i < kReaders; ++i) {
    threads.emplace_back(Read, &shared, shared.seed + static_cast<uint64_t>(i));
  }
  threads.emplace_back(Write, &shared);
  threads.emplace_back([&] {
    while (!shared.stopped) {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      phases.Tick();
    }
  });
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.starts_with("phase ")) phases.Begin(line.substr(6));
    if (line.starts_with("redis ")) SetAddress(&shared, line.substr(6));
  }
  phases.Begin("");
  shared.stopped = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// --- plots -------------------------------------------------------------------------------------

// {"title", "subtitle", "x": {"title", "low", "high", "step"}, "y": {..., "logarithmic"},
//  "series": [{"name", "points": [[x, y], ...]}]}
int Draw(const char* file) {
  const nlohmann::json described = nlohmann::json::parse(std::cin);
  const auto axis = [](const nlohmann::json& json) {
    tamis::Axis axis;
    axis.title = json.at("title");
    axis.low = json.at("low");
    axis.high = json.at("high");
    axis.logarithmic = json.value("logarithmic", false);
    for (const auto& [at, label] :
         json.at("ticks").get<std::vector<std::pair<double, std::string>>>()) {
      axis.ticks.push_back({at, label});
    }
    return axis;
  };
  tamis::Plot plot;
  plot.title = described.at("title");
  plot.subtitle = described.at("subtitle");
  plot.x = axis(described.at("x"));
  plot.y = axis(described.at("y"));
  for (const nlohmann::json& json : described.at("series")) {
    tamis::Series series;
    series.name = json.at("name");
    series.color = series.mark = plot.series.size();
    if (json.value("marks", false)) series.style = tamis::Series::Style::kMarks;
    for (const auto& [x, y] : json.at("points").get<std::vector<std::pair<double, double>>>()) {
      series.points.push_back({x, y});
    }
    plot.series.push_back(std::move(series));
  }
  std::ofstream out(file);
  out << tamis::ToSvg(plot);
  return out.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  if (argc == 3 && std::string(argv[1]) == "--plot") return Draw(argv[2]);
  return Run(argc, argv);
}
