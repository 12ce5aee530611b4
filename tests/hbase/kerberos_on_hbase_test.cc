// A real HBase that accepts only users with a Kerberos ticket, with a real KDC: the client and the
// program work under every protection, and users that are refused get the reason.
//
// The servers offer all protections, and TLS besides plain connections. The master runs under a
// principal of its own. Rights are checked, and our coprocessor is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <krb5.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/kerberos_login.h"
#include "tamis/hbase/site_file.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"

namespace tamis {
namespace {

using hbase::ClientOptions;
using hbase::Protection;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kRealm = "@TAMIS.TEST";

std::string Kdc(const std::string& file) { return LocalHBase::Directory() + "/kdc/" + file; }
std::string Site() { return LocalHBase::Directory() + "/client/hbase-site.xml"; }

std::string TextOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// The options of a user with the file that the administrator gives out; plain connections.
ClientOptions Options() {
  const auto site = hbase::SiteFile::Read(Site());
  EXPECT_TRUE(site.ok()) << site.status();
  auto options = site->Complete({});
  EXPECT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->zookeeper && options->kerberos && options->tls);
  options->tls.reset();
  options->operation_timeout = std::chrono::seconds(20);
  return *std::move(options);
}

// A ticket cache with the tickets of ada, all of which ended an hour ago.
std::string ExpiredCache() {
  const std::string file = "FILE:" + Kdc("expired");
  krb5_context context = nullptr;
  krb5_ccache from = nullptr;
  krb5_ccache to = nullptr;
  krb5_principal user = nullptr;
  krb5_cc_cursor cursor = nullptr;
  krb5_creds tickets;
  const bool open = krb5_init_context(&context) == 0 && krb5_cc_default(context, &from) == 0 &&
                    krb5_cc_resolve(context, file.c_str(), &to) == 0 &&
                    krb5_cc_get_principal(context, from, &user) == 0 &&
                    krb5_cc_initialize(context, to, user) == 0 &&
                    krb5_cc_start_seq_get(context, from, &cursor) == 0;
  EXPECT_TRUE(open);
  if (!open) return file;
  while (krb5_cc_next_cred(context, from, &cursor, &tickets) == 0) {
    tickets.times.endtime = static_cast<krb5_timestamp>(std::time(nullptr) - 3600);
    EXPECT_EQ(krb5_cc_store_cred(context, to, &tickets), 0);
    krb5_free_cred_contents(context, &tickets);
  }
  krb5_cc_end_seq_get(context, from, &cursor);
  krb5_free_principal(context, user);
  krb5_cc_close(context, from);
  krb5_cc_close(context, to);
  krb5_free_context(context);
  return file;
}

class KerberosOnHBaseTest : public testing::Test {
 protected:
  KerberosOnHBaseTest() { LocalHBase::Get(); }

