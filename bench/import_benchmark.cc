// The import of a table whose keys come in random order, with three indexes, while it splits to 64
// regions: beside RocksDB to which one thread writes the same rows and entries.
//
//   import_benchmark [ROWS]      default 500,000
//
// The two are two processes that take turns, a tenth of the rows each, so that both meet the same
// machine and each one's memory and processor time are its own. A tenth ends when what splits have
// left to do is done.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <istream>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/cli/importer.h"
#include "tamis/query/engine.h"
#include "tamis/rocks/index_entry.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tamis/sql/session.h"
#include "tamis/table/codec.h"

namespace tamis {
namespace {

constexpr int kParts = 10;
constexpr int kRegions = 64;
constexpr int64_t kBatch = 1000;
constexpr uint64_t kRowBytes = 115;  // about, as regions count them

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// Resources that this process has used so far.
struct Usage {
  double wall = 0;
  double cpu = 0;
  double memory_mib = 0;  // most that was resident

  static Usage Now() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {.wall = std::chrono::duration<double>(wall).count(),
            .cpu = Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
            .memory_mib = static_cast<double>(usage.ru_maxrss) / 1024};
  }
  Usage Since(const Usage& before) const {
    return {wall - before.wall, cpu - before.cpu, memory_mib};
  }
};

// The rows, each number below `rows` once, in random order.
class Rows {
 public:
  explicit Rows(int64_t rows) : rows_(rows) {
    while ((int64_t{1} << (2 * half_bits_)) < rows) ++half_bits_;
  }
  int64_t size() const { return rows_; }
  int64_t Begin(int part) const { return rows_ * part / kParts; }

  int64_t Id(int64_t place) const {
    auto id = static_cast<uint64_t>(place);
    do {
      id = Permute(id);
    } while (id >= static_cast<uint64_t>(rows_));
    return static_cast<int64_t>(id);
  }
  // Every owner has four rows, anywhere.
  static std::string Owner(int64_t id, int64_t rows) {
    return "owner " + std::to_string(id % ((rows + 3) / 4));
  }
  static int64_t SizeOf(int64_t id) {
    return static_cast<int64_t>(Mix(static_cast<uint64_t>(id)) % 1'000'000);
  }
  static std::string Section(int64_t id) { return "section " + std::to_string(id % 40); }
  static std::string Description(int64_t id) {
    return std::string(60, static_cast<char>('a' + id % 26));
  }

 private:
  // Four rounds of a Feistel network: one to one over 2 * half_bits_ bits.
  uint64_t Permute(uint64_t value) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = value >> half_bits_, right = value & mask;
    for (uint64_t round = 1; round <= 4; ++round) {
      left ^= Mix(right * 4 + round) & mask;
      std::swap(left, right);
    }
    return left << half_bits_ | right;
  }

  const int64_t rows_;
  int half_bits_ = 1;
};

// ---- RocksDB from one thread

class Straight {
 public:
  Straight(const Rows& rows, const std::filesystem::path& directory) : rows_(rows) {
    Store::Options options;
    options.directory = directory;
    auto store = Store::Open(options);
    if (!store.ok()) Die(store.status().ToString());
    store_ = std::move(*store);
    schema_.id = 1;
    schema_.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                       {.name = "owner", .type = Type::kText},
                       {.name = "size", .type = Type::kInt64},
                       {.name = "section", .type = Type::kText},
                       {.name = "description", .type = Type::kText}};
    schema_.key = {0};
    for (uint32_t i = 0; i < 5; ++i) schema_.columns[i].id = i + 1;
    for (uint32_t i = 1; i <= 3; ++i) schema_.indexes.push_back({.id = i, .columns = {i}});
  }

  Usage Write(int part) {
    const Usage before = Usage::Now();
    for (int64_t i = rows_.Begin(part); i < rows_.Begin(part + 1); i += kBatch) {
      rocksdb::WriteBatch batch;
      for (int64_t j = i; j < std::min(rows_.Begin(part + 1), i + kBatch); ++j) Put(j, &batch);
      if (!store_->db()->Write(rocksdb::WriteOptions(), &batch).ok()) Die("cannot write");
    }
    return Usage::Now().Since(before);
  }

 private:
  void Put(int64_t place, rocksdb::WriteBatch* batch) {
    const int64_t id = rows_.Id(place);
    const Row row = {Value::Int64(id), Value::Text(Rows::Owner(id, rows_.size())),
                     Value::Int64(Rows::SizeOf(id)), Value::Text(Rows::Section(id)),
                     Value::Text(Rows::Description(id))};
    const std::string key = EncodeKey(schema_, row);
    batch->Put(store_->rows(), RowStoreKey(1, key), EncodeRow(schema_, row));
    for (const IndexSpec& index : schema_.indexes) {
      batch->Put(store_->index(), IndexEntry::Of(schema_, index, row)->StoreKey(1, index.id, key),
                 "");
    }
  }

  const Rows& rows_;
  TableSchema schema_;
  std::unique_ptr<Store> store_;
};

