#include "tamis/guard/child_process.h"

#include <gtest/gtest.h>

namespace tamis {
namespace {

TEST(ChildProcessTest, OutputIsWhole) {
  const auto output = OutputOf({"printf", "%s", "a b"});
  ASSERT_TRUE(output.ok());
  EXPECT_EQ(*output, "a b");
}

TEST(ChildProcessTest, HalfOfTheOutputIsAFailure) {
  const auto output = OutputOf({"sh", "-c", "echo half; exit 3"});
  EXPECT_EQ(output.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(output.status().message().find("exit status 3"), std::string::npos);
  EXPECT_NE(OutputOf({"sh", "-c", "kill -9 $$"}).status().message().find("signal 9"),
            std::string::npos);
  EXPECT_FALSE(OutputOf({"there-is-no-such-program"}).ok());
}

TEST(ChildProcessTest, AnyPartOfAPipeCounts) {
  auto child = ChildProcess::StartShell("(echo half; exit 3) | cat");
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(child->Wait().ok());
}

TEST(ChildProcessTest, ChildThatIsNotWaitedForIsEnded) {
  const auto child = ChildProcess::StartShell("exec sleep 1000");
  ASSERT_TRUE(child.ok());
}

}  // namespace
}  // namespace tamis
