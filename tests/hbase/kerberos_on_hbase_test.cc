// A real HBase that accepts only users with a Kerberos ticket, with a real KDC: the client and the
// program work under every protection, and users that are refused get the reason.
//
// The servers offer all protections, and TLS besides plain connections. The master runs under a
// principal of its own. Rights are checked, and our coprocessor is loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <krb5.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "tamis/hbase/client.h"
#include "tamis/hbase/kerberos_login.h"
#include "tamis/hbase/site_file.h"
#include "tamis/hbase/testing/gssapi_server.h"
#include "tamis/hbase/token_file.h"
#include "tests/hbase/kerberos_users.h"
#include "tests/hbase/local_hbase.h"
#include "tests/hbase/program.h"
#include "tests/hbase/wires.h"

namespace tamis {
namespace {

using hbase::ClientOptions;
using hbase::Protection;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view kRealm = "@TAMIS.TEST";

// A ticket cache with the ticket-granting ticket of ada, as `change` leaves it.
std::string ChangedCache(const std::string& name,
                         const std::function<void(krb5_context, krb5_creds*)>& change) {
  const std::string file = "FILE:" + Kdc(name);
  krb5_context context = nullptr;
  krb5_ccache from = nullptr;
  krb5_ccache to = nullptr;
  krb5_principal user = nullptr;
  krb5_cc_cursor cursor = nullptr;
  krb5_creds ticket;
  const bool open = krb5_init_context(&context) == 0 && krb5_cc_default(context, &from) == 0 &&
                    krb5_cc_resolve(context, file.c_str(), &to) == 0 &&
                    krb5_cc_get_principal(context, from, &user) == 0 &&
                    krb5_cc_start_seq_get(context, from, &cursor) == 0;
  EXPECT_TRUE(open);
  if (!open) return file;
  bool found = false;
  while (!found && krb5_cc_next_cred(context, from, &cursor, &ticket) == 0) {
    found = krb5_princ_size(context, ticket.server) == 2 &&
            std::string_view(krb5_princ_component(context, ticket.server, 0)->data) == "krbtgt";
    if (!found) krb5_free_cred_contents(context, &ticket);
  }
  EXPECT_TRUE(found);
  if (!found) return file;
  change(context, &ticket);
  EXPECT_EQ(krb5_cc_initialize(context, to, user), 0);
  EXPECT_EQ(krb5_cc_store_cred(context, to, &ticket), 0);
  krb5_free_cred_contents(context, &ticket);
  krb5_cc_end_seq_get(context, from, &cursor);
  krb5_free_principal(context, user);
  krb5_cc_close(context, from);
  krb5_cc_close(context, to);
  krb5_free_context(context);
  return file;
}

// Its ticket ended an hour ago.
std::string ExpiredCache() {
  return ChangedCache("expired", [](krb5_context, krb5_creds* ticket) {
    ticket->times.endtime = static_cast<krb5_timestamp>(std::time(nullptr) - 3600);
  });
}

// Its user's clock is an hour ahead of the KDC's.
std::string SkewedCache() {
  return ChangedCache("skewed", [](krb5_context context, krb5_creds*) {
    // A cache keeps the difference that was found when it was made.
    krb5_set_real_time(context, static_cast<krb5_timestamp>(std::time(nullptr) + 3600), 0);
  });
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
    ClientOptions options = UserOptions();
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
      ClientOptions options = UserOptions();
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
  ClientOptions options = UserOptions();
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

TEST_F(KerberosOnHBaseTest, DelegationTokenIsEnoughUnderEveryProtection) {
  const auto token = Open(UserOptions())->IssueToken();
  ASSERT_TRUE(token.ok()) << token.status();
  const auto facts = hbase::FactsOf(*token);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->user, "ada" + std::string(kRealm));
  EXPECT_GT(facts->expires_ms, facts->issued_ms);
  // The client takes the token of the cluster that it connects to.
  hbase::DelegationToken foreign = *token;
  foreign.service = "another cluster";
  foreign.password = "wrong";
  const std::string file = Kdc("token");
  ASSERT_EQ(hbase::WriteTokens({foreign, *token}, file), Status());

  ClientOptions options = UserOptions();
  options.kerberos->ticket_cache = "FILE:" + Kdc("none");
  options.kerberos->token_file = file;
  for (const auto protection :
       {Protection::kAuthentication, Protection::kIntegrity, Protection::kPrivacy}) {
    SCOPED_TRACE(static_cast<int>(protection));
    options.kerberos->protections = {protection};
    ReadsAndWrites(*Open(options));
  }
  options.zookeeper.reset();
  options.addresses = LocalHBase::Get().addresses();
  EXPECT_EQ(Open(options)->Tables().status(), Status());

  // A token does not get another one.
  EXPECT_THAT(Open(options)->IssueToken().status().message(), HasSubstr("Kerberos"));
  ASSERT_EQ(hbase::WriteTokens({foreign, foreign}, file), Status());
  EXPECT_THAT(Refusal(options).message(), HasSubstr("has no delegation token of the HBase"));
}

TEST_F(KerberosOnHBaseTest, KeytabRenewsItsTicketBeforeItExpires) {
  hbase::KerberosOptions kerberos = *UserOptions().kerberos;
  kerberos.keytab_file = BriefUser("brief");
  const auto login = hbase::KerberosLogin::Create(kerberos);
  ASSERT_TRUE(login.ok()) << login.status();
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + kBriefLife) {
    std::promise<Status> begun;
    (*login)->Begin(
        {"localhost", 1}, kerberos.region_server_principal, [] { return true; },
        [&](const auto& start) { begun.set_value(start.status()); });
    ASSERT_EQ(begun.get_future().get(), Status());
  }
  EXPECT_GE(TicketsOf("brief"), 2);
}

// Rows are written and read through two lives of a ticket, while connections break and are opened
// with the ticket of the time.
TEST_F(KerberosOnHBaseTest, WritesGoOnWhileTicketsExpireAndConnectionsBreak) {
  ASSERT_EQ(Open(UserOptions())->CreateTable({.name = "load", .families = {{.name = "f"}}}, {"m"}),
            Status());
  Wires wires;
  ClientOptions options = UserOptions();
  options.kerberos->keytab_file = BriefUser("writer");
  options.kerberos->protections = {Protection::kPrivacy};
  options.way = [&](const hbase::Address& server) { return wires.WayTo(server); };
  Grant("writer", "load", "RW");
  const auto client = Open(options);
  const std::string value(10'000, 'v');
  int rows = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + 2 * kBriefLife) {
    std::atomic<int> left = 20;
    std::promise<void> done;
    for (int i = 0; i < 20; ++i) {
      const std::string row = (i % 2 == 0 ? "a" : "z") + std::to_string(rows++);
      client->Mutate("load", hbase::Mutation::Put(row).Set("f", "q", value), {.repeat = true},
                     [&](const auto& put) {
                       EXPECT_TRUE(put.ok()) << put.status();
                       if (--left == 0) done.set_value();
                     });
    }
    wires.Cut();
    wires.Heal();
    done.get_future().wait();
    const auto got = client->Get("load", {.row = "a" + std::to_string((rows - 1) / 2 * 2)});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->Find("f", "q"), value);
  }
}

