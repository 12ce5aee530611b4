// Queries that need few rows or none, beside the same queries as the servers answer them without
// the feature, in one run; answers are verified, ratios are what counts.
//
//   query_power_benchmark [ROWS]      default 1,000,000
//
// Aggregates: the servers send groups of equal rows with counts, or the totals of groups, against
// each row. Orders: how many regions of 1,000, entries and rows the first rows in an order take.
// Included columns: rows made of index entries against rows that are read. Ranges: what cells cost
// the writes of an index that has them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <map>
#include <ranges>
#include <set>

#include "bench/benched_store.h"
#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/random.h"

namespace tamis {
namespace {

constexpr int64_t kRegions = 8;
constexpr int64_t kBatch = 1000;
constexpr int64_t kSections = 20;
constexpr int64_t kSizes = 997;
constexpr int kRounds = 5;

using Clock = std::chrono::steady_clock;

// ---- Aggregates

std::string SectionOf(int64_t i) { return "section " + std::to_string(i * 7 % kSections); }
int64_t SizeOf(int64_t i) { return i * 31 % kSizes; }

class AggregateQueries {
 public:
  explicit AggregateQueries(int64_t rows) : rows_(rows) { Fill(); }

  void Run() {
    std::printf("%lld rows in %lld regions; time and bytes of answers, groups over rows\n",
                static_cast<long long>(rows_), static_cast<long long>(kRegions));
    std::string sections;
    std::vector<std::string> in_order;
    for (int64_t i = 0; i < kSections; ++i) in_order.push_back(SectionOf(i));
    std::ranges::sort(in_order);
    for (const std::string& section : in_order) {
      sections += section + "|" + std::to_string(rows_ / kSections) + "\n";
    }
    int64_t sum = 0;
    for (int64_t i = 0; i < rows_; ++i) sum += SizeOf(i);
    Compare("SELECT count(*) FROM t", std::to_string(rows_) + "\n");
    Compare("SELECT count(*) FROM t WHERE size >= 0", std::to_string(rows_) + "\n");
    Compare("SELECT section, count(*) FROM t GROUP BY section ORDER BY section", sections);
    Compare("SELECT count(*) FROM t WHERE section = 'section 3'",
            std::to_string(rows_ / kSections) + "\n");
    Compare("SELECT sum(size) FROM t", std::to_string(sum) + "\n");
    CompareRewritten("SELECT count(*) FROM t WHERE section = 'section 3'",
                     std::to_string(rows_ / kSections) + "\n");
    CompareRewritten("SELECT sum(size) FROM t", std::to_string(sum) + "\n");
    CompareRewritten("SELECT section, count(*) FROM t GROUP BY section ORDER BY section", sections);
    CompareRewritten(
        "SELECT section, count(*), sum(size), max(size) FROM t WHERE size >= 100 "
        "GROUP BY section ORDER BY section",
        SumsOfSections(100));
    Compare("SELECT g1, count FROM tamis_aggregate('t', 'section')", sections,
            "SELECT section, count(*) FROM t GROUP BY section ORDER BY section");
    Compare("SELECT sum FROM tamis_aggregate('t', '', 'size')", std::to_string(sum) + "\n",
            "SELECT sum(size) FROM t");
  }

  void CompareRewritten(const std::string& sql, const std::string& answer) {
    Compare(sql, answer, sql, /*rewritten=*/true);
  }

 private:
  // Each section with the count, the sum and the greatest of its sizes that are not below `least`.
  std::string SumsOfSections(int64_t least) const {
    struct Totals {
      int64_t count = 0, sum = 0, greatest = 0;
    };
    std::map<std::string, Totals> sections;
    for (int64_t i = 0; i < rows_; ++i) {
      if (SizeOf(i) < least) continue;
      Totals& totals = sections[SectionOf(i)];
      ++totals.count;
      totals.sum += SizeOf(i);
      totals.greatest = std::max(totals.greatest, SizeOf(i));
    }
    std::string out;
    for (const auto& [section, totals] : sections) {
      out += section + "|" + std::to_string(totals.count) + "|" + std::to_string(totals.sum) + "|" +
             std::to_string(totals.greatest) + "\n";
    }
    return out;
  }

