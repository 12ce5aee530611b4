#include "tamis/store/hbase_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace tamis {
namespace {

using testing::HasSubstr;

TEST(HBaseNameTest, AddressesAloneAreAName) {
  const auto short_name = ParseHBaseName("hbase://a:1,b:2");
  ASSERT_TRUE(short_name.ok()) << short_name.status();
  EXPECT_EQ(short_name->client.addresses, "a:1,b:2");
  EXPECT_EQ(short_name->name_space, "default");
  EXPECT_FALSE(short_name->client.tls);
  const auto name = ParseHBaseName("hbase://a:1/shop?tls=false");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->name_space, "shop");
  EXPECT_FALSE(name->client.tls);
}

TEST(HBaseNameTest, OptionsOfTls) {
  const auto name = ParseHBaseName(
      "hbase://a:1/shop?tls=true&ca=/etc/a%26b/ca.pem&cert=me.pem&key=k%25.pem&verify-host=false");
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(name->client.addresses, "a:1");
  EXPECT_EQ(name->name_space, "shop");
  const hbase::TlsOptions expected{.ca_file = "/etc/a&b/ca.pem",
                                   .certificate_file = "me.pem",
                                   .key_file = "k%.pem",
                                   .verify_host = false};
  EXPECT_EQ(name->client.tls, expected);
  const auto machine = ParseHBaseName("hbase://a:1?tls=true");
  ASSERT_TRUE(machine.ok()) << machine.status();
  EXPECT_EQ(machine->client.tls, hbase::TlsOptions());
}

TEST(HBaseNameTest, UnreadablePartIsNamed) {
  const auto why = [](const std::string& options) {
    const auto name = ParseHBaseName("hbase://a:1/shop?" + options);
    EXPECT_EQ(name.status().code(), StatusCode::kInvalidArgument) << options;
    return name.status().message();
  };
  EXPECT_THAT(why("tls=maybe"), HasSubstr("tls is true or false"));
  EXPECT_THAT(why("tsl=true"),
              HasSubstr("no option \"tsl\", only site, tls, ca, cert, key, verify-host"));
  EXPECT_THAT(why("ca=ca.pem"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("tls=false&verify-host=false"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("verify-host=true"), HasSubstr("of no use without tls=true"));
  EXPECT_THAT(why("tls=true&verify-host=true&ca=ca.pem&verify-host=false"),
              HasSubstr("option \"verify-host\" is given twice"));
  EXPECT_THAT(why("protection=privacy"), HasSubstr("of no use without server-principal, or site"));
  EXPECT_THAT(why("server-principal=a/b@C&protection=secrecy"), HasSubstr("\"secrecy\""));
  EXPECT_THAT(why("server-principal=a/b@C&fallback=always"), HasSubstr("fallback must be"));
  EXPECT_THAT(why("tls=true&tls=false"), HasSubstr("option \"tls\" is given twice"));
  EXPECT_THAT(why("tls=true&ca=a.pem&ca=a.pem"), HasSubstr("option \"ca\" is given twice"));
  for (const char* value : {"", "=", "=%", "=%4", "=%4x", "=a%-1"}) {
    EXPECT_THAT(why("tls=true&ca" + std::string(value)),
                HasSubstr("has no value or an invalid %-escape"));
  }
}

TEST(HBaseNameTest, OptionsOfKerberos) {
  const auto name = ParseHBaseName(
      "hbase://a:1/shop?server-principal=hbase/_HOST@A&master-principal=m/_HOST@A&"
      "protection=privacy,integrity&user=me@A&keytab=/me.keytab&fallback=simple");
  ASSERT_TRUE(name.ok()) << name.status();
  const hbase::KerberosOptions expected{
      .region_server_principal = "hbase/_HOST@A",
      .master_principal = "m/_HOST@A",
      .protections = {hbase::Protection::kPrivacy, hbase::Protection::kIntegrity},
      .keytab_file = "/me.keytab",
      .principal = "me@A",
      .ticket_cache = "",
      .reverse_dns = true,
      .fallback_to_simple = true};
  EXPECT_EQ(name->client.kerberos, expected);
}

TEST(HBaseNameTest, ZooKeeperHasAParentBeforeTheNamespace) {
  const auto parse = [](const std::string& rest) {
    const auto name = ParseHBaseName("hbase+zk://" + rest);
    EXPECT_TRUE(name.ok()) << name.status();
    return name->client.zookeeper->quorum + " " + name->client.zookeeper->parent + " " +
           name->name_space;
  };
  EXPECT_EQ(parse("zk1,zk2:2182"), "zk1:2181,zk2:2182 /hbase default");
  EXPECT_EQ(parse("zk1/secure"), "zk1:2181 /secure default");
  EXPECT_EQ(parse("zk1/secure/shop"), "zk1:2181 /secure shop");
  EXPECT_EQ(parse("zk1/a/b/shop"), "zk1:2181 /a/b shop");
  EXPECT_THAT(ParseHBaseName("hbase+zk://zk1/").status().message(), HasSubstr("no znode is named"));
}

TEST(HBaseNameTest, SiteCompletesTheName) {
  const std::string file = testing::TempDir() + "/hbase-site.xml";
  std::ofstream(file) << "<configuration><property><name>hbase.zookeeper.quorum</name>"
                         "<value>zk</value></property></configuration>";
  unsetenv("TAMIS_HBASE_SITE");
  unsetenv("HBASE_CONF_DIR");
  const auto quorum = [](const std::string& text) {
    const auto name = ParseHBaseName(text);
    EXPECT_TRUE(name.ok()) << name.status();
    EXPECT_EQ(name->name_space, "shop");
    return name->client.zookeeper ? name->client.zookeeper->quorum : "";
  };
  EXPECT_EQ(quorum("hbase:///shop?site=" + file), "zk:2181");
  EXPECT_EQ(quorum("hbase://a:1/shop?site=" + file), "");
  EXPECT_THAT(ParseHBaseName("hbase:///shop").status().message(),
              HasSubstr("neither TAMIS_HBASE_SITE nor HBASE_CONF_DIR is set"));
  setenv("HBASE_CONF_DIR", testing::TempDir().c_str(), 1);
  EXPECT_EQ(quorum("hbase:///shop"), "zk:2181");
  setenv("TAMIS_HBASE_SITE", "/none/of/these.xml", 1);
  EXPECT_THAT(ParseHBaseName("hbase:///shop").status().message(), HasSubstr("/none/of/these.xml"));
  // A name with hosts does not depend on the environment.
  EXPECT_EQ(quorum("hbase://a:1/shop"), "");
  unsetenv("TAMIS_HBASE_SITE");
  unsetenv("HBASE_CONF_DIR");
}

}  // namespace
}  // namespace tamis
