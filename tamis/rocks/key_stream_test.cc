#include "tamis/rocks/key_stream.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>

#include <set>

#include "tamis/base/random.h"
#include "tamis/rocks/store.h"

namespace tamis {
namespace {

// Entries of one index: a value of one letter, then the row key.
class KeyStreamTest : public ::testing::Test {
 protected:
  KeyStreamTest() {
    auto store = Store::Open({.directory = "/store", .env = env_.get()});
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = std::move(*store);
  }

  void Put(uint32_t index_id, const std::string& value, const std::string& key) {
    rocksdb::WriteBatch batch;
    batch.Put(store_->index(), IndexPrefix(1, index_id) + value + key, "");
    ASSERT_TRUE(store_->Write(&batch).ok());
  }

  KeyStream Stream(const std::string& values) {
    pb::IndexStream stream;
    stream.set_index_id(1);
    for (const char value : values) stream.add_ranges()->set_low(std::string(1, value));
    return KeyStream(*store_, rocksdb::ReadOptions(), IndexPrefix(1, 1), stream, {}, &counters_);
  }

  std::unique_ptr<rocksdb::Env> env_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::unique_ptr<Store> store_;
  ReadCounters counters_;
};

TEST_F(KeyStreamTest, KeysOfOneValueInOrder) {
  for (const char* key : {"1", "3", "5"}) Put(1, "b", key);
  Put(1, "a", "9");  // values beside it
  Put(1, "c", "0");
  Put(0, "b", "2");  // indexes beside it
  Put(2, "b", "2");
  KeyStream stream = Stream("b");
  EXPECT_EQ(stream.Seek(""), "1");
  EXPECT_EQ(stream.Seek("1"), "1");  // a key once shown is shown again
  EXPECT_EQ(stream.Seek("2"), "3");
  EXPECT_EQ(stream.Seek("5"), "5");
  EXPECT_EQ(stream.Seek("6"), std::nullopt);
  EXPECT_EQ(stream.Seek("7"), std::nullopt);
  EXPECT_TRUE(stream.status().ok());
}

TEST_F(KeyStreamTest, AValueWithoutEntriesEndsAtOnce) {
  Put(1, "b", "1");
  EXPECT_EQ(Stream("a").Seek(""), std::nullopt);
  EXPECT_EQ(Stream("c").Seek(""), std::nullopt);
  EXPECT_EQ(Stream("").Seek(""), std::nullopt);
}

TEST_F(KeyStreamTest, TheNextEntryCostsNoSeek) {
  for (const char* key : {"1", "2", "3", "4"}) Put(1, "a", key);
  KeyStream stream = Stream("a");
  EXPECT_EQ(stream.Seek("1"), "1");
  EXPECT_EQ(stream.Seek("2"), "2");
  EXPECT_EQ(stream.Seek("3"), "3");
  EXPECT_EQ(counters_.index_seeks, 1u);
  EXPECT_EQ(counters_.entries_read, 3u);
}

TEST_F(KeyStreamTest, RandomTargetsAgreeWithASet) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const uint32_t index_id = 1;
    std::set<std::string> keys;
    const std::string values = random.OneIn(2) ? "ac" : "b";
    rocksdb::WriteBatch batch;
    batch.DeleteRange(store_->index(), IndexPrefix(1, 1), IndexPrefix(1, 2));
    for (int i = 0; i < 40; ++i) {
      const std::string key = std::to_string(100 + random.Uniform(200));
      const std::string value(1, static_cast<char>('a' + random.Uniform(3)));
      batch.Put(store_->index(), IndexPrefix(1, index_id) + value + key, "");
      if (values.find(value) != std::string::npos) keys.insert(key);
    }
    ASSERT_TRUE(store_->Write(&batch).ok());
    KeyStream stream = Stream(values);
    std::string target;
    while (true) {
      const auto expected = keys.lower_bound(target);
      const auto found = stream.Seek(target);
      ASSERT_EQ(found.has_value(), expected != keys.end());
      if (!found.has_value()) break;
      ASSERT_EQ(*found, *expected);
      target = random.OneIn(2) ? *found + '\0' : std::to_string(std::stoi(*found) + 7);
    }
  }
}

}  // namespace
}  // namespace tamis