// The process that writes straight to RocksDB, a part at each word of the other one.
class StraightProcess {
 public:
  StraightProcess(const Rows& rows, const std::filesystem::path& directory) {
    int orders[2], answers[2];
    if (pipe(orders) != 0 || pipe(answers) != 0) Die("cannot make a pipe");
    child_ = fork();
    if (child_ < 0) Die("cannot make a process");
    if (child_ == 0) {
      close(orders[1]);
      Straight straight(rows, directory);
      for (int part; read(orders[0], &part, sizeof(part)) == sizeof(part);) {
        const Usage usage = straight.Write(part);
        if (write(answers[1], &usage, sizeof(usage)) != sizeof(usage)) break;
      }
      std::_Exit(0);
    }
    close(orders[0]);
    close(answers[1]);
    orders_ = orders[1];
    answers_ = answers[0];
  }
  ~StraightProcess() {
    close(orders_);
    waitpid(child_, nullptr, 0);
  }
  StraightProcess(const StraightProcess&) = delete;
  StraightProcess& operator=(const StraightProcess&) = delete;

  Usage Write(int part) {
    Usage usage;
    if (write(orders_, &part, sizeof(part)) != sizeof(part) ||
        read(answers_, &usage, sizeof(usage)) != sizeof(usage)) {
      Die("the process that writes to RocksDB has ended");
    }
    return usage;
  }

 private:
  pid_t child_;
  int orders_;
  int answers_;
};

// ---- Tamis

// A file that says when it has been read as far as given places.
class WatchedFile : public std::filebuf {
 public:
  WatchedFile(const std::filesystem::path& path, std::vector<int64_t> places,
              std::function<void(int)> reached)
      : places_(std::move(places)), reached_(std::move(reached)) {
    if (open(path, std::ios::in | std::ios::binary) == nullptr) Die("cannot read " + path.string());
  }

 protected:
  int_type underflow() override {
    const int_type next = std::filebuf::underflow();
    read_ += egptr() - gptr();
    while (next_ < places_.size() && (read_ > places_[next_] || next == traits_type::eof())) {
      reached_(static_cast<int>(next_++));
    }
    return next;
  }

 private:
  const std::vector<int64_t> places_;
  const std::function<void(int)> reached_;
  int64_t read_ = 0;
  size_t next_ = 0;
};