TEST_F(KerberosOnHBaseTest, RefusedUsersGetTheReason) {
  ClientOptions options = UserOptions();
  options.kerberos->ticket_cache = "FILE:" + Kdc("none");
  Status why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), HasSubstr("there is no Kerberos ticket: run kinit"));

  options.kerberos->ticket_cache = ExpiredCache();
  why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(),
              HasSubstr("the Kerberos ticket of ada@TAMIS.TEST has expired: run kinit again"));

  options.kerberos->ticket_cache = SkewedCache();
  why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), AllOf(HasSubstr("the clocks of this machine and of the KDC differ"),
                                   HasSubstr("set them by NTP")));

  options = UserOptions();
  options.kerberos.reset();
  why = Refusal(options);
  EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(why.message(), HasSubstr("the server requires Kerberos: run kinit"));
}

TEST_F(KerberosOnHBaseTest, ClientUsesTheTicketThatKinitPutsIntoItsCache) {
  ClientOptions options = UserOptions();
  options.kerberos->ticket_cache = ExpiredCache();
  const auto client = Open(options);
  EXPECT_THAT(client->Tables().status().message(), HasSubstr("has expired: run kinit again"));
  std::filesystem::copy_file(Kdc("ccache"), Kdc("expired"),
                             std::filesystem::copy_options::overwrite_existing);
  // A failed connection is not opened again for a second at the most.
  Status now;
  do {
    now = client->Tables().status();
  } while (now.message().find("has expired") != std::string::npos);
  EXPECT_EQ(now, Status());
}

