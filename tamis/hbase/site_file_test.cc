#include "tamis/hbase/site_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tamis::hbase {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Settings = std::map<std::string, std::string>;

std::string Xml(const Settings& settings) {
  std::string xml = "<?xml version=\"1.0\"?>\n<!-- of an administrator -->\n<configuration>\n";
  for (const auto& [name, value] : settings) {
    xml += "  <property>\n    <name>" + name + "</name>\n    <value>" + value +
           "</value>\n    <final>true</final>\n  </property>\n";
  }
  return xml + "</configuration>\n";
}

Result<ClientOptions> Complete(const Settings& settings, ClientOptions options = {}) {
  const auto site = SiteFile::Parse(Xml(settings), "hbase-site.xml");
  EXPECT_TRUE(site.ok()) << site.status();
  return site->Complete(std::move(options));
}

// The error for settings that are added to those of a plain cluster.
std::string Fault(Settings settings) {
  settings.emplace("hbase.zookeeper.quorum", "zk");
  const auto options = Complete(settings);
  EXPECT_EQ(options.status().code(), StatusCode::kInvalidArgument);
  return options.status().message();
}

TEST(SiteFileTest, QuorumGetsPortAndParent) {
  const auto short_file = Complete({{"hbase.zookeeper.quorum", " zk1, zk2:7 ,zk3"}});
  ASSERT_TRUE(short_file.ok()) << short_file.status();
  EXPECT_EQ(short_file->zookeeper,
            (ZooKeeperOptions{.quorum = "zk1:2181,zk2:7,zk3:2181", .parent = "/hbase"}));
  EXPECT_FALSE(short_file->kerberos);
  EXPECT_FALSE(short_file->tls);
  const auto file = Complete({{"hbase.zookeeper.quorum", "zk"},
                              {"hbase.zookeeper.property.clientPort", "2182"},
                              {"zookeeper.znode.parent", "/hbase-secure"},
                              {"hbase.regionserver.handler.count", "30"},
                              {"hbase.client.operation.timeout", "5000"},
                              {"hbase.ipc.client.socket.timeout.connect", "3000"},
                              {"hbase.rpc.timeout", "4000"}});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->zookeeper, (ZooKeeperOptions{.quorum = "zk:2182", .parent = "/hbase-secure"}));
  EXPECT_EQ(file->operation_timeout, std::chrono::seconds(5));
  EXPECT_EQ(file->call_timeout, std::chrono::seconds(4));
  EXPECT_EQ(file->connect_timeout, std::chrono::seconds(3));
}

TEST(SiteFileTest, QuorumOfClientsGoesBeforeThatOfServers) {
  const auto file = Complete({{"hbase.zookeeper.quorum", "zk"},
                              {"hbase.zookeeper.property.clientPort", "2182"},
                              {"hbase.client.zookeeper.quorum", "clients1,clients2"}});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->zookeeper->quorum, "clients1:2182,clients2:2182");
  const auto ported = Complete({{"hbase.client.zookeeper.quorum", "clients"},
                                {"hbase.zookeeper.property.clientPort", "2182"},
                                {"hbase.client.zookeeper.property.clientPort", "2183"}});
  ASSERT_TRUE(ported.ok()) << ported.status();
  EXPECT_EQ(ported->zookeeper->quorum, "clients:2183");
}