  void Fill() {
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "section", .type = Type::kText},
                      {.name = "size", .type = Type::kInt64},
                      {.name = "description", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.name = "section", .columns = {1}, .expected_values = 2000},
                      {.name = "size", .columns = {2}, .expected_values = 2000}};
    const SchemaPtr table = store_.MakeTable(schema, rows_, kRegions);
    for (int64_t i = 0; i < rows_; i += kBatch) {
      std::vector<Write> batch;
      for (int64_t j = i; j < std::min(rows_, i + kBatch); ++j) {
        batch.push_back({.row = {Value::Int64(j), Value::Text(SectionOf(j)),
                                 Value::Int64(SizeOf(j)), Value::Text(std::string(100, 'd'))}});
      }
      store_.Put(table, std::move(batch));
    }
    store_.AwaitFilters(table);
  }

  struct Cost {
    double seconds = 0;
    double cpu = 0;  // processor time of the whole process
    uint64_t bytes = 0;
  };
  Cost Measure(const std::string& sql, const std::string& answer, bool groups, bool rewritten) {
    store_.session().groups = groups;
    store_.answer_bytes() = 0;
    const std::clock_t cpu = std::clock();
    const auto start = Clock::now();
    const std::string got = rewritten ? store_.RunRewritten(sql) : store_.Run(sql);
    if (got != answer) Die(sql + ": not " + answer + "but " + got);
    return {SecondsSince(start), static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC,
            store_.answer_bytes()};
  }

  // A statement with groups, rewritten as `tamis sql` does if that is wanted, beside the same one,
  // or `by_rows`, without. In turns, so that both meet the same machine.
  void Compare(const std::string& sql, const std::string& answer, const std::string& by_rows = "",
               bool rewritten = false) {
    std::vector<double> groups, rows, ratios, cpu_ratios;
    uint64_t group_bytes = 0, row_bytes = 0;
    for (int round = 0; round < kRounds; ++round) {
      const Cost of_groups = Measure(sql, answer, true, rewritten);
      const Cost of_rows = Measure(by_rows.empty() ? sql : by_rows, answer, false, false);
      groups.push_back(of_groups.seconds);
      rows.push_back(of_rows.seconds);
      ratios.push_back(of_rows.seconds / of_groups.seconds);
      cpu_ratios.push_back(of_rows.cpu / of_groups.cpu);
      group_bytes = of_groups.bytes;
      row_bytes = of_rows.bytes;
    }
    for (auto* figures : {&groups, &rows, &ratios, &cpu_ratios}) std::ranges::sort(*figures);
    constexpr int kMiddle = kRounds / 2;
    std::printf(
        "  %s%s\n    %.1f ms against %.1f: 1/%.1f, 1/%.1f to 1/%.1f (goal 1/5), processor time "
        "1/%.1f; %llu bytes against %llu: 1/%.0f (goal 1/50)\n",
        sql.c_str(), rewritten ? ", rewritten" : "", groups[kMiddle] * 1e3, rows[kMiddle] * 1e3,
        ratios[kMiddle], ratios.front(), ratios.back(), cpu_ratios[kMiddle],
        static_cast<unsigned long long>(group_bytes), static_cast<unsigned long long>(row_bytes),
        static_cast<double>(row_bytes) / static_cast<double>(std::max<uint64_t>(group_bytes, 1)));
    const std::string work = "`" + sql + "`" + (rewritten ? " in `tamis sql`" : "");
    Report({.work = work,
            .beside = "the same by rows",
            .now = Printed("%.1f ms; %.1f ms; processor time 1/%.1f", groups[kMiddle] * 1e3,
                           rows[kMiddle] * 1e3, cpu_ratios[kMiddle]),
            .ratio = Printed("1/%.1f", ratios[kMiddle]),
            .goal = "<= 1/5"});
    Report({.work = work + ", bytes of answers",
            .beside = "the same by rows",
            .now = Printed("%llu; %llu", static_cast<unsigned long long>(group_bytes),
                           static_cast<unsigned long long>(row_bytes)),
            .ratio = Printed("1/%.0f", static_cast<double>(row_bytes) /
                                           static_cast<double>(std::max<uint64_t>(group_bytes, 1))),
            .goal = "<= 1/50"});
  }

