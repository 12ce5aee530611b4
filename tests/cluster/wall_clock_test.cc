// Waits do not depend on the wall clock, which operators and NTP set at any time.
//
// This program has its own clock_gettime, gettimeofday and time, which the libraries call as well:
// the wall clock jumps by 400 days in either direction, all other clocks are the system's. The
// kernel's wall clock stays as it is, so a wait until a time of the jumping clock would end at once
// or last for days.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

#include "tests/cluster/embedded_kinds.h"
#include "tests/cluster/find_rows.h"
#include "tests/cluster/random_rows.h"

namespace {
std::atomic<time_t> wall_clock_ahead = 0;  // seconds
}

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const auto failed = static_cast<int>(syscall(SYS_clock_gettime, clock, now));
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (failed == 0 && wall) now->tv_sec += wall_clock_ahead.load();
  return failed;
}

int gettimeofday(timeval* __restrict now, void* __restrict) noexcept {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) noexcept {
  timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (now != nullptr) *now = precise.tv_sec;
  return precise.tv_sec;
}

}  // extern "C"

namespace tamis {
namespace {

class WallClockTest : public ::testing::Test {
 protected:
  ~WallClockTest() override { wall_clock_ahead = 0; }

  // Ahead, back, as it is.
  static void Jump() {
    static constexpr time_t kFar = time_t{400} * 24 * 3600;
    wall_clock_ahead = wall_clock_ahead == 0 ? kFar : wall_clock_ahead == kFar ? -kFar : 0;
  }
};

TEST_F(WallClockTest, TheTestMovesTheClockOfTheLibraries) {
  const auto before = std::chrono::system_clock::now();
  Jump();
  const auto ahead = std::chrono::system_clock::now() - before;
  EXPECT_GE(ahead, std::chrono::hours(399 * 24));
  Jump();
  EXPECT_LT(std::chrono::system_clock::now(), before);
}

TEST_F(WallClockTest, WritesAndSearchesGoOnWhileTheWallClockJumps) {
  auto opened = EmbeddedKind().open({.servers = 3, .restless = true, .faults = {}});
  ASSERT_TRUE(opened.ok()) << opened.status();
  auto& cluster = **opened;
  const auto made = cluster.CreateTable(RandomRows::Schema());
  ASSERT_TRUE(made.ok()) << made.status();
  const SchemaPtr table = *made;
  Engine engine(&cluster.cluster(), &cluster.executor(), {});
  const std::jthread jumps([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      Jump();
      Sleep(&cluster.executor(), std::chrono::milliseconds(3));  // waits while the clock jumps
    }
  });
  for (int64_t key = 0; key < 1000 && !HasFailure(); ++key) {
    Row row = RandomRows::KeyRow(key);
    row.resize(table->columns.size());
    row[RandomRows::kName] = Value::Text("n" + std::to_string(key));
    for (const Status& status : engine.Apply(table, {{.row = row}})) {
      EXPECT_TRUE(status.ok()) << status;
    }
    const auto found =
        FindRows(engine, table, {.predicate = RandomRows::EqualTo(row, RandomRows::kName)});
    EXPECT_EQ(found.size(), 1u);
    if (key % 100 == 50) {
      const auto regions = cluster.Regions("t");
      ASSERT_TRUE(regions.ok()) << regions.status();
      const auto servers = cluster.Servers();
      ASSERT_TRUE(servers.ok()) << servers.status();
      EXPECT_TRUE(cluster.Move(regions->front().id, servers->back()).ok());
    }
  }
}

}  // namespace
}  // namespace tamis