  static std::unique_ptr<hbase::Client> Open(const ClientOptions& options) {
    auto client = hbase::Client::Open(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }
  // The error of a client with these options.
  static Status Refusal(const ClientOptions& options) { return Open(options)->Tables().status(); }
};

void ReadsAndWrites(hbase::Client& client) {
  ASSERT_EQ(client.CreateTable({.name = "t", .families = {{.name = "f"}}}, {"m"}), Status());
  const auto regions = client.Regions("t");
  ASSERT_TRUE(regions.ok()) << regions.status();
  ASSERT_EQ(regions->size(), 2u);
  // One value is larger than any wrapped piece, in both directions.
  const std::string large(4 << 20, 'v');
  for (const std::string& value : {std::string("small"), large}) {
    for (const std::string row : {"a", "z"}) {
      const auto put = client.Mutate("t", hbase::Mutation::Put(row).Set("f", "q", value));
      ASSERT_TRUE(put.ok()) << put.status();
      const auto got = client.Get("t", {.row = row});
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(got->Find("f", "q") == value);
    }
  }
  // The region servers' AdminService.
  EXPECT_EQ(client.FlushRegion(*regions->front()), Status());
  ASSERT_EQ(client.DisableTable("t"), Status());
  ASSERT_EQ(client.DeleteTable("t"), Status());
}

TEST_F(KerberosOnHBaseTest, EveryProtectionReachesMasterAndRegionServers) {
  for (const auto protection :
       {Protection::kAuthentication, Protection::kIntegrity, Protection::kPrivacy}) {
    SCOPED_TRACE(static_cast<int>(protection));
    ClientOptions options = Options();
    options.kerberos->protections = {protection};
    ReadsAndWrites(*Open(options));
  }
}

TEST_F(KerberosOnHBaseTest, MastersAndRegionServersAreTheRegistryUnderEveryProtection) {
  for (const auto protection :
       {Protection::kAuthentication, Protection::kIntegrity, Protection::kPrivacy}) {
    SCOPED_TRACE(static_cast<int>(protection));
    std::istringstream addresses(LocalHBase::Get().addresses());
    for (std::string address; std::getline(addresses, address, ',');) {
      ClientOptions options = Options();
      options.kerberos->protections = {protection};
      options.zookeeper.reset();
      options.addresses = address;
      const auto tables = Open(options)->Tables();
      EXPECT_TRUE(tables.ok()) << address << ": " << tables.status();
    }
  }
}

TEST_F(KerberosOnHBaseTest, KerberosWorksInsideOfTls) {
  const auto site = hbase::SiteFile::Read(Site());
  ASSERT_TRUE(site.ok()) << site.status();
  const auto options = site->Complete({});
  ASSERT_TRUE(options.ok() && options->tls) << options.status();
  ReadsAndWrites(*Open(*options));
}

TEST_F(KerberosOnHBaseTest, KeytabNeedsNoTicketCache) {
  setenv("KRB5CCNAME", "FILE:/none/of/these", 1);
  ClientOptions options = Options();
  options.kerberos->keytab_file = Kdc("ada.keytab");
  const auto tables = Open(options)->Tables();
  EXPECT_TRUE(tables.ok()) << tables.status();
  options.kerberos->principal = "ada" + std::string(kRealm);
  EXPECT_TRUE(Open(options)->Tables().ok());

  options.kerberos->principal = "kim" + std::string(kRealm);
  EXPECT_THAT(
      Refusal(options).message(),
      AllOf(HasSubstr("ada.keytab\" cannot be used for kim@TAMIS.TEST"), HasSubstr("klist -k")));
  setenv("KRB5CCNAME", ("FILE:" + Kdc("ccache")).c_str(), 1);
}

// The fields of a protobuf message, all of which are bytes.
std::map<uint64_t, std::string> FieldsOf(std::string_view message) {
  std::map<uint64_t, std::string> fields;
  Reader reader(message);
  while (reader.ok() && !reader.rest().empty()) {
    const uint64_t number = reader.Varint() >> 3;
    fields[number] = reader.Bytes(reader.Varint());
  }
  return fields;
}

TEST_F(KerberosOnHBaseTest, DelegationTokenIsEnoughUnderEveryProtection) {
  const auto answer = Open(Options())->Exec(
      "hbase:meta", "",
      {.service = "AuthenticationService", .method = "GetAuthenticationToken", .request = ""});
  ASSERT_TRUE(answer.ok()) << answer.status();
  auto token = FieldsOf(FieldsOf(*answer)[1]);
  ASSERT_FALSE(token[1].empty() || token[2].empty());
  std::string file("HDTS\0\1\0", 7);  // one token, without an alias
  for (const std::string& part : {token[1], token[2], std::string("HBASE_AUTH_TOKEN"), token[3]}) {
    ASSERT_LT(part.size(), 112u);  // sizes of one byte
    file += static_cast<char>(part.size()) + part;
  }
  std::ofstream(Kdc("token"), std::ios::binary) << file << '\0';

  ClientOptions options = Options();
  options.kerberos->ticket_cache = "FILE:" + Kdc("none");
  options.kerberos->token_file = Kdc("token");
  for (const auto protection :
       {Protection::kAuthentication, Protection::kIntegrity, Protection::kPrivacy}) {
    SCOPED_TRACE(static_cast<int>(protection));
    options.kerberos->protections = {protection};
    ReadsAndWrites(*Open(options));
  }
}

// The KDC's log tells of each ticket-granting ticket.
TEST_F(KerberosOnHBaseTest, KeytabRenewsItsTicketBeforeItExpires) {
  LocalHBase::Get().Run("kadmin addprinc -randkey -maxlife 4seconds brief");
  const std::string keytab = Kdc("brief.keytab");
  LocalHBase::Get().Run("kadmin ktadd -norandkey -k " + keytab + " brief");
  hbase::KerberosOptions kerberos = *Options().kerberos;
  kerberos.keytab_file = keytab;
  const auto login = hbase::KerberosLogin::Create(kerberos);
  ASSERT_TRUE(login.ok()) << login.status();
  const auto logins = [&] {
    const std::string log = TextOf(Kdc("kdc.log"));
    int count = 0;
    for (size_t at = 0; (at = log.find("AS_REQ", at)) != std::string::npos; ++at) {
      const std::string line = log.substr(at, log.find('\n', at) - at);
      count += line.find("ISSUE") != std::string::npos &&
               line.find("brief@TAMIS.TEST for krbtgt") != std::string::npos;
    }
    return count;
  };
  while (logins() < 3) {
    std::promise<Status> begun;
    (*login)->Begin(
        {"localhost", 1}, kerberos.region_server_principal, [] { return true; },
        [&](const auto& start) { begun.set_value(start.status()); });
    ASSERT_EQ(begun.get_future().get(), Status());
  }
}

TEST_F(KerberosOnHBaseTest, RefusedUsersGetTheReason) {
  ClientOptions options = Options();
  options.kerberos->ticket_cache = "FILE:" + Kdc("none");
  Status why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), HasSubstr("there is no Kerberos ticket: run kinit"));

