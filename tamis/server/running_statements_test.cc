#include "tamis/server/running_statements.h"

#include <gtest/gtest.h>

namespace tamis::server {
namespace {

// It ends when the test says so.
class StuckStatement final : public RunningStatement {
 public:
  void Cancel(const Status&) override { is_cancelled = true; }
  void Cut() override { is_cut = true; }

  bool is_cancelled = false;
  bool is_cut = false;
};

TEST(RunningStatementsTest, StopDoesNotWaitForeverForAStatementThatDoesNotEnd) {
  RunningStatements statements(2);
  const auto stuck = std::make_shared<StuckStatement>();
  ASSERT_EQ(statements.Add(stuck.get()), Status());
  EXPECT_FALSE(statements.Stop(std::chrono::milliseconds(1)));
  EXPECT_TRUE(stuck->is_cancelled);
  EXPECT_TRUE(stuck->is_cut);
  EXPECT_EQ(statements.Add(std::make_shared<StuckStatement>().get()).code(),
            StatusCode::kUnavailable);
  statements.Remove(stuck.get());
  EXPECT_TRUE(statements.Stop(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace tamis::server
