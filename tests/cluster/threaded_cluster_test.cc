#include "tests/cluster/threaded_cluster.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "tests/cluster/embedded_kinds.h"

namespace tamis {
namespace {

ThreadedClusterOptions Options(uint64_t seed) {
  return {.seed = seed, .operations = TAMIS_THREADED_OPERATIONS};
}

std::vector<ClusterKind> Threaded() {
  std::vector<ClusterKind> kinds;
  for (ClusterKind& kind : ClusterKinds()) {
    if (kind.virtual_clock) continue;
    kinds.push_back(std::move(kind));
  }
  return kinds;
}

class ThreadedClusterTest : public ::testing::TestWithParam<std::tuple<ClusterKind, uint64_t>> {};

TEST_P(ThreadedClusterTest, EveryAcknowledgedRowIsFoundAndNothingElse) {
  const auto& [kind, seed] = GetParam();
  const auto result = RunThreadedCluster(kind, Options(seed));
  std::printf("seed %llu: %llu operations\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(result.operations));
  for (const auto& [name, count] : result.counts) {
    std::printf("  %10llu %s\n", static_cast<unsigned long long>(count), name.c_str());
  }
  ASSERT_FALSE(result.failure.has_value()) << *result.failure;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ThreadedClusterTest,
                         ::testing::Combine(::testing::ValuesIn(Threaded()),
                                            ::testing::Values(1, 2)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });

// The test can fail. Without these rules a row is missed, or a wrong one returned, within a few
// dozen operations, whatever the threads do.
class ThreadedFaultTest : public ::testing::TestWithParam<std::string_view> {};

TEST_P(ThreadedFaultTest, IsFound) {
  ThreadedClusterOptions options = Options(5);
  ASSERT_TRUE(SetFault(GetParam(), &options.faults));
  const auto result = RunThreadedCluster(EmbeddedKind(), options);
  ASSERT_TRUE(result.failure.has_value());
  std::printf("found after %llu operations: %s\n",
              static_cast<unsigned long long>(result.operations), result.failure->c_str());
}

INSTANTIATE_TEST_SUITE_P(SomeRules, ThreadedFaultTest,
                         ::testing::Values("ignore_pending_flips", "no_row_verification"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tamis
