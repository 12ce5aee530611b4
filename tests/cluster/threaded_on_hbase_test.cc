// The randomized cluster test on a real HBase: SQL and programs write and search by several
// coordinators while regions are split, merged and moved, servers killed with kill -9, and indexes
// come, go and are rebuilt (threaded_cluster.h); one more coordinator is a process of its own,
// which is put to sleep and killed. With TAMIS_OUTAGES HDFS lies below, and servers, master and
// ZooKeeper die, sleep and are cut off as well (hbase_outages.h), which takes minutes.
//
// All the time HBase's own client, which knows nothing of indexes, writes and reads the table from
// a process of its own (plain_client.h). With TAMIS_CUT_OFF one more coordinator has a network that
// is cut and healed. With TAMIS_JAR_FAULTS rules of the jar are off (Fault.java): the run is to
// fail.
//
//   TAMIS_SEED=7 TAMIS_OPERATIONS=4000 TAMIS_OUTAGES=1 threaded_on_hbase_test

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tamis/base/random.h"
#include "tests/cluster/hbase_kind.h"
#include "tests/cluster/hbase_outages.h"
#include "tests/cluster/random_rows.h"
#include "tests/cluster/threaded_cluster.h"
#include "tests/hbase/local_hbase.h"

namespace tamis {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// The messages of HBase's client are in the logs of the cluster.
std::vector<std::string> PlainClientOn(const LocalHBase& hbase) {
  std::string class_path = TAMIS_TEST_CLASSES ":" + hbase.Run("classpath");
  class_path.pop_back();  // the end of the line
  return {"/bin/sh", "-c",
          "exec java @\"$2\" -Xmx128m -cp \"$1\" tamis.hbase.PlainClient \"$3\" 2>\"$0\"",
          LocalHBase::Directory() + "/log/plain-client.log", class_path,
          // The options that the cluster itself has: with Kerberos they name its realm.
          LocalHBase::Directory() + "/conf/java"};
}

TEST(ThreadedOnHBaseTest, EveryAcknowledgedRowIsFoundAndNothingElse) {
  // Debian's Python, whose SQLite loads extensions.
  ThreadedClusterOptions options{
      .seed = FromEnvironment("TAMIS_SEED", SeedFromSystem() % 1'000'000),
      .operations = FromEnvironment("TAMIS_OPERATIONS", 400),
      .coordinator = {"/usr/bin/python3", TAMIS_SQL_PROCESS, TAMIS_EXTENSION},
      .cut_off = FromEnvironment("TAMIS_CUT_OFF", 0) != 0};
  if (const char* faults = std::getenv("TAMIS_JAR_FAULTS"); faults != nullptr) {
    LocalHBase::AddToStart("-D tamis.faults=" + std::string(faults));
  }
  if (FromEnvironment("TAMIS_OUTAGES", 0) != 0) {
    // Where the file system has a fence the master need not be patient: it expires a server that
    // it cannot reach, though its session lives.
    LocalHBase::AddToStart("--hdfs --cuts -D hbase.master.rs.remote.proc.fail.fast.limit=5");
    options.outages = HBaseOutages(LocalHBase::Get());
    ASSERT_FALSE(HasFailure()) << "outages need a cluster with --hdfs --cuts";
  }
  options.plain_client = PlainClientOn(LocalHBase::Get());
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto result = RunThreadedCluster(HBaseKind(), options);
  std::printf("%llu operations\n", static_cast<unsigned long long>(result.operations));
  for (const auto& [name, count] : result.counts) {
    std::printf("  %10llu %s\n", static_cast<unsigned long long>(count), name.c_str());
  }
  ASSERT_FALSE(result.failure.has_value()) << *result.failure;
  // A run in which nothing happened says nothing.
  EXPECT_TRUE(result.counts.contains("moves") || !options.outages.empty());
  EXPECT_TRUE(result.counts.contains("coordinator pauses"));
  EXPECT_TRUE(result.counts.contains("searches by the process"));
  EXPECT_TRUE(result.counts.contains("puts by a plain client"));
  EXPECT_TRUE(result.counts.contains("reads by a plain client"));
  EXPECT_EQ(result.counts.contains("cuts of a coordinator's network"), options.cut_off);
  EXPECT_EQ(result.counts.contains("outages"), !options.outages.empty());
}

// A coordinator that knows of each region what values it has not, and then hears nothing any more.
// True: it left a row out that was acknowledged meanwhile.
bool MissesWhatCameWhenItWasCutOff(const Faults& faults) {
  auto opened = HBaseKind().open({});
  EXPECT_TRUE(opened.ok()) << opened.status();
  ClusterUnderTest& cluster = **opened;
  const auto table = cluster.CreateTable(RandomRows::Schema());
  EXPECT_TRUE(table.ok()) << table.status();
  auto far = cluster.OpenFar();
  EXPECT_TRUE(far.ok() && *far) << far.status();
  if (!table.ok() || !far.ok()) return false;
  Engine near(&cluster.cluster(), &cluster.executor(), {});
  Engine cut_off(&(*far)->cluster(), &(*far)->executor(),
                 {.faults = std::make_shared<const Faults>(faults)});
  Random random(1);
  RandomRows rows(&random);
  Row row = rows.RandomRow(1);
  row[RandomRows::kGroup] = Value::Text("new");
  const auto find = [&](Duration timeout, uint64_t* asked) -> Result<size_t> {
    const auto predicate =
        Predicate::Compare(RandomRows::kGroup, Predicate::Op::kEq, Value::Text("new"));
    RowStream stream = cut_off.Search(*table, {.predicate = predicate, .timeout = timeout});
    size_t found = 0;
    while (true) {
      const auto next = stream.Next();
      if (!next.ok()) return next.status();
      if (!next->has_value()) break;
      ++found;
    }
    *asked = stream.explain().regions_asked;
    return found;
  };
  // Where time is real, its lease may end at any moment.
  const Time end = cluster.Soon().deadline;
  for (uint64_t asked = 1; asked > 0 && cluster.executor().Now() < end;) {
    EXPECT_TRUE(cut_off.WaitUntilRouted(**table, std::chrono::seconds(60)));
    const auto before = find(std::chrono::seconds(60), &asked);
    EXPECT_TRUE(before.ok() && *before == 0) << before.status();
  }
  (*far)->Cut();
  const Status put = near.Apply(*table, {{.row = row}}).front();
  EXPECT_TRUE(put.ok()) << put;
  uint64_t asked = 0;
  const auto meanwhile = find(std::chrono::seconds(2), &asked);
  EXPECT_TRUE(!meanwhile.ok() || *meanwhile == 0);  // how could it have come
  if (!meanwhile.ok()) {
    EXPECT_EQ(meanwhile.status().code(), StatusCode::kDeadlineExceeded) << meanwhile.status();
  }
  (*far)->Heal();
  if (!meanwhile.ok() && FromEnvironment("TAMIS_CUT_OFF", 0) != 0) {
    const auto behind = find(ClusterUnderTest::kPatience, &asked);
    EXPECT_TRUE(behind.ok() && *behind == 1) << behind.status();
  }
  return meanwhile.ok();
}

TEST(CoordinatorCutOffTest, CoordinatorWithoutALeaseMissesNoRow) {
  EXPECT_FALSE(MissesWhatCameWhenItWasCutOff({}));
}

TEST(CoordinatorCutOffTest, CoordinatorThatUsesItsCopyWithoutALeaseMissesARow) {
  EXPECT_TRUE(MissesWhatCameWhenItWasCutOff({.expired_lease_excludes = true}));
}

}  // namespace
}  // namespace tamis
