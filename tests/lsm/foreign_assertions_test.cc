#include "tests/lsm/foreign_assertions.h"

#include <gtest/gtest.h>
#include <rocksdb/iterator.h>
#include <signal.h>

#include <cassert>
#include <cstdlib>
#include <memory>

#include "tests/lsm/faulty_file_system.h"

namespace tamis::lsm {
namespace {

using ForeignAssertionsDeathTest = testing::Test;

// The disk is full, and says so to who asks it.
void MakeFault() {
  FaultyFileSystem disk;
  disk.SetMood(FaultyFileSystem::Mood::kFull);
  if (disk.RenameFile("a", "b", {}, nullptr).ok()) std::abort();
}

// The empty iterator asserts that its key is never read.
void BreakRuleOfRocksDb() {
  const std::unique_ptr<rocksdb::Iterator> none(rocksdb::NewEmptyIterator());
  (void)none->key();
}

void BreakRuleOfOurs() {
  const bool holds = false;
  assert(holds);
}

TEST(ForeignAssertionsDeathTest, RocksDbAssertionAfterAFaultEndsTheProcessAsKilled) {
  EXPECT_EXIT(
      {
        MakeFault();
        BreakRuleOfRocksDb();
      },
      testing::ExitedWithCode(kForeignAssertion), "Assertion");
}

TEST(ForeignAssertionsDeathTest, RocksDbAssertionWithoutAFaultAborts) {
  EXPECT_EXIT(
      {
        FaultyFileSystem disk;  // well
        (void)disk.RenameFile("/nowhere/a", "/nowhere/b", {}, nullptr);
        BreakRuleOfRocksDb();
      },
      testing::KilledBySignal(SIGABRT), "Assertion");
}

TEST(ForeignAssertionsDeathTest, OwnAssertionAfterAFaultAborts) {
  EXPECT_EXIT(
      {
        MakeFault();
        BreakRuleOfOurs();
      },
      testing::KilledBySignal(SIGABRT), "Assertion");
}

TEST(ForeignAssertionsDeathTest, AbortWithoutAssertionAfterAFaultIsNotForgiven) {
  EXPECT_EXIT(
      {
        MakeFault();
        std::abort();
      },
      testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace tamis::lsm