  options.kerberos->ticket_cache = ExpiredCache();
  why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), HasSubstr("the Kerberos ticket has expired: run kinit again"));

  options = Options();
  options.kerberos.reset();
  why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), HasSubstr("the server requires Kerberos: run kinit"));
}

TEST_F(KerberosOnHBaseTest, WrongPrincipalOfTheServersIsNamed) {
  ClientOptions options = Options();
  const auto refusal = [&](const std::string& principal) {
    options.kerberos->region_server_principal = principal;
    options.kerberos->master_principal = principal;
    const Status why = Refusal(options);
    EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition) << why;
    return why.message();
  };
  EXPECT_THAT(refusal("hive/_HOST@TAMIS.TEST"),
              HasSubstr("the KDC does not know hive/localhost@TAMIS.TEST: look at "
                        "hbase.regionserver.kerberos.principal"));
  EXPECT_THAT(refusal("hbase/_HOST@OTHER.TEST"), HasSubstr("OTHER.TEST"));
  LocalHBase::Get().Run("kadmin addprinc -randkey impala/localhost");
  EXPECT_THAT(refusal("impala/_HOST@TAMIS.TEST"),
              AllOf(HasSubstr("refuses the login to impala/_HOST@TAMIS.TEST"),
                    HasSubstr("GSS initiate failed"), HasSubstr("its log says why")));
}

TEST_F(KerberosOnHBaseTest, UnreachableKdcIsNamed) {
  std::string text = TextOf(Kdc("krb5.conf"));
  const size_t port = text.find("127.0.0.1:");
  ASSERT_NE(port, std::string::npos);
  text.replace(port, text.find('\n', port) - port, "127.0.0.1:1");
  std::ofstream(Kdc("unreachable.conf")) << text;
  setenv("KRB5_CONFIG", Kdc("unreachable.conf").c_str(), 1);
  ClientOptions options = Options();
  options.operation_timeout = std::chrono::seconds(1);
  options.kerberos->keytab_file = Kdc("ada.keytab");
  EXPECT_THAT(Refusal(options).message(), HasSubstr("no KDC answers"));
  setenv("KRB5_CONFIG", Kdc("krb5.conf").c_str(), 1);
}

TEST_F(KerberosOnHBaseTest, ProgramNeedsOnlyATicketAndTheSite) {
  const Program program(TAMIS_PROGRAM, "hbase:///secured?site=" + Site());
  program.Do({"table", "create", "orders", "--column", "id:int64", "--column", "customer:text",
              "--key", "id", "--index", "customer"});
  program.Do({"sql", "INSERT INTO orders VALUES (1, 'kim'), (2, 'lee'), (3, 'kim')"});
  EXPECT_EQ(program.Do({"sql", "--format", "csv",
                        "SELECT id FROM orders WHERE customer = 'kim' ORDER BY id"}),
            "id\n1\n3\n");
  program.Do({"check", "orders"});
  program.Do({"doctor"});

  const Program other(TAMIS_PROGRAM, "hbase:///secured?site=" + Site() + "&user=other@TAMIS.TEST" +
                                         "&keytab=" + Kdc("other.keytab"));
  EXPECT_THAT(other.Fail({"check", "orders"}),
              HasSubstr("Insufficient permissions (user=other@TAMIS.TEST"));

  setenv("HBASE_CONF_DIR", (LocalHBase::Directory() + "/client").c_str(), 1);
  const Program named(TAMIS_PROGRAM, "hbase:///secured");
  EXPECT_THAT(named.Do({"table", "list"}), HasSubstr("orders"));
  unsetenv("HBASE_CONF_DIR");
}

}  // namespace
}  // namespace tamis
