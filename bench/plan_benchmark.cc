// The cost of a condition on several indexes, beside the cheapest plan that is fixed beforehand:
// each index alone, and a scan.
//
//   plan_benchmark [ROWS]      default 200,000
//
// The table is Orders (tests/cluster/orders.h): skewed and correlated. Answers are counted. The
// cost is what the regions read, counted in entries: a range that is begun costs eight, a row eight
// when it is looked up, two when all are read in turn. Entries alone say little: a scan reads none,
// and those of a second index are read to spare rows.
//
// Goal: never more than twice the cost of the cheapest way.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/checked.h"
#include "bench/figures.h"
#include "tamis/base/answers.h"
#include "tamis/base/random.h"
#include "tamis/base/thread_executor.h"
#include "tamis/query/engine.h"
#include "tamis/query/plan.h"
#include "tamis/rocks/rocks_cluster.h"
#include "tests/cluster/branch_search.h"
#include "tests/cluster/orders.h"

namespace tamis {
namespace {

constexpr int kRegions = 4;
constexpr int64_t kBatch = 1000;
// For each region: the budget of sampling where there is hardly anything to read.
constexpr uint64_t kFew = 64;

using enum Orders::Column;

// Processor time of the whole process; nothing else runs meanwhile.
double Milliseconds(auto&& run) {
  const std::clock_t begin = std::clock();
  run();
  return static_cast<double>(std::clock() - begin) * 1000 / CLOCKS_PER_SEC;
}

struct Work : BranchWork {
  double ms = 0;
};

class Bench {
 public:
  explicit Bench(int64_t rows) : executor_(2) {
    directory_ = std::filesystem::temp_directory_path() / "tamis_plan_benchmark";
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    RocksCluster::Options options;
    options.store.directory = directory_ / "store";
    options.servers = 1;
    options.server.split_bytes = 0;
    auto cluster = RocksCluster::Open(options, &executor_);
    if (!cluster.ok()) Die(cluster.status().ToString());
    cluster_ = std::move(*cluster);
    Fill(rows);
  }
  ~Bench() {
    executor_.Stop();
    cluster_.reset();
    std::filesystem::remove_all(directory_);
  }

  void Run() {
    for (const bool compacted : {false, true}) {
      if (compacted && !cluster_->store().Compact().ok()) Die("cannot compact");
      std::printf("%zu orders in %zu regions, %s\n", rows_.size(), regions_.size(),
                  compacted ? "compacted" : "as written");
      std::printf("  %-62s %8s %8s %8s %7s   %8s %8s %7s  %7s %6s %6s\n", "", "found", "entries",
                  "rows", "ms", "entries", "rows", "ms", "entries", "cost", "time");
      double worst_cost = 0, worst_time = 0;
      for (const Predicate& question : Questions()) {
        const auto [cost, time] = Compare(question);
        worst_cost = std::max(worst_cost, cost);
        worst_time = std::max(worst_time, time);
      }
      std::printf(
          "  worst: %.2f times the cost (goal: 2) and %.2f times the time of the cheapest\n",
          worst_cost, worst_time);
      Report({.work = Printed("the planner's choice, worst of %zu questions, orders %s",
                              Questions().size(), compacted ? "compacted" : "as written"),
              .beside = "the cheapest of all plans",
              .now = Printed("%.2f times the time", worst_time),
              .ratio = Printed("%.2f times the cost", worst_cost),
              .goal = "<= 2"});
    }
  }

 private:
  void Fill(int64_t count) {
    const Orders orders{.count = count, .few_large_amounts = true, .note_bytes = 100, .seed = 9};
    auto made = AwaitResult<TableSchema>(
        &executor_, {}, [&](auto done) { cluster_->CreateTable(orders.Schema(), done); });
    if (!made.ok()) Die(made.status().ToString());
    table_ = std::make_shared<const TableSchema>(*made);
    rows_ = orders.Rows();
    Random random(9);
    std::vector<size_t> order(rows_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    Engine engine(cluster_.get(), &executor_, {.seed = 1});
    const auto put = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; i += kBatch) {
        std::vector<Write> writes;
        for (size_t j = i; j < std::min(end, i + kBatch); ++j) {
          writes.push_back({.row = rows_[order[j]]});
        }
        for (const Status& status : engine.Apply(table_, std::move(writes))) {
          if (!status.ok()) Die(status.ToString());
        }
      }
    };
    // Splits while it is small, so that there is little garbage.
    put(0, order.size() / 20);
    while (Regions().size() < kRegions) {
      for (const RegionInfo& region : Regions()) {
        const Status split = AwaitStatus(
            &executor_, {}, [&](auto done) { cluster_->SplitRegion(region.id, "", done); });
        if (!split.ok()) Die(split.ToString());
      }
    }
    put(order.size() / 20, order.size());
    while (cluster_->pending_work() > 0) Sleep(&executor_, std::chrono::milliseconds(5));
    regions_ = Regions();
  }

  std::vector<RegionInfo> Regions() {
    return *AwaitResult<std::vector<RegionInfo>>(
        &executor_, {}, [&](auto done) { cluster_->ListRegions("orders", {}, done); });
  }