TEST(SiteFileTest, RegistryOfServersNeedsNoZooKeeper) {
  const std::string package = "org.apache.hadoop.hbase.client.";
  const auto rpc = Complete({{"hbase.client.registry.impl", package + "RpcConnectionRegistry"},
                             {"hbase.zookeeper.quorum", "zk"},
                             {"hbase.client.bootstrap.servers", "rs1:16020,rs2:16020"}});
  ASSERT_TRUE(rpc.ok()) << rpc.status();
  EXPECT_EQ(rpc->addresses, "rs1:16020,rs2:16020");
  EXPECT_FALSE(rpc->zookeeper);
  const auto masters = Complete(
      {{"hbase.client.registry.impl", package + "MasterRegistry"}, {"hbase.masters", "m1,m2:7"}});
  ASSERT_TRUE(masters.ok()) << masters.status();
  EXPECT_EQ(masters->addresses, "m1:16000,m2:7");
  EXPECT_THAT(Complete({}).status().message(), HasSubstr("sets neither hbase.zookeeper.quorum"));
  EXPECT_THAT(Fault({{"hbase.client.registry.impl", "com.example.Registry"}}),
              AllOf(HasSubstr("cannot honor hbase.client.registry.impl in \"hbase-site.xml\""),
                    HasSubstr("no registry \"com.example.Registry\"")));
}

TEST(SiteFileTest, KerberosIsReadWithItsProtections) {
  const auto file = Complete({{"hbase.zookeeper.quorum", "zk"},
                              {"hbase.security.authentication", "KERBEROS"},
                              {"realm", "EXAMPLE.COM"},
                              {"hbase.master.kerberos.principal", "hmaster/_HOST@${realm}"},
                              {"hbase.regionserver.kerberos.principal", "hbase/_HOST@${realm}"},
                              {"hbase.rpc.protection", "privacy, authentication"},
                              {"hbase.unsafe.client.kerberos.hostname.disable.reversedns", "true"},
                              {"hbase.client.keytab.file", "/etc/me.keytab"},
                              {"hbase.client.keytab.principal", "me@EXAMPLE.COM"},
                              {"hbase.ipc.client.fallback-to-simple-auth-allowed", "true"}});
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->kerberos);
  EXPECT_EQ(file->kerberos->region_server_principal, "hbase/_HOST@EXAMPLE.COM");
  EXPECT_EQ(file->kerberos->master_principal, "hmaster/_HOST@EXAMPLE.COM");
  EXPECT_THAT(file->kerberos->protections,
              ElementsAre(Protection::kPrivacy, Protection::kAuthentication));
  EXPECT_EQ(file->kerberos->keytab_file, "/etc/me.keytab");
  EXPECT_EQ(file->kerberos->principal, "me@EXAMPLE.COM");
  EXPECT_FALSE(file->kerberos->reverse_dns);
  // The file alone does not switch security off.
  EXPECT_FALSE(file->kerberos->fallback_to_simple);
}

TEST(SiteFileTest, OptionsThatAreGivenAreKept) {
  const Settings settings = {{"hbase.zookeeper.quorum", "zk"},
                             {"hbase.client.netty.tls.enabled", "true"},
                             {"hbase.rpc.tls.truststore.location", "/etc/trust.jks"},
                             {"hbase.security.authentication", "kerberos"},
                             {"hbase.regionserver.kerberos.principal", "hbase/_HOST@A"},
                             {"hbase.rpc.protection", "privacy"},
                             {"hbase.client.keytab.file", "/etc/me.keytab"}};
  ClientOptions given{.addresses = "rs1:16020", .tls = TlsOptions{.ca_file = "ca.pem"}};
  given.kerberos =
      KerberosOptions{.protections = {Protection::kIntegrity}, .keytab_file = "my.keytab"};
  const auto file = Complete(settings, given);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->addresses, "rs1:16020");
  EXPECT_FALSE(file->zookeeper);
  EXPECT_EQ(file->tls->ca_file, "ca.pem");
  EXPECT_EQ(file->kerberos->region_server_principal, "hbase/_HOST@A");
  EXPECT_THAT(file->kerberos->protections, ElementsAre(Protection::kIntegrity));
  EXPECT_EQ(file->kerberos->keytab_file, "my.keytab");
}