  const int64_t rows_;
  BenchedStore store_{"aggregates"};
};

// ---- Orders

// Values that have nothing to do with the key, so that each region holds some of the smallest.
class Orders {
 public:
  Orders() {
    TableSchema schema;
    schema.name = "o";
    schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                      {.name = "a", .type = Type::kInt64},
                      {.name = "b", .type = Type::kText}};
    schema.key = {0};
    schema.indexes = {{.name = "a", .columns = {1}, .expected_values = 200}};
    table_ = store_.MakeTable(schema, kRows, kManyRegions);
    Random random(20);
    for (int64_t id = 0; id < kRows; ++id) {
      values_.push_back(static_cast<int64_t>(random.Uniform(uint64_t{1} << 40)));
    }
    std::vector<Write> batch;
    for (int64_t id = 0; id < kRows; ++id) {
      batch.push_back({.row = {Value::Int64(id), Value::Int64(values_[id]), Value::Text("b")}});
      if (batch.size() == kBatch) store_.Put(table_, std::exchange(batch, {}));
    }
    store_.AwaitFilters(table_);
  }

  void Run() {
    std::printf(
        "\n%lld regions of %lld rows; the first 10 rows by a value that is independent of the key\n"
        "  goal: regions asked <= those that hold one of the ten + 2; entries <= 20 a region; no "
        "row read that is not returned\n",
        static_cast<long long>(kManyRegions), static_cast<long long>(kRows / kManyRegions));
    Ask("the table as it was filled", Bounds::kExact);
    DeleteMinima();
    Ask("just after the smallest of each region was deleted", Bounds::kStale);
    // The servers narrow their bounds in the background, about a second after the deletes.
    Sleep(&store_.executor(), std::chrono::seconds(2));
    Ask("two seconds later", Bounds::kExact);
  }

 private:
  static constexpr int64_t kManyRegions = 1000;
  static constexpr int64_t kRows = 100'000;

  static int64_t RegionOf(int64_t id) { return id * kManyRegions / kRows; }

  void DeleteMinima() {
    std::vector<int64_t> least(kManyRegions, -1);
    for (int64_t id = 0; id < kRows; ++id) {
      int64_t& one = least[RegionOf(id)];
      if (one < 0 || values_[id] < values_[one]) one = id;
    }
    std::vector<Write> batch;
    for (const int64_t id : least) {
      Row key(table_->columns.size());
      key[0] = Value::Int64(id);
      batch.push_back({.kind = Write::Kind::kDelete, .row = std::move(key)});
      values_[id] = -1;
    }
    store_.Put(table_, std::move(batch));
  }

  // Stale ones say less, and no goal is set.
  enum class Bounds { kExact, kStale };

  void Ask(const char* when, Bounds bounds) {
    std::vector<std::pair<int64_t, int64_t>> in_order;
    for (int64_t id = 0; id < kRows; ++id) {
      if (values_[id] >= 0) in_order.emplace_back(values_[id], id);
    }
    std::ranges::sort(in_order);
    std::string expected;
    std::set<int64_t> holding;
    for (int i = 0; i < 10; ++i) {
      expected += std::to_string(in_order[i].first) + "|b\n";
      holding.insert(RegionOf(in_order[i].second));
    }
    const auto start = Clock::now();
    const auto asked = store_.RunExplained("SELECT a, b FROM o ORDER BY a LIMIT 10");
    const double seconds = SecondsSince(start);
    if (asked.rows != expected) Die("wrong rows in order:\n" + asked.rows);
    Explain sum;
    for (const Explain& search : asked.searches) sum.Add(search);
    std::printf(
        "  %s: %llu regions asked, %zu hold one of the ten; %llu entries, %llu rows read, %.2f "
        "ms\n",
        when, static_cast<unsigned long long>(sum.regions_asked), holding.size(),
        static_cast<unsigned long long>(sum.entries_read),
        static_cast<unsigned long long>(sum.rows_read), seconds * 1e3);
    const std::string work = "`ORDER BY a LIMIT 10` over 1,000 regions, " + std::string(when);
    Report({.work = work + ": regions asked",
            .beside = "those that hold one of the ten",
            .now = Printed("%zu hold one; %.2f ms", holding.size(), seconds * 1e3),
            .ratio = Printed("%llu", static_cast<unsigned long long>(sum.regions_asked)),
            .goal = bounds == Bounds::kExact ? Printed("<= %zu", holding.size() + 2) : ""});
    Report({.work = work + ": rows read",
            .beside = "rows returned",
            .now = Printed("%llu index entries", static_cast<unsigned long long>(sum.entries_read)),
            .ratio = Printed("%llu", static_cast<unsigned long long>(sum.rows_read)),
            .goal = "<= 10"});
  }

  BenchedStore store_{"orders"};
  SchemaPtr table_;
  std::vector<int64_t> values_;  // by id; -1: deleted
};

