#include "tamis/guard/change_feed.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace tamis {
namespace {

using Keys = std::vector<std::string>;

class Feed {
 public:
  explicit Feed(const std::string& text) {
    EXPECT_EQ(pipe(ends_), 0);
    Write(text);
  }
  ~Feed() {
    End();
    close(ends_[0]);
  }
  void Write(const std::string& text) {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void End() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  Result<std::optional<FeedChanges>> Next() { return feed().Next(); }

 private:
  ChangeFeed& feed() {
    if (!feed_) feed_.emplace(ends_[0], &cancelled_);
    return *feed_;
  }
  int ends_[2];
  std::atomic<bool> cancelled_ = false;
  std::optional<ChangeFeed> feed_;
};

TEST(ChangeFeedTest, WholeTransactionsThatAreThereComeTogether) {
  Feed feed("+a\n-b\n=1\n+c\\n\\\\\\r\n=2\n");
  const auto changes = feed.Next();
  ASSERT_TRUE(changes.ok() && *changes);
  EXPECT_EQ((*changes)->added, (Keys{"a", "c\n\\\r"}));
  EXPECT_EQ((*changes)->erased, (Keys{"b"}));
  EXPECT_EQ((*changes)->mark, "2");
  EXPECT_FALSE((*changes)->caught_up);
}

TEST(ChangeFeedTest, ChangesWithoutAMarkAreLeftOut) {
  for (const char* rest : {"+b\n", "+b\n-c\n=2", "-", "+b\n=2\n-d\n+e\n"}) {
    Feed feed(std::string("+a\n=1\n") + rest);
    feed.End();
    const auto changes = feed.Next();
    ASSERT_TRUE(changes.ok() && *changes) << rest;
    EXPECT_EQ((*changes)->added[0], "a");
    EXPECT_EQ((*changes)->erased, Keys());
    EXPECT_EQ((*changes)->mark == "2", (*changes)->added.size() == 2) << rest;
    const auto end = feed.Next();
    EXPECT_TRUE(end.ok() && !*end) << rest;
  }
}

TEST(ChangeFeedTest, CaughtUpEndsABatch) {
  Feed feed("+a\n=1\n!\n+b\n=2\n");
  const auto first = feed.Next();
  ASSERT_TRUE(first.ok() && *first);
  EXPECT_TRUE((*first)->caught_up);
  EXPECT_EQ((*first)->mark, "1");
  const auto second = feed.Next();
  ASSERT_TRUE(second.ok() && *second);
  EXPECT_FALSE((*second)->caught_up);
  EXPECT_EQ((*second)->added, (Keys{"b"}));
}

TEST(ChangeFeedTest, NothingToTellIsCaughtUpToo) {
  Feed feed("!\n");
  const auto changes = feed.Next();
  ASSERT_TRUE(changes.ok() && *changes);
  EXPECT_TRUE((*changes)->caught_up);
  EXPECT_EQ((*changes)->mark, "");
}

// Not the end of the feed: what comes after it would be missed.
TEST(ChangeFeedTest, ALineThatIsTooLongIsRefused) {
  std::FILE* const file = std::tmpfile();
  const std::string text = "+a\n=1\n+" + std::string(size_t{2} << 20, 'x') + "\n=2\n";
  ASSERT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  std::rewind(file);
  const std::atomic<bool> cancelled = false;
  ChangeFeed feed(fileno(file), &cancelled);
  auto changes = feed.Next();
  if (changes.ok()) changes = feed.Next();  // changes before the mark may come alone
  EXPECT_EQ(changes.status().code(), StatusCode::kDataLoss);
  std::fclose(file);
}

TEST(ChangeFeedTest, OtherLinesAreRefused) {
  for (const char* wrong : {"a\n", "\n", "=\n", "+a\\\n", "+a\\x\n", "+a\n!\n", "!a\n", " +a\n",
                            "=1\n+b\n!\n", "+a\r\n", "=1\r\n"}) {
    Feed feed(wrong);
    feed.End();
    EXPECT_EQ(feed.Next().status().code(), StatusCode::kInvalidArgument) << wrong;
  }
  Feed feed("=" + std::string(1025, 'x') + "\n");
  EXPECT_EQ(feed.Next().status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tamis
