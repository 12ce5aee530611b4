#include "tamis/base/answers.h"

#include <gtest/gtest.h>

#include "tamis/base/testing/sim_executor.h"
#include "tamis/base/thread_executor.h"

namespace tamis {
namespace {

using std::chrono::milliseconds;

TEST(AnswersTest, AnswersAreTakenAsTheyCome) {
  SimExecutor executor(1, milliseconds(0));
  Answers<int> answers(&executor);
  executor.PostAfter(milliseconds(30), [to = answers.To(0)] { to(10); });
  executor.PostAfter(milliseconds(10), [to = answers.To(1)] { to(11); });
  answers.To(2)(12);
  const Time begin = executor.Now();
  for (const auto& [question, value, at] : {std::tuple(2u, 12, milliseconds(0)),
                                            {1u, 11, milliseconds(10)},
                                            {0u, 10, milliseconds(30)}}) {
    auto answer = answers.Next({});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->question, question);
    EXPECT_EQ(answer->value, value);
    EXPECT_EQ(executor.Now() - begin, at);
  }
}

TEST(AnswersTest, TheWaitEndsAtItsDeadline) {
  SimExecutor executor(1, milliseconds(0));
  Answers<int> answers(&executor);
  executor.PostAfter(milliseconds(30), [to = answers.To(0)] { to(1); });
  const Wait wait{.deadline = executor.Now() + milliseconds(20)};
  EXPECT_FALSE(answers.Next(wait).has_value());
  EXPECT_EQ(executor.Now(), wait.deadline);
  // A late answer is delivered by the next wait.
  EXPECT_TRUE(answers.Next({}).has_value());
}

TEST(AnswersTest, TheWaitEndsWhenItIsCancelled) {
  SimExecutor executor(1, milliseconds(0));
  Answers<int> answers(&executor);
  std::atomic<bool> cancelled = false;
  executor.PostAfter(milliseconds(120), [&] { cancelled = true; });
  const Wait wait{.cancelled = &cancelled};
  const Time begin = executor.Now();
  EXPECT_FALSE(answers.Next(wait).has_value());
  EXPECT_LE(executor.Now() - begin, milliseconds(200));
  EXPECT_EQ(wait.Failure().code(), StatusCode::kCancelled);
}

TEST(AnswersTest, AnswerAfterTheEndIsDropped) {
  SimExecutor executor(1, milliseconds(0));
  std::function<void(int)> to;
  {
    Answers<int> answers(&executor);
    to = answers.To(0);
  }
  to(1);
}

TEST(AnswersTest, ManyThreadsAnswer) {
  ThreadExecutor executor(4);
  constexpr size_t kQuestions = 1000;
  Answers<size_t> answers(&executor);
  for (size_t i = 0; i < kQuestions; ++i) {
    executor.Post([to = answers.To(i), i] { to(2 * i); });
  }
  std::vector<int> seen(kQuestions);
  for (size_t i = 0; i < kQuestions; ++i) {
    auto answer = answers.Next({});
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->value, 2 * answer->question);
    EXPECT_EQ(seen[answer->question]++, 0);
  }
}

TEST(AnswersTest, AwaitGivesTheAnswerOrSaysWhyThereIsNone) {
  SimExecutor executor(1, milliseconds(0));
  const auto soon = [&] { return Wait{.deadline = executor.Now() + milliseconds(10)}; };
  const auto given = AwaitResult<int>(&executor, soon(), [&](auto done) {
    executor.PostAfter(milliseconds(5), [done] { done(7); });
  });
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(*given, 7);
  EXPECT_EQ(AwaitResult<int>(&executor, soon(), [](auto) {}).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(AwaitStatus(&executor, soon(), [](auto done) { done(NotFound("x")); }), NotFound("x"));
  EXPECT_EQ(AwaitStatus(&executor, soon(), [](auto) {}).code(), StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tamis
