// The randomized cluster test on a real HBase: SQL and programs write and search by several
// coordinators while regions are split, merged and moved, servers killed with kill -9, and indexes
// come, go and are rebuilt (threaded_cluster.h).
//
//   TAMIS_SEED=7 TAMIS_OPERATIONS=100000 threaded_on_hbase_test

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tamis/base/random.h"
#include "tests/cluster/hbase_kind.h"
#include "tests/cluster/threaded_cluster.h"

namespace tamis {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(ThreadedOnHBaseTest, EveryAcknowledgedRowIsFoundAndNothingElse) {
  const ThreadedClusterOptions options{
      .seed = FromEnvironment("TAMIS_SEED", SeedFromSystem() % 1'000'000),
      .operations = FromEnvironment("TAMIS_OPERATIONS", 600)};
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  const auto result = RunThreadedCluster(HBaseKind(), options);
  std::printf("%llu operations\n", static_cast<unsigned long long>(result.operations));
  for (const auto& [name, count] : result.counts) {
    std::printf("  %10llu %s\n", static_cast<unsigned long long>(count), name.c_str());
  }
  ASSERT_FALSE(result.failure.has_value()) << *result.failure;
}

}  // namespace
}  // namespace tamis
