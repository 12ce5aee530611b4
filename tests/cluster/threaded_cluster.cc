#include "tests/cluster/threaded_cluster.h"

#include <chrono>
#include <thread>
#include <vector>

#include "tests/cluster/threaded_events.h"
#include "tests/cluster/threaded_plain_client.h"
#include "tests/cluster/threaded_run.h"
#include "tests/cluster/threaded_searches.h"
#include "tests/cluster/threaded_writes.h"

namespace tamis {
namespace {

// A server that could not tell the master of a closed region tells it again after 200 seconds.
constexpr std::chrono::seconds kPatienceAfterOutages{400};
constexpr std::chrono::seconds kSearchAtRest{180};

class ThreadedCluster {
 public:
  ThreadedCluster(const ClusterKind& kind, const ThreadedClusterOptions& options)
      : run_(kind, options) {}

  RandomClusterResult Run() {
    RunProgress& progress = run_.progress();
    if (!progress.failed()) {
      std::vector<std::thread> clients;
      for (int i = 0; i < run_.options().clients; ++i)
        clients.emplace_back([this, i] { Client(i); });
      std::vector<std::thread> others;
      others.emplace_back([this] { events_.OfRegions(); });
      others.emplace_back([this] { events_.OfServersAndIndexes(); });
      others.emplace_back([this] { events_.ComingAndGoingCoordinator(); });
      others.emplace_back([this] { events_.Outages(); });
      others.emplace_back([this] { events_.CoordinatorOfItsOwnProcess(); });
      others.emplace_back([this] { events_.CoordinatorThatIsCutOff(); });
      others.emplace_back([this] { plain_client_.Run(); });
      for (auto& client : clients) client.join();
      progress.EndOperations();
      for (auto& other : others) other.join();
    }
    if (!progress.failed()) Reconcile();
    return progress.Result();
  }

 private:
  void Client(int i) {
    const bool has_process = !run_.options().coordinator.empty();
    Random random = run_.RandomOf(static_cast<uint64_t>(i));
    RandomRows rows(&random);
    SqlClient& sql = run_.sql(static_cast<size_t>(i));
    while (run_.progress().BeginOperation()) {
      Engine& engine = run_.RandomEngine(random);
      if (random.OneIn(8)) {
        writes_.WriteBySql(i, sql, rows);
      } else if (random.OneIn(10)) {
        searches_.SearchBySql(sql, random, rows);
      } else if (has_process && random.OneIn(8)) {
        searches_.SearchByProcess(
            {.predicate = rows.RandomPredicate(searches_.Near(rows.RandomKey()))});
      } else if (random.OneIn(4)) {
        writes_.WriteShared(engine, random, rows);
      } else if (random.OneIn(2)) {
        const std::vector<int64_t> acknowledged = writes_.WriteSome(i, engine, random, rows);
        // Every search from here on must find them, by any coordinator.
        for (const int64_t key : acknowledged) {
          if (random.OneIn(2)) searches_.SearchFor(key, run_.RandomEngine(random), rows);
          if (has_process && random.OneIn(2)) {
            searches_.SearchByProcess({.predicate = searches_.ProbeFor(key, rows)});
          }
        }
      } else {
        searches_.SearchAny(engine, random, rows);
      }
    }
  }

  void Reconcile() {
    run_.progress().AwaitOrders();
    // Dead servers' regions are given to others, indexes are built: both in the background.
    const auto report = run_.cluster().Reconcile(
        "t", run_.options().outages.empty() ? ClusterUnderTest::kPatience : kPatienceAfterOutages);
    if (!report.ok()) {
      return run_.progress().Fail(report.status().ToString() +
                                  run_.cluster().Describe(*run_.table(), RowState()));
    }
    run_.progress().Count("checks");
    CompareAll();
  }

  // Nothing is under way: by every index, from every coordinator.
  void CompareAll() {
    run_.SetAtRest();
    Random random = run_.RandomOf(103);
    RandomRows rows(&random);
    if (run_.process() != nullptr) searches_.SearchByProcess({});
    if (run_.far_engine() != nullptr) {
      // It may still wait for what was lost with the cut connections.
      searches_.SearchFromAfar(run_.table(), rows, kSearchAtRest);
      run_.far_engine()->ForgetTable("t");
      searches_.Check(*run_.far_engine(), {});
    }
    for (auto& engine : run_.engines()) {
      engine->ForgetTable("t");
      searches_.Check(*engine, {});
      for (int64_t key = 0; key < run_.EndOfKeys() && !run_.progress().failed(); ++key) {
        if (searches_.Near(key).has_value()) searches_.SearchFor(key, *engine, rows);
      }
    }
    plain_client_.FindItsRows();
  }

  ThreadedRun run_;
  ThreadedSearches searches_{&run_};
  ThreadedWrites writes_{&run_, &searches_};
  ThreadedEvents events_{&run_, &searches_};
  ThreadedPlainClient plain_client_{&run_, &searches_, &writes_};
};

}  // namespace

RandomClusterResult RunThreadedCluster(const ClusterKind& kind,
                                       const ThreadedClusterOptions& options) {
  return ThreadedCluster(kind, options).Run();
}

}  // namespace tamis