class Bench {
 public:
  explicit Bench(int64_t rows)
      : rows_(rows),
        directory_(std::filesystem::temp_directory_path() /
                   ("tamis_import_benchmark." + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~Bench() { std::filesystem::remove_all(directory_); }

  void Run() {
    WriteCsv();
    // Before there are threads.
    straight_ = std::make_unique<StraightProcess>(rows_, directory_ / "straight");
    ThreadExecutor executor(4);
    RocksCluster::Options options;
    options.store.directory = directory_ / "store";
    options.server.split_bytes =
        static_cast<uint64_t>(rows_.size()) * kRowBytes * 14 / (kRegions * 10);
    auto cluster = RocksCluster::Open(options, &executor);
    if (!cluster.ok()) Die(cluster.status().ToString());
    {
      Engine engine(cluster->get(), &executor, Engine::Options{});
      Import(&engine, cluster->get(), &executor);
      Verify(&engine, cluster->get(), &executor);
    }
    executor.Stop();
  }

 private:
  void WriteCsv() {
    std::ofstream out(directory_ / "rows.csv", std::ios::binary);
    out << "id,owner,size,section,description\n";
    for (int part = 0; part < kParts; ++part) {
      for (int64_t i = rows_.Begin(part); i < rows_.Begin(part + 1); ++i) {
        const int64_t id = rows_.Id(i);
        out << id << ',' << Rows::Owner(id, rows_.size()) << ',' << Rows::SizeOf(id) << ','
            << Rows::Section(id) << ',' << Rows::Description(id) << '\n';
      }
      part_ends_.push_back(out.tellp());
    }
    if (!out.flush()) Die("cannot write the CSV file");
  }

  void Import(Engine* engine, RocksCluster* cluster, ThreadExecutor* executor) {
    std::printf("%lld rows in random order, 3 indexes; rows/s of each tenth, wall and processor\n",
                static_cast<long long>(rows_.size()));
    ImportOptions options;
    options.table = "rows";
    options.definition.key = {"id"};
    options.definition.columns = {"id:int64", "size:int64"};
    options.definition.indexes = {"owner", "size", "section"};
    Session session;  // which owns neither
    session.engine = std::shared_ptr<Engine>(std::shared_ptr<Engine>(), engine);
    session.admin = std::shared_ptr<ClusterAdmin>(std::shared_ptr<ClusterAdmin>(), cluster);
    Importer importer(&session, options);
    Usage begin = Usage::Now();
    const double part_rows = static_cast<double>(rows_.size()) / kParts;
    const auto take_turns = [&](int part) {
      // Work under way belongs to the part.
      while (cluster->pending_work() > 0) Sleep(executor, std::chrono::milliseconds(2));
      const Usage ours = Usage::Now().Since(begin);
      const Usage straight = straight_->Write(part);
      for (const auto& [sum, more] :
           {std::pair(&ours_, &ours), std::pair(&straight_sum_, &straight)}) {
        sum->wall += more->wall;
        sum->cpu += more->cpu;
        sum->memory_mib = more->memory_mib;
      }
      std::printf("%3d  %8.0f %8.0f   RocksDB alone %8.0f %8.0f   %5.2fx %5.2fx  %5.0f MiB\n",
                  part + 1, part_rows / ours.wall, part_rows / ours.cpu, part_rows / straight.wall,
                  part_rows / straight.cpu, ours.wall / straight.wall, ours.cpu / straight.cpu,
                  ours.memory_mib);
      std::fflush(stdout);
      slowest_tenth_ = std::max(slowest_tenth_, ours.wall / straight.wall);
      begin = Usage::Now();
    };
    // The last part ends when the last batch is written, not when the file has been read.
    WatchedFile file(directory_ / "rows.csv", {part_ends_.begin(), part_ends_.end() - 1},
                     take_turns);
    TextInput in(&file);
    const Status status = importer.Run(&in);
    if (!status.ok()) Die(status.ToString());
    take_turns(kParts - 1);
    std::printf(
        "time %.2fx, processor time %.2fx (goal <= 2x); resident memory %.0f MiB (goal <= 1024), "
        "RocksDB alone %.0f MiB\n",
        ours_.wall / straight_sum_.wall, ours_.cpu / straight_sum_.cpu, ours_.memory_mib,
        straight_sum_.memory_mib);
    Report({.work = Printed("import of %lld rows in random order, 3 indexes",
                            static_cast<long long>(rows_.size())),
            .beside = "the same written straight to RocksDB",
            .now = Printed("processor time %.2fx", ours_.cpu / straight_sum_.cpu),
            .ratio = Printed("%.2fx", ours_.wall / straight_sum_.wall),
            .goal = "<= 1.6x"});
    Report({.work = "the same, the slowest tenth",
            .beside = "the same written straight to RocksDB",
            .ratio = Printed("%.2fx", slowest_tenth_),
            .goal = "<= 2x"});
    Report({.work = "the same, resident memory",
            .beside = "RocksDB alone",
            .now = Printed("%.0f MiB alone", straight_sum_.memory_mib),
            .ratio = Printed("%.0f MiB", ours_.memory_mib),
            .goal = "<= 1024 MiB"});
  }

  void Verify(Engine* engine, RocksCluster* cluster, ThreadExecutor* executor) {
    const auto report =
        Await<Result<CheckReport>>(executor, [&](auto done) { cluster->Check("rows", done); });
    if (!report.ok()) Die(report.status().ToString());
    if (!report->problems.empty()) Die(report->problems.front());
    if (report->rows != static_cast<uint64_t>(rows_.size())) Die("rows are missing");
    const SchemaPtr table = *engine->Table("rows");
    Random random(1);
    for (int i = 0; i < 200; ++i) {
      const auto id = static_cast<int64_t>(random.Uniform(static_cast<uint64_t>(rows_.size() / 4)));
      SearchOptions options;
      options.predicate =
          Predicate::Compare(1, Predicate::Op::kEq, Value::Text(Rows::Owner(id, rows_.size())));
      RowStream rows = engine->Search(table, std::move(options));
      int found = 0;
      for (auto row = rows.Next();; row = rows.Next(), ++found) {
        if (!row.ok()) Die(row.status().ToString());
        if (!row->has_value()) break;
      }
      if (found < 3 || found > 4) Die("an owner has " + std::to_string(found) + " rows, not 4");
    }
    std::printf("%llu regions; rows, entries and filters agree\n",
                static_cast<unsigned long long>(report->regions));
  }

  const Rows rows_;
  const std::filesystem::path directory_;
  std::vector<int64_t> part_ends_;  // where in the file
  double slowest_tenth_ = 0;
  std::unique_ptr<StraightProcess> straight_;
  Usage ours_, straight_sum_;
};

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  tamis::Bench(argc > 1 ? std::stoll(argv[1]) : 500'000).Run();
  return 0;
}
