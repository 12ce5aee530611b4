#include "tamis/hbase/region.h"

#include <gtest/gtest.h>

#include "tamis/base/coding.h"
#include "tamis/hbase/printable.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

constexpr const char* kKey = "t,k,17.0123456789abcdef0123456789abcdef.";

class MetaRowTest : public testing::Test {
 protected:
  MetaRowTest() {
    ToProto("t", info_.mutable_table_name());
    info_.set_region_id(17);
    info_.set_start_key("k");
    info_.set_end_key("p");
  }

  Result<std::optional<MetaRow>> Parse(const std::string& key = kKey) {
    auto block = std::make_shared<std::string>();
    const auto add = [&](std::string_view qualifier, std::string_view value) {
      AppendCell(key, {.family = "info", .qualifier = qualifier, .value = value}, block.get());
      ++count_;
    };
    count_ = 0;
    add("regioninfo", magic_ + info_.SerializeAsString());
    std::string number;
    PutBig64(&number, 99);
    if (!server_.empty()) add("server", server_);
    add("serverstartcode", number);
    add("seqnumDuringOpen", number);
    if (!state_.empty()) add("state", state_);
    std::string_view cells = *block;
    auto row = TakeRow(count_, &cells, block);
    return ParseMetaRow(*row);
  }

  pb::RegionInfo info_;
  std::string magic_ = "PBUF";
  std::string server_ = "host.domain:16020";
  std::string state_ = "OPEN";
  size_t count_ = 0;
};

TEST_F(MetaRowTest, ParsesARegion) {
  const auto row = Parse();
  ASSERT_TRUE(row.ok() && *row) << row.status();
  const Region& region = (*row)->region;
  EXPECT_TRUE((*row)->open);
  EXPECT_EQ(region.table, "t");
  EXPECT_EQ(region.encoded, "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(region.server.ToString(), "host.domain,16020,99");
  EXPECT_EQ(region.open_sequence, 99);
  EXPECT_TRUE(region.Holds("k"));
  EXPECT_TRUE(region.Holds("oz"));
  EXPECT_FALSE(region.Holds("p"));
  EXPECT_FALSE(region.Holds("j"));
}

TEST_F(MetaRowTest, SkipsSplitParentsAndReplicas) {
  info_.set_split(true);
  EXPECT_FALSE(*Parse());
  info_.set_split(false);
  info_.set_offline(true);
  EXPECT_FALSE(*Parse());
  info_.set_offline(false);
  info_.set_replica_id(1);
  EXPECT_FALSE(*Parse());
}

TEST_F(MetaRowTest, RegionThatIsNotOpenHasNoServer) {
  state_ = "OPENING";
  EXPECT_FALSE((**Parse()).open);
  state_ = "OPEN";
  server_ = "";
  EXPECT_FALSE((**Parse()).open);
}

TEST_F(MetaRowTest, DamagedRowsAreDataLoss) {
  EXPECT_EQ(Parse("t,k,17").status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(Parse("t.").status().code(), StatusCode::kDataLoss);
  server_ = "host:notaport";
  EXPECT_EQ(Parse().status().code(), StatusCode::kDataLoss);
  server_ = "host:1";
  magic_ = "JSON";
  EXPECT_EQ(Parse().status().code(), StatusCode::kDataLoss);
}

TEST(RegionTest, TableNamesSurviveARoundTrip) {
  for (const char* name : {"t", "space:t"}) {
    pb::TableName proto;
    ToProto(name, &proto);
    EXPECT_EQ(FromProto(proto), name);
  }
  EXPECT_EQ(NormalTableName("default:t"), "t");
  pb::TableName proto;
  ToProto("t", &proto);
  EXPECT_EQ(proto.namespace_(), "default");
}

TEST(PrintableTest, EscapesAndTruncatesAnyBytes) {
  EXPECT_EQ(Printable("a b"), "\"a b\"");
  EXPECT_EQ(Printable(std::string("\0\xff\"\\", 4)), "\"\\x00\\xFF\\x22\\x5C\"");
  EXPECT_LE(Printable(std::string(1 << 20, 'x')).size(), 210u);
}

}  // namespace
}  // namespace tamis::hbase