// Its ticket for the server is good for hours, and was sealed with a key that the server has no
// longer.
TEST_F(KerberosOnHBaseTest, ClientWithAKeytabLogsInAgainWhenTheKeyOfAServerHasChanged) {
  const LocalHBase& hbase = LocalHBase::Get();
  hbase.Run("kadmin addprinc -randkey web/h1");
  std::unique_ptr<hbase::GssapiServer> server;
  const auto start = [&](const std::string& keytab) {
    server.reset();
    hbase.Run("kadmin ktadd -k " + Kdc(keytab) + " web/h1");  // changes the key
    server = std::make_unique<hbase::GssapiServer>(Kdc(keytab), Protection::kPrivacy);
  };
  ClientOptions options{.addresses = "h1:16020"};
  options.kerberos =
      hbase::KerberosOptions{.region_server_principal = "web/_HOST" + std::string(kRealm),
                             .keytab_file = Kdc("ada.keytab"),
                             .reverse_dns = false};
  options.way = [&](const hbase::Address&) { return server->address(); };
  const auto client = Open(options);
  const auto ask = [&] {
    std::promise<std::string> answer;
    client->ExecServer({{"h1", 16020}, 1}, {.service = "s", .method = "m", .request = ""},
                       [&](const hbase::ServiceReply& reply) {
                         answer.set_value(reply.answer.status().message());
                       });
    return answer.get_future().get();
  };
  start("web.keytab");
  EXPECT_THAT(ask(), HasSubstr(hbase::GssapiServer::kAnswer));
  start("web2.keytab");
  EXPECT_THAT(ask(), HasSubstr(hbase::GssapiServer::kAnswer));
  EXPECT_EQ(server->logins(), 1);
}

TEST_F(KerberosOnHBaseTest, WrongPrincipalOfTheServersIsNamed) {
  ClientOptions options = UserOptions();
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
  EXPECT_THAT(refusal("hbase/_HOST@OTHER.TEST"),
              AllOf(HasSubstr("does not know hbase/localhost@OTHER.TEST"),
                    HasSubstr("its realm is wrong (hbase.regionserver.kerberos.principal)")));
  LocalHBase::Get().Run("kadmin addprinc -randkey impala/localhost");
  EXPECT_THAT(refusal("impala/_HOST@TAMIS.TEST"),
              AllOf(HasSubstr("refuses the login to impala/localhost@TAMIS.TEST"),
                    HasSubstr("GSS initiate failed"), HasSubstr("its log says why")));
}

TEST_F(KerberosOnHBaseTest, RefusalsOfTheKdcNameTheUserAndTheRemedy) {
  const LocalHBase& hbase = LocalHBase::Get();
  const auto refusal = [&](const std::string& user, const std::string& change) {
    const std::string keytab = Kdc(user + ".keytab");
    hbase.Run("kadmin addprinc -randkey " + user);
    hbase.Run("kadmin ktadd -norandkey -k " + keytab + " " + user);
    hbase.Run("kadmin " + change + " " + user);
    ClientOptions options = UserOptions();
    options.kerberos->keytab_file = keytab;
    const Status why = Refusal(options);
    EXPECT_EQ(why.code(), StatusCode::kFailedPrecondition) << why;
    return why.message();
  };
  EXPECT_THAT(refusal("gone", "delprinc -force"),
              HasSubstr("the KDC does not know gone@TAMIS.TEST: look at the name of the user"));
  EXPECT_THAT(refusal("changed", "cpw -randkey"),
              AllOf(HasSubstr("the KDC rejects the key of changed@TAMIS.TEST"),
                    HasSubstr("changed.keytab\" is older than the last change of the key")));
  for (const char* change : {"modprinc -allow_tix", "modprinc -expire yesterday"}) {
    EXPECT_THAT(refusal("closed", change),
                AllOf(HasSubstr("the account of closed@TAMIS.TEST is closed"),
                      HasSubstr("ask its administrator")));
    hbase.Run("kadmin delprinc -force closed");
  }
}