TEST(SiteFileTest, TlsTakesPemFilesOnly) {
  const auto file = Complete({{"hbase.zookeeper.quorum", "zk"},
                              {"hbase.client.netty.tls.enabled", "true"},
                              {"hbase.client.netty.tls.verify.server.hostname", "false"},
                              {"hbase.rpc.tls.truststore.location", "/etc/ca.pem"},
                              {"hbase.rpc.tls.keystore.location", "/etc/me"},
                              {"hbase.rpc.tls.keystore.type", "PEM"}});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->tls, (TlsOptions{.ca_file = "/etc/ca.pem",
                                   .certificate_file = "/etc/me",
                                   .key_file = "",
                                   .verify_host = false}));
  EXPECT_THAT(Fault({{"hbase.client.netty.tls.enabled", "true"},
                     {"hbase.rpc.tls.truststore.location", "/etc/trust.jks"}}),
              AllOf(HasSubstr("hbase.rpc.tls.truststore.location"), HasSubstr("the option ca")));
}

TEST(SiteFileTest, SettingThatCannotBeHonoredIsNamed) {
  EXPECT_THAT(Fault({{"hbase.security.authentication", "token"}}),
              HasSubstr("cannot honor hbase.security.authentication"));
  EXPECT_THAT(Fault({{"hbase.security.authentication", "kerberos"},
                     {"hbase.client.sasl.provider.class", "com.example.Login"}}),
              HasSubstr("cannot honor hbase.client.sasl.provider.class"));
  for (const char* check : {"hbase.rpc.tls.ocsp", "hbase.rpc.tls.clr"}) {
    EXPECT_THAT(Fault({{"hbase.client.netty.tls.enabled", "true"}, {check, "true"}}),
                HasSubstr(std::string("cannot honor ") + check));
  }
  for (const char* secure :
       {"hbase.zookeeper.property.client.secure", "hbase.zookeeper.client.secure"}) {
    EXPECT_THAT(Fault({{secure, "true"}}), HasSubstr(std::string("cannot honor ") + secure));
  }
  EXPECT_THAT(Fault({{"hbase.security.authentication", "kerberos"}}),
              HasSubstr("cannot honor hbase.regionserver.kerberos.principal"));
  EXPECT_THAT(Fault({{"hbase.security.authentication", "kerberos"},
                     {"hbase.regionserver.kerberos.principal", "a/b@C"},
                     {"hbase.rpc.protection", "secrecy"}}),
              AllOf(HasSubstr("hbase.rpc.protection"), HasSubstr("no protection \"secrecy\"")));
  EXPECT_THAT(Fault({{"hbase.rpc.timeout", "soon"}}), HasSubstr("cannot honor hbase.rpc.timeout"));
  EXPECT_THAT(Fault({{"hbase.zookeeper.property.client.secure", "true"}}),
              HasSubstr("Tamis connects to ZooKeeper without TLS only"));
  EXPECT_THAT(Fault({{"zookeeper.znode.parent", "${parent}"}}),
              HasSubstr("refers to ${parent}, which the file does not set"));
  EXPECT_THAT(Fault({{"zookeeper.znode.parent", "${zookeeper.znode.parent}"}}),
              HasSubstr("refers to itself"));
  EXPECT_THAT(Fault({{"hbase.client.netty.tls.enabled", "maybe"}}),
              HasSubstr("neither true nor false"));
}

TEST(SiteFileTest, DamagedFileIsNamed) {
  const auto fault = [](std::string_view xml) {
    return SiteFile::Parse(xml, "site.xml").status().message();
  };
  EXPECT_THAT(fault("<configuration><property>"), HasSubstr("\"site.xml\""));
  EXPECT_THAT(fault(""), HasSubstr("\"site.xml\""));
  EXPECT_THAT(fault("<html/>"), HasSubstr("no <configuration>"));
  EXPECT_THAT(fault("<configuration><xi:include href='more.xml'/></configuration>"),
              HasSubstr("includes \"more.xml\""));
  EXPECT_THAT(SiteFile::Read("/none/of/these.xml").status().message(),
              AllOf(HasSubstr("/none/of/these.xml"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace tamis::hbase