// ---- Included columns

class Included {
 public:
  Included() {
    for (const bool with : {false, true}) {
      TableSchema schema;
      schema.name = with ? "included" : "plain";
      schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                        {.name = "owner", .type = Type::kInt64},
                        {.name = "size", .type = Type::kInt64},
                        {.name = "description", .type = Type::kText}};
      schema.key = {0};
      schema.indexes = {{.name = "owner", .columns = {1}, .expected_values = 2000}};
      if (with) schema.indexes[0].include = {2};
      const SchemaPtr table = store_.MakeTable(schema, kRows, kRegions);
      std::vector<Write> batch;
      for (int64_t id = 0; id < kRows; ++id) {
        batch.push_back({.row = {Value::Int64(id), Value::Int64(id * 7919 % kOwners),
                                 Value::Int64(SizeOf(id)), Value::Text(std::string(200, 'd'))}});
        if (batch.size() == kBatch) store_.Put(table, std::exchange(batch, {}));
      }
      store_.AwaitFilters(table);
    }
    (void)Get(Await<Result<uint64_t>>(&store_.executor(), [&](auto done) {
      store_.cluster().StartJob({.kind = JobSpec::Kind::kCompact}, done);
    }));
  }

  void Run() {
    std::printf(
        "\n%lld rows of an owner in %lld regions, of %lld; with the column included, against "
        "rows that are read (goal: processor time <= .4x)\n",
        static_cast<long long>(kRows / kOwners), static_cast<long long>(kRegions),
        static_cast<long long>(kRows));
    std::vector<double> times, cpus;
    for (int64_t round = 0; round < 60; ++round) {
      const std::string owner = std::to_string(round * 3 % kOwners);
      const auto [with_time, with_cpu, with_rows] = Ask("included", owner);
      const auto [time, cpu, rows] = Ask("plain", owner);
      if (with_rows != rows || rows.size() != kRows / kOwners) {
        Die("wrong rows of owner " + owner);
      }
      if (round < 10) continue;  // to warm up
      times.push_back(with_time / time);
      cpus.push_back(with_cpu / cpu);
    }
    std::printf("  time %.2fx, processor time %.2fx (medians of %zu owners)\n", Median(times),
                Median(cpus), times.size());
    Report({.work = Printed("%lld rows of one value, the column included in the index",
                            static_cast<long long>(kRows / kOwners)),
            .beside = "rows that are read",
            .now = Printed("time %.2fx", Median(times)),
            .ratio = Printed("%.2fx the processor time", Median(cpus)),
            .goal = "<= 0.4x"});
  }

 private:
  static constexpr int64_t kRows = 200'000;
  static constexpr int64_t kOwners = 200;

  struct Answer {
    double seconds = 0;
    double cpu = 0;  // processor time of the whole process
    std::set<std::string> rows;
  };
  Answer Ask(const std::string& table, const std::string& owner) {
    const std::clock_t cpu = std::clock();
    const auto start = Clock::now();
    Answer answer;
    const std::string rows =
        store_.Run("SELECT id, size FROM " + table + " WHERE owner = " + owner);
    answer.seconds = SecondsSince(start);
    answer.cpu = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    // Regions answer in any order.
    for (const auto line : std::views::split(rows, '\n')) {
      if (!line.empty()) answer.rows.insert(std::string(line.begin(), line.end()));
    }
    return answer;
  }

  BenchedStore store_{"included"};
};

