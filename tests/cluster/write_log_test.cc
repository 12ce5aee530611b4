#include "tests/cluster/write_log.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

constexpr int64_t kKey = 1;

Row State(int64_t n) { return {Value::Int64(kKey), Value::Int64(n)}; }

class WriteLogTest : public ::testing::Test {
 protected:
  // The states that a search may see which began at the mark: 0 for no row.
  std::multiset<int64_t> Since(const WriteLog::Mark& mark) {
    std::multiset<int64_t> numbers;
    const std::vector<RowState> states = log_.Since(mark)[kKey];
    for (const RowState& state : states) {
      numbers.insert(state.has_value() ? (*state)[1].int64() : 0);
    }
    return numbers;
  }
  std::multiset<int64_t> Now() { return Since(WriteLog::Mark(&log_)); }
  uint64_t Begin(int64_t n) { return log_.Begin(kKey, State(n)); }
  void Acknowledge(uint64_t write) { log_.Acknowledge(kKey, write); }

  using Numbers = std::multiset<int64_t>;
  WriteLog log_;
};

TEST_F(WriteLogTest, SearchMaySeeRowsBeforeAndAfterAWriteUnderWay) {
  const uint64_t first = Begin(1);
  EXPECT_EQ(Now(), Numbers({0, 1}));
  const WriteLog::Mark early(&log_);
  Acknowledge(first);
  EXPECT_EQ(Now(), Numbers({1}));
  const uint64_t second = Begin(2);
  Acknowledge(second);
  EXPECT_EQ(Now(), Numbers({2}));
  EXPECT_EQ(Since(early), Numbers({0, 1, 2}));
}

TEST_F(WriteLogTest, ARefusedWriteLeavesNothingAnUnknownOneStaysPossible) {
  Acknowledge(Begin(1));
  log_.Refuse(kKey, Begin(2));
  EXPECT_EQ(Now(), Numbers({1}));
  Begin(3);  // never answered
  Acknowledge(Begin(4));
  EXPECT_EQ(Now(), Numbers({3, 4}));
  Acknowledge(Begin(5));
  EXPECT_EQ(Now(), Numbers({3, 5}));
}

TEST_F(WriteLogTest, EitherOfOverlappingWritesMayBeTheLast) {
  const uint64_t first = Begin(1), second = Begin(2);
  Acknowledge(first);
  EXPECT_EQ(Now(), Numbers({1, 2}));
  Acknowledge(second);
  EXPECT_EQ(Now(), Numbers({1, 2}));
  Acknowledge(Begin(3));
  EXPECT_EQ(Now(), Numbers({3}));
}

TEST_F(WriteLogTest, WriteThatASearchShowsWasDoneAfterAllThatHadEnded) {
  const uint64_t first = Begin(1), second = Begin(2);
  Acknowledge(first);
  Acknowledge(second);
  const WriteLog::Mark early(&log_);
  {
    const WriteLog::Mark mark(&log_);
    log_.NoteShown(mark, kKey, State(1));
    EXPECT_EQ(Since(mark), Numbers({1, 2})) << "it may have seen the other one before";
  }
  EXPECT_EQ(Now(), Numbers({1}));
  EXPECT_EQ(Since(early), Numbers({1, 2}));
}

TEST_F(WriteLogTest, WriteThatIsShownMayBeMissedUntilItIsAcknowledged) {
  const uint64_t first = Begin(1), second = Begin(2);
  Acknowledge(first);
  const WriteLog::Mark mark(&log_);
  log_.NoteShown(mark, kKey, State(2));
  EXPECT_EQ(Now(), Numbers({1, 2})) << "another coordinator may not know of it yet";
  Acknowledge(second);
  EXPECT_EQ(Now(), Numbers({2})) << "the first one was done before";
  EXPECT_EQ(Since(mark), Numbers({1, 2}));
}

TEST_F(WriteLogTest, WriteThatASearchShowsSaysNothingAboutWritesUnderWay) {
  const uint64_t first = Begin(1), second = Begin(2);
  Acknowledge(first);
  const WriteLog::Mark mark(&log_);
  log_.NoteShown(mark, kKey, State(2));
  const uint64_t third = Begin(3);
  log_.NoteShown(mark, kKey, State(2));
  EXPECT_EQ(Now(), Numbers({1, 2, 3}));
  Acknowledge(second);
  EXPECT_EQ(Now(), Numbers({2, 3}));
  Acknowledge(third);
  EXPECT_EQ(Now(), Numbers({2, 3})) << "the two overlapped";
}

TEST_F(WriteLogTest, WritesOfEqualRowsAreNotDistinguished) {
  const uint64_t first = Begin(1), second = Begin(2), third = Begin(1);
  for (const uint64_t write : {first, second, third}) Acknowledge(write);
  const WriteLog::Mark mark(&log_);
  log_.NoteShown(mark, kKey, State(1));
  EXPECT_EQ(Now(), Numbers({1, 1, 2}));
}

TEST_F(WriteLogTest, ARowThatIsShownWithoutItsLastColumnsIsThatRow) {
  const uint64_t first = log_.Begin(kKey, Row{Value::Int64(kKey), Value::Int64(1), Value()});
  const uint64_t second = Begin(2);
  Acknowledge(first);
  Acknowledge(second);
  log_.NoteShown(WriteLog::Mark(&log_), kKey, State(1));
  EXPECT_EQ(Now(), Numbers({1}));
}

}  // namespace
}  // namespace tamis
