#include "tests/hbase/kerberos_users.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tamis/hbase/client.h"
#include "tamis/hbase/site_file.h"
#include "tests/hbase/local_hbase.h"

namespace tamis {

std::string Kdc(const std::string& file) { return LocalHBase::Directory() + "/kdc/" + file; }
std::string Site() { return LocalHBase::Directory() + "/client/hbase-site.xml"; }

std::string TextOf(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

hbase::ClientOptions UserOptions() {
  const auto site = hbase::SiteFile::Read(Site());
  EXPECT_TRUE(site.ok()) << site.status();
  auto options = site->Complete({});
  EXPECT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->zookeeper && options->kerberos && options->tls);
  options->tls.reset();
  options->operation_timeout = std::chrono::seconds(20);
  return *std::move(options);
}

int TicketsOf(const std::string& user) {
  const std::string log = TextOf(Kdc("kdc.log"));
  int count = 0;
  for (size_t at = 0; (at = log.find("AS_REQ", at)) != std::string::npos; ++at) {
    const std::string line = log.substr(at, log.find('\n', at) - at);
    count += line.find("ISSUE") != std::string::npos &&
             line.find(user + "@TAMIS.TEST for krbtgt") != std::string::npos;
  }
  return count;
}

std::string BriefUser(const std::string& user) {
  LocalHBase::Get().Run("kadmin addprinc -randkey -maxlife " + std::to_string(kBriefLife.count()) +
                        "seconds " + user);
  const std::string keytab = Kdc(user + ".keytab");
  LocalHBase::Get().Run("kadmin ktadd -norandkey -k " + keytab + " " + user);
  return keytab;
}

void Grant(const std::string& user, const std::string& table, const std::string& rights) {
  const auto client = hbase::Client::Open(UserOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  const auto put =
      (*client)->Mutate("hbase:acl", hbase::Mutation::Put(table).Set("l", user, rights));
  ASSERT_TRUE(put.ok()) << put.status();
}

}  // namespace tamis