  Work Ask(const pb::Branch& branch) {
    Work work;
    work.ms = Milliseconds([&] {
      static_cast<BranchWork&>(work) =
          SearchBranches(cluster_.get(), &executor_, *table_, regions_, {branch});
    });
    if (!work.ok()) Die(work.error);
    return work;
  }

  // Which indexes led, and which were joined.
  std::string WaysOf(const Work& work) const {
    std::string text;
    const auto add = [&](const std::map<uint32_t, uint64_t>& uses, const char* before) {
      for (const auto& [id, count] : uses) {
        const IndexSpec* index = table_->FindIndex(id);
        if (count == 0) continue;
        text += (text.empty() ? "" : " ") + std::string(before) +
                (index == nullptr ? "scan" : index->name);
      }
    };
    add(work.led, "");
    add(work.joined, "+");
    return text;
  }

  std::pair<double, double> Compare(const Predicate& question) {
    const pb::Branch branch = MakePlan(*table_, question, {}).branches[0];
    std::vector<pb::Branch> ways(1);  // the first is the scan
    for (const pb::IndexStream& stream : branch.streams()) {
      *ways.emplace_back().add_streams() = stream;
    }
    std::optional<Work> best;
    for (pb::Branch& way : ways) {
      way.set_predicate(branch.predicate());
      // The request names one stream. It does not say whether to scan, since that is the choice.
      const Work work = Ask(way);
      if (!best.has_value() || work.cost() < best->cost()) best = work;
    }
    const Work chosen = Ask(branch);
    const uint64_t matches = CountMatches(rows_, question);
    if (chosen.keys.size() != matches || best->keys.size() != matches) Die("a wrong answer");
    const auto ratio = [&](uint64_t a, uint64_t b) {
      return static_cast<double>(a) / static_cast<double>(b + kFew * kRegions);
    };
    const double entries = ratio(chosen.entries, best->entries);
    const double cost = ratio(chosen.cost(), best->cost());
    std::string text = question.ToString(*table_);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    std::printf("  %-62s %8llu %8llu %8llu %7.1f   %8llu %8llu %7.1f  %7.2f %6.2f %6.2f  %s\n",
                text.c_str(), static_cast<unsigned long long>(matches),
                static_cast<unsigned long long>(best->entries),
                static_cast<unsigned long long>(best->rows_read), best->ms,
                static_cast<unsigned long long>(chosen.entries),
                static_cast<unsigned long long>(chosen.rows_read), chosen.ms, entries, cost,
                chosen.ms / best->ms, WaysOf(chosen).c_str());
    // Times below a millisecond are not compared.
    return {cost, best->ms < 1 ? 0 : chosen.ms / best->ms};
  }

  static std::vector<Predicate> Questions() {
    std::vector<Value> days;
    for (int64_t day = 0; day < 100; ++day) days.push_back(Value::Int64(day * 17));
    const auto all = [](std::vector<Predicate> conditions) {
      return Predicate::And(std::move(conditions));
    };
    return {
        all({Between(kAmount, 50'000, 50'020), Equal(kCountry, 0)}),
        all({Between(kAmount, 50'000, 60'000), Equal(kCountry, 7)}),
        all({Between(kAmount, 0, 5), Equal(kCity, 3)}),
        all({Between(kAmount, 90'000, 100'000), Equal(kCountry, 0), Equal(kYear, 3)}),
        all({Equal(kCountry, 4), Equal(kCity, 83)}),  // which says it all
        all({Equal(kCountry, 3), Equal(kCity, 83)}),  // never
        all({Equal(kCountry, 2), Equal(kYear, 3)}),
        all({Equal(kCity, 1), Equal(kYear, 3)}),
        all({Equal(kDay, 777), Equal(kCountry, 0)}),
        all({Equal(kDay, 777), Between(kShipped, 780, 783)}),
        all({Between(kDay, 700, 800), Between(kShipped, 700, 830)}),   // nearly the same
        all({Between(kDay, 700, 800), Between(kShipped, 900, 1000)}),  // never
        all({Between(kDay, 700, 800), Between(kAmount, 10'000, 12'000)}),
        all({Between(kDay, 700, 900), Between(kAmount, 10'000, 20'000), Equal(kCountry, 5)}),
        all({Equal(kYear, 2), Between(kDay, 1000, 1030)}),
        all({Equal(kYear, 2), Between(kDay, 1090, 1200), Between(kAmount, 0, 1000)}),
        all({Predicate::In(kDay, days), Equal(kCountry, 6)}),
        all({Predicate::In(kDay, days), Between(kAmount, 0, 100)}),
        all({Between(kAmount, 1, 100'000), Equal(kCountry, 12)}),
        all({Between(kAmount, 1, 100'000), Between(kDay, 10, 2400)}),  // nearly all
    };
  }

  std::filesystem::path directory_;
  ThreadExecutor executor_;
  std::unique_ptr<RocksCluster> cluster_;
  SchemaPtr table_;
  std::vector<Row> rows_;
  std::vector<RegionInfo> regions_;
};

}  // namespace
}  // namespace tamis

int main(int argc, char** argv) {
  const int64_t rows = argc > 1 ? std::atoll(argv[1]) : 200'000;
  if (rows < 1000) {
    std::fprintf(stderr, "usage: plan_benchmark [ROWS]   >= 1000\n");
    return 2;
  }
  tamis::Bench(rows).Run();
  return 0;
}