// ---- Ranges

class RangedPuts {
 public:
  RangedPuts() {
    for (const bool with : {false, true}) {
      TableSchema schema;
      schema.name = with ? "ranged" : "plain";
      schema.columns = {{.name = "id", .type = Type::kInt64, .nullable = false},
                        {.name = "at", .type = Type::kInt64}};
      schema.key = {0};
      schema.indexes = {{.name = "at", .columns = {1}, .expected_values = 20'000}};
      tables_[with] = store_.MakeTable(schema, kIds, kRegions);
      for (int64_t i = 0; i < kFirst / kBatch; ++i) PutSome(with, kBatch);
      if (with) FitCells();
      store_.AwaitFilters(tables_[with]);
    }
  }

  void Run() {
    std::printf(
        "\nputs of new values into an index with 16 cells a value, against the same without "
        "(goal: <= 1.1x)\n");
    for (const auto& [size, count] : {std::pair<int64_t, int>(1, 2000), {100, 100}, {1000, 20}}) {
      std::vector<double> ratios;
      std::vector<double> cpu_ratios;
      for (int round = 0; round < 15; ++round) {
        double seconds[2];
        double cpu[2];
        for (const bool with : {round % 2 == 0, round % 2 != 0}) {
          const auto start = Clock::now();
          const std::clock_t cpu_start = std::clock();
          for (int i = 0; i < count; ++i) PutSome(with, size);
          seconds[with] = SecondsSince(start);
          cpu[with] = static_cast<double>(std::clock() - cpu_start);
        }
        ratios.push_back(seconds[1] / seconds[0]);
        cpu_ratios.push_back(cpu[1] / cpu[0]);
      }
      std::printf(
          "  batches of %lld: %.2fx of the time, processor time %.2fx (medians of %zu rounds)\n",
          static_cast<long long>(size), Median(ratios), Median(cpu_ratios), ratios.size());
      Report({.work = Printed("puts of new values in batches of %lld, 16 cells a value",
                              static_cast<long long>(size)),
              .beside = "the same without cells",
              .now = Printed("processor time %.2fx", Median(cpu_ratios)),
              .ratio = Printed("%.2fx", Median(ratios)),
              .goal = "<= 1.1x"});
    }
    for (const char* table : {"plain", "ranged"}) {
      if (store_.Run(std::string("SELECT count(*) FROM ") + table) !=
          std::to_string(put_[table == std::string("ranged")]) + "\n") {
        Die(std::string("rows are missing in ") + table);
      }
    }
  }

 private:
  static constexpr int64_t kIds = 1'000'000;
  static constexpr int64_t kFirst = 100'000;

  // The ids go over all regions; each value is a new one.
  void PutSome(bool with, int64_t count) {
    std::vector<Write> batch;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t number = put_[with]++;
      batch.push_back({.row = {Value::Int64(number * 617'647 % kIds),
                               Value::Int64(number * 7'368'787 % 1'000'000'007)}});
    }
    store_.Put(tables_[with], std::move(batch));
  }

  void FitCells() {
    const uint64_t job = Get(Await<Result<uint64_t>>(&store_.executor(), [&](auto done) {
      store_.cluster().StartJob(
          {.kind = JobSpec::Kind::kFitCells, .table = "ranged", .index = "at"}, done);
    }));
    while (true) {
      const auto info = Get(Await<Result<JobInfo>>(
          &store_.executor(), [&](auto done) { store_.cluster().GetJob(job, done); }));
      if (info.ended) {
        Check(info.status);
        break;
      }
      Sleep(&store_.executor(), std::chrono::milliseconds(5));
    }
    store_.engine().ForgetTable("ranged");
    tables_[true] = Get(store_.engine().Table("ranged"));
  }

  BenchedStore store_{"ranges"};
  SchemaPtr tables_[2];
  int64_t put_[2] = {0, 0};
};

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  tamis::AggregateQueries(argc > 1 ? std::stoll(argv[1]) : 1'000'000).Run();
  tamis::Orders().Run();
  tamis::Included().Run();
  tamis::RangedPuts().Run();
  return 0;
}