TEST_F(KerberosOnHBaseTest, UnreachableKdcIsNamed) {
  std::string text = TextOf(Kdc("krb5.conf"));
  const size_t port = text.find("127.0.0.1:");
  ASSERT_NE(port, std::string::npos);
  text.replace(port, text.find('\n', port) - port, "127.0.0.1:1");
  std::ofstream(Kdc("unreachable.conf")) << text;
  setenv("KRB5_CONFIG", Kdc("unreachable.conf").c_str(), 1);
  ClientOptions options = UserOptions();
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
  // Only an administrator is told who polls.
  EXPECT_THAT(program.Do({"doctor"}), HasSubstr("is polled by ada from 127.0.0.1"));
  EXPECT_THAT(program.Do({"status"}), Not(HasSubstr("from 127.0.0.1")));

  const Program other(TAMIS_PROGRAM, "hbase:///secured?site=" + Site() + "&user=other@TAMIS.TEST" +
                                         "&keytab=" + Kdc("other.keytab"));
  for (const auto& command : {std::vector<std::string>{"check", "orders"},
                              {"sql", "SELECT * FROM orders"},
                              {"sql", "INSERT INTO orders VALUES (4, 'kim')"},
                              {"explain", "SELECT * FROM orders WHERE customer = 'kim'"}}) {
    EXPECT_THAT(other.Fail(command),
                HasSubstr("user other@TAMIS.TEST lacks the right EXEC on table secured:orders; "
                          "an administrator grants it in HBase's shell: grant 'other', 'X', "
                          "'secured:orders'"))
        << command.front();
  }

  // Each right that is granted leads to the next one that is missing; then a coordinator of a user
  // without rights on all of HBase polls, is routed and writes.
  const std::vector<std::string> read = {"sql", "SELECT id FROM orders WHERE customer = 'lee'"};
  Grant("other", "secured:orders", "X");
  EXPECT_THAT(other.Fail(read), HasSubstr("lacks the right READ on "));
  Grant("other", "secured:orders", "XR");
  EXPECT_THAT(other.Do(read), HasSubstr("2"));
  EXPECT_THAT(other.Do({"explain", read[1]}), HasSubstr("customer"));
  const std::vector<std::string> write = {"sql", "INSERT INTO orders VALUES (4, 'kim')"};
  EXPECT_THAT(other.Fail(write), HasSubstr("lacks the right WRITE on "));
  Grant("other", "secured:orders", "XRW");
  other.Do(write);
  other.Do({"check", "orders"});
  EXPECT_THAT(other.Do({"table", "list"}), HasSubstr("orders"));
  EXPECT_THAT(other.Fail({"index", "create", "orders", "more", "id"}),
              HasSubstr("lacks the right CREATE on table secured:orders"));
  EXPECT_THAT(other.Do({"sql", "--explain", "SELECT id FROM orders WHERE customer = 'kim'"}),
              HasSubstr("4"));
  program.Do({"sql", "DELETE FROM orders WHERE id = 4"});

  // A job of ada's, without a ticket.
  const std::string file = Kdc("job.token");
  const std::string issued = program.Do({"token", "get", "--out", file});
  EXPECT_THAT(issued, HasSubstr("user ada@TAMIS.TEST, cluster "));
  EXPECT_EQ(program.Do({"token", "show", file}), issued);
  setenv("KRB5CCNAME", "FILE:/none/of/these", 1);
  EXPECT_THAT(program.Fail({"sql", "SELECT count(*) FROM orders"}), HasSubstr("run kinit"));
  setenv("HADOOP_TOKEN_FILE_LOCATION", file.c_str(), 1);
  EXPECT_THAT(program.Do({"sql", "SELECT count(*) FROM orders"}), HasSubstr("3"));
  EXPECT_THAT(program.Fail({"token", "get", "--out", file}), HasSubstr("run kinit"));
  unsetenv("HADOOP_TOKEN_FILE_LOCATION");
  setenv("KRB5CCNAME", ("FILE:" + Kdc("ccache")).c_str(), 1);

  setenv("HBASE_CONF_DIR", (LocalHBase::Directory() + "/client").c_str(), 1);
  const Program named(TAMIS_PROGRAM, "hbase:///secured");
  EXPECT_THAT(named.Do({"table", "list"}), HasSubstr("orders"));
  unsetenv("HBASE_CONF_DIR");
}

}  // namespace
}  // namespace tamis
