#include "tests/cluster/threaded_events.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tamis/table/codec.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMaxRegions = 10;

}  // namespace

void ThreadedEvents::OfRegions() {
  Random random = run_.RandomOf(100);
  RandomRows rows(&random);
  uint64_t seen = 0;
  while (progress_.AwaitOperations(&seen, 1 + random.Uniform(2 * RunProgress::kEventEvery))) {
    if (progress_.HasManyOrders()) continue;
    const auto listed = run_.cluster().Regions("t");
    if (run_.TakeAbsence("lists of regions", listed.status())) continue;
    if (!listed.ok())
      return progress_.Fail("cannot list the regions: " + listed.status().ToString());
    const std::vector<RegionInfo>& regions = *listed;
    const RegionId region = regions[random.Uniform(regions.size())].id;
    switch (random.Uniform(4)) {
      case 0:
        if (regions.size() < kMaxRegions) {
          const Row row = RandomRows::KeyRow(rows.RandomKey());
          run_.cluster().admin().SplitRegion(region,
                                             random.OneIn(3) ? "" : EncodeKey(*run_.table(), row),
                                             progress_.Order("splits"));
        }
        break;
      case 1:
        if (regions.size() > 2)
          run_.cluster().admin().MergeRegion(region, progress_.Order("merges"));
        break;
      default:
        run_.cluster().admin().MoveRegion(region, run_.RandomServer(random),
                                          progress_.Order("moves"));
    }
  }
}

void ThreadedEvents::OfServersAndIndexes() {
  Random random = run_.RandomOf(101);
  std::set<std::string> asleep;
  uint64_t seen = 0;
  while (progress_.AwaitOperations(&seen, 1 + random.Uniform(3 * RunProgress::kEventEvery))) {
    const std::string server = run_.RandomServer(random);
    const bool may_sleep = run_.options().outages.empty() && asleep.size() < run_.servers() / 2 &&
                           !asleep.contains(server);
    switch (random.Uniform(11)) {
      case 0:
        if (!may_sleep || !Can(Capability::kKillServer) || !run_.cluster().Kill(server).ok()) break;
        asleep.insert(server);
        progress_.Count("server kills");
        break;
      case 1:
        if (!may_sleep || !Can(Capability::kPauseServer) || !run_.cluster().Pause(server).ok())
          break;
        asleep.insert(server);
        progress_.Count("server pauses");
        break;
      case 2:
      case 3:
      case 4:
        if (asleep.empty()) break;
        (void)run_.cluster().Resume(*asleep.begin());
        asleep.erase(asleep.begin());
        progress_.Count("server resumptions");
        break;
      case 5:
        StartJob(JobSpec::Kind::kRebuildIndex, "index rebuilds begun");
        break;
      case 6:
        if (Can(Capability::kCompact)) {
          StartJob(JobSpec::Kind::kCompact, "compactions begun");
        }
        break;
      case 7:
        if (Can(Capability::kBalance)) StartJob(JobSpec::Kind::kBalance, "balances begun");
        break;
      case 8:
        run_.RandomEngine(random).ForgetTable("t");
        break;
      default:
        ToggleIndex(random);
    }
  }
  for (const std::string& server : asleep) (void)run_.cluster().Resume(server);
}

void ThreadedEvents::Outages() {
  Random random = run_.RandomOf(104);
  std::vector<const Outage*> left;
  uint64_t seen = 0;
  while (!run_.options().outages.empty() &&
         progress_.AwaitOperations(&seen, 1 + random.Uniform(RunProgress::kEventEvery))) {
    if (left.empty()) {
      for (const Outage& outage : run_.options().outages) left.push_back(&outage);
      std::ranges::shuffle(left, random);
    }
    const Outage& outage = *left.back();
    left.pop_back();
    if (!outage.begin()) {
      outage.end();  // a server that it needs may have ended since the end of an earlier outage
      continue;
    }
    progress_.Count("outages");
    progress_.Count("outages: " + outage.name);
    progress_.Pause(outage.lasts);
    outage.end();
  }
}

void ThreadedEvents::StartJob(JobSpec::Kind kind, const char* what) {
  const auto started = run_.cluster().Ask<uint64_t>(
      [&](auto done) { run_.cluster().admin().StartJob({.kind = kind, .table = "t"}, done); });
  if (started.ok()) progress_.Count(what);
}

void ThreadedEvents::ToggleIndex(Random& random) {
  const IndexSpec index = RandomRows::WithCells(random.OneIn(3) ? RandomRows::IndexOnName()
                                                                : RandomRows::IndexOnBoth());
  const auto schema = run_.cluster().Ask<TableSchema>(
      [&](auto done) { run_.cluster().cluster().GetTable("t", done); });
  if (!schema.ok()) return;
  const bool there = schema->FindIndex(index.name) != nullptr;
  DoneCallback done = progress_.Order(there ? "index drops" : "index creations");
  const auto changed = [done](Result<TableSchema> result) {
    done(result.ok() ? Status::Ok() : result.status());
  };
  if (there) {
    run_.cluster().admin().DropIndex("t", index.name, changed);
  } else {
    run_.cluster().admin().CreateIndex("t", index, changed);
  }
}

void ThreadedEvents::ComingAndGoingCoordinator() {
  Random random = run_.RandomOf(102);
  RandomRows rows(&random);
  uint64_t seen = 0;
  while (progress_.AwaitOperations(&seen, RunProgress::kEventEvery * 4)) {
    auto engine = run_.StartEngine();
    for (uint64_t i = random.Uniform(20); i > 0 && progress_.BeginOperation(); --i) {
      searches_.SearchAny(*engine, random, rows);
    }
    progress_.Count("coordinator restarts");
  }
}

void ThreadedEvents::CoordinatorOfItsOwnProcess() {
  Random random = run_.RandomOf(105);
  uint64_t seen = 0;
  while (run_.process() != nullptr &&
         progress_.AwaitOperations(&seen, 1 + random.Uniform(2 * RunProgress::kEventEvery))) {
    if (!random.OneIn(4)) {
      run_.process()->Pause();
      progress_.Count("coordinator pauses");
      progress_.Pause(milliseconds(random.OneIn(2) ? 300 : 4000));
    }
    run_.process()->Resume();
    if (!random.OneIn(4)) continue;
    run_.process()->Kill();
    progress_.Count("coordinator kills");
    run_.StartProcess();
  }
  if (run_.process() != nullptr) run_.process()->Resume();
}

void ThreadedEvents::CoordinatorThatIsCutOff() {
  if (run_.far_engine() == nullptr) return;
  Random random = run_.RandomOf(106);
  RandomRows rows(&random);
  SchemaPtr schema = run_.table();
  uint64_t seen = 0;
  while (progress_.AwaitOperations(&seen, 1 + random.Uniform(RunProgress::kEventEvery))) {
    if (auto now = run_.far_engine()->Table("t"); now.ok()) schema = *now;
    for (uint64_t i = 1 + random.Uniform(5); i > 0; --i) {
      searches_.SearchFromAfar(schema, rows, seconds(20));
    }
    run_.far()->Cut();
    progress_.Count("cuts of a coordinator's network");
    const Time healed =
        run_.cluster().executor().Now() + milliseconds(random.OneIn(2) ? 300 : 4000);
    while (!progress_.failed() && run_.cluster().executor().Now() < healed) {
      searches_.SearchFromAfar(schema, rows, milliseconds(700));
    }
    run_.far()->Heal();
  }
}

}  // namespace tamis
