#include "tamis/store/opened_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <thread>

namespace tamis {
namespace {

class OpenedStoreTest : public testing::Test {
 protected:
  OpenedStoreTest()
      : directory_(std::filesystem::path(testing::TempDir()) /
                   ("opened_store_test." + std::to_string(getpid()))) {
    std::filesystem::remove_all(directory_);
  }
  ~OpenedStoreTest() override { std::filesystem::remove_all(directory_); }

  const std::filesystem::path directory_;
};

TEST_F(OpenedStoreTest, ADirectoryIsAStoreWithItsKindOrWithout) {
  for (const std::string& kind : {std::string("rocks:"), std::string()}) {
    auto store = OpenedStore::Open(kind + directory_.string(), {.servers = 1});
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->name(), directory_.string());
    for (const Capability capability : {Capability::kPauseServer, Capability::kCompact}) {
      EXPECT_TRUE((*store)->admin().Can(capability));
    }
  }
}

TEST_F(OpenedStoreTest, UnknownKindOfStoreIsAnErrorThatListsTheKinds) {
  for (const char* name : {"gopher://host", "rock:x"}) {
    const auto store = OpenedStore::Open(name, {});
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(store.status().message().find("rocks:DIRECTORY"), std::string::npos)
        << store.status();
    EXPECT_FALSE(std::filesystem::exists(name));
  }
  for (const char* name :
       {"hbase:", "hbase://", "hbase://host", "hbase://host:1/", "hbase://a:1/b/c"}) {
    const auto store = OpenedStore::OpenShared(name, {});
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(store.status().message().find("write hbase://HOST:PORT,...[/NAMESPACE]"),
              std::string::npos)
        << store.status();
  }
  for (const char* name :
       {"http:", "http://", "http://user@host", "http://host/path", "http://host?token=secret",
        "https://host?timeout=soon", "http://host?ca="}) {
    const auto store = OpenedStore::OpenShared(name, {});
    ASSERT_FALSE(store.ok());
    EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
    EXPECT_NE(store.status().message().find("write http://HOST[:PORT]"), std::string::npos)
        << store.status();
  }
  EXPECT_FALSE(OpenedStore::Open("", {}).ok());
  EXPECT_FALSE(OpenedStore::Open("rocks:", {}).ok());
}

// Its directory is locked until it has ended, which a task that is under way delays.
TEST_F(OpenedStoreTest, OpeningASharedStoreThatIsEndingWaitsForItsEnd) {
  auto store = *OpenedStore::OpenShared(directory_.string(), {.servers = 1});
  const std::weak_ptr<OpenedStore> known = store;
  std::promise<void> running, go_on;
  store->engine().executor().Post([&] {
    running.set_value();
    go_on.get_future().wait();
  });
  running.get_future().wait();
  std::thread ends([last = std::move(store)]() mutable { last.reset(); });
  while (!known.expired()) std::this_thread::yield();
  auto next = std::async(std::launch::async, [&] {
    go_on.set_value();
    return OpenedStore::OpenShared(directory_.string(), {.servers = 1}).status();
  });
  EXPECT_EQ(next.get(), Status());
  ends.join();
}

TEST_F(OpenedStoreTest, ADirectoryWhoseNameLooksLikeAKindIsOpenedByItsPath) {
  std::filesystem::create_directories(directory_);
  const std::string name = (directory_ / "hbase:x").string();
  EXPECT_TRUE(OpenedStore::Open(name, {.servers = 1}).ok());
}

TEST_F(OpenedStoreTest, TheStoresOfAProcessAreShared) {
  auto one = OpenedStore::OpenShared(directory_.string(), {.servers = 1});
  ASSERT_TRUE(one.ok()) << one.status();
  auto same = OpenedStore::OpenShared(
      "rocks:" + (directory_ / ".." / directory_.filename()).string(), {.servers = 1});
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(one->get(), same->get());
  EXPECT_FALSE(OpenedStore::Open(directory_.string(), {.servers = 1}).ok());  // it is locked
}

}  // namespace
}  // namespace tamis
