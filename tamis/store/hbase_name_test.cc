#include "tamis/store/hbase_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tamis {
namespace {

using testing::HasSubstr;

TEST(HBaseNameTest, APlaceAlone) {
  const auto short_name = ParseHBaseName("hbase://a:1,b:2");
  ASSERT_TRUE(short_name.ok()) << short_name.status();
  EXPECT_EQ(short_name->addresses, "a:1,b:2");
  EXPECT_EQ(short_name->name_space, "default");
  EXPECT_FALSE(short_name->tls);
  const auto name = ParseHBaseName("hbase://a:1/shop?tls=false");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->name_space, "shop");
  EXPECT_FALSE(name->tls);
}

TEST(HBaseNameTest, OptionsOfTls) {
  const auto name = ParseHBaseName(
      "hbase://a:1/shop?tls=true&ca=/etc/a%26b/ca.pem&cert=me.pem&key=k%25.pem&verify-host=false");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->addresses, "a:1");
  EXPECT_EQ(name->name_space, "shop");
  const hbase::TlsOptions expected{.ca_file = "/etc/a&b/ca.pem",
                                   .certificate_file = "me.pem",
                                   .key_file = "k%.pem",
                                   .verify_host = false};
  EXPECT_EQ(name->tls, expected);
  const auto machine = ParseHBaseName("hbase://a:1?tls=true");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->tls, hbase::TlsOptions());
}

TEST(HBaseNameTest, UnreadablePartIsNamed) {
  const auto why = [](const std::string& options) {
    const auto name = ParseHBaseName("hbase://a:1/shop?" + options);
    EXPECT_EQ(name.status().code(), StatusCode::kInvalidArgument) << options;
    return name.status().message();
  };
  EXPECT_THAT(why("tls=maybe"), HasSubstr("tls is true or false"));
  EXPECT_THAT(why("tsl=true"),
              HasSubstr("no option \"tsl\", only tls, ca, cert, key and verify-host"));
  EXPECT_THAT(why("ca=ca.pem"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("tls=false&verify-host=false"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("verify-host=true"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("tls=true&verify-host=true&ca=ca.pem&verify-host=false"),
              HasSubstr("option \"verify-host\" is there twice"));
  EXPECT_THAT(why("tls=true&tls=false"), HasSubstr("option \"tls\" is there twice"));
  EXPECT_THAT(why("tls=true&ca=a.pem&ca=a.pem"), HasSubstr("option \"ca\" is there twice"));
  for (const char* value : {"", "=", "=%", "=%4", "=%4x", "=a%-1"}) {
    EXPECT_THAT(why("tls=true&ca" + std::string(value)), HasSubstr("has no good value"));
  }
}

}  // namespace
}  // namespace tamis
