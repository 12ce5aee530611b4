#include "tamis/hbase/kerberos_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <krb5.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "tamis/hbase/testing/loopback_listener.h"

namespace tamis::hbase {
namespace {

using testing::HasSubstr;

constexpr size_t kLogins = 4;

// A KDC that answers nothing: it closes its connections once `kLogins` clients wait at the same
// time.
class SilentKdc {
 public:
  ~SilentKdc() { CloseAll(); }
  uint16_t port() const { return listener_.address().port; }
  bool saw_all_at_once() const { return saw_all_at_once_; }

 private:
  void Take(int socket) {
    std::erase_if(waiting_, [](int one) {
      pollfd state{.fd = one, .events = POLLRDHUP, .revents = 0};
      const bool has_gone = ::poll(&state, 1, 0) == 1;
      if (has_gone) ::close(one);
      return has_gone;
    });
    waiting_.push_back(socket);
    if (waiting_.size() == kLogins) saw_all_at_once_ = true;
    if (saw_all_at_once_) CloseAll();
  }
  void CloseAll() {
    for (const int one : waiting_) ::close(one);
    waiting_.clear();
  }

  std::vector<int> waiting_;
  std::atomic<bool> saw_all_at_once_ = false;
  LoopbackListener listener_{[this](int socket) { Take(socket); }};
};

std::string Der(uint8_t tag, const std::string& content) {
  return std::string(1, static_cast<char>(tag)) + static_cast<char>(content.size()) + content;
}

// A ticket-granting ticket that only a KDC could read.
std::string Ticket() {
  const std::string name = Der(0x30, Der(0x1b, "krbtgt") + Der(0x1b, "R"));
  const std::string server = Der(0x30, Der(0xa0, Der(2, "\x02")) + Der(0xa1, name));
  const std::string sealed = Der(0x30, Der(0xa0, Der(2, "\x12")) + Der(0xa2, Der(4, "sealed")));
  return Der(0x61, Der(0x30, Der(0xa0, Der(2, "\x05")) + Der(0xa1, Der(0x1b, "R")) +
                                 Der(0xa2, server) + Der(0xa3, sealed)));
}

// Writes a ticket cache with that ticket.
void WriteCache(const std::string& name) {
  krb5_context context = nullptr;
  krb5_ccache cache = nullptr;
  krb5_creds credential{};
  ASSERT_EQ(krb5_init_context(&context), 0);
  ASSERT_EQ(krb5_parse_name(context, "ada@R", &credential.client), 0);
  ASSERT_EQ(krb5_parse_name(context, "krbtgt/R@R", &credential.server), 0);
  ASSERT_EQ(krb5_c_make_random_key(context, ENCTYPE_AES256_CTS_HMAC_SHA1_96, &credential.keyblock),
            0);
  const auto now = static_cast<krb5_timestamp>(std::time(nullptr));
  credential.times = {.authtime = now, .starttime = now, .endtime = now + 3600, .renew_till = 0};
  std::string ticket = Ticket();
  credential.ticket = {
      .magic = 0, .length = static_cast<unsigned>(ticket.size()), .data = ticket.data()};
  ASSERT_EQ(krb5_cc_resolve(context, name.c_str(), &cache), 0);
  ASSERT_EQ(krb5_cc_initialize(context, cache, credential.client), 0);
  ASSERT_EQ(krb5_cc_store_cred(context, cache, &credential), 0);
  krb5_cc_close(context, cache);
  credential.ticket = {};
  krb5_free_cred_contents(context, &credential);
  krb5_free_context(context);
}

TEST(KerberosLoginTest, LoginsOfSeveralServersWaitForTheKdcAtTheSameTime) {
  const SilentKdc kdc;
  const std::string directory = testing::TempDir() + "kerberos-login-" + std::to_string(getpid());
  std::ofstream(directory + ".conf")
      << "[libdefaults]\n default_realm = R\n dns_lookup_kdc = false\n udp_preference_limit = 1\n"
         "[realms]\n R = {\n  kdc = 127.0.0.1:"
      << kdc.port() << "\n }\n";
  setenv("KRB5_CONFIG", (directory + ".conf").c_str(), 1);
  const std::string cache = "FILE:" + directory + ".cache";
  WriteCache(cache);

  const auto login = KerberosLogin::Create(
      {.region_server_principal = "hbase/_HOST@R", .ticket_cache = cache, .reverse_dns = false});
  ASSERT_TRUE(login.ok()) << login.status();
  std::vector<std::promise<Status>> ended(kLogins);
  for (size_t i = 0; i < kLogins; ++i) {
    (*login)->Begin(
        {"host" + std::to_string(i), 16020}, "hbase/_HOST@R", [] { return true; },
        [&ended, i](const auto& start) { ended[i].set_value(start.status()); });
  }
  for (auto& one : ended) {
    EXPECT_THAT(one.get_future().get().message(), HasSubstr("no KDC answers"));
  }
  EXPECT_TRUE(kdc.saw_all_at_once());
  unsetenv("KRB5_CONFIG");
}

}  // namespace
}  // namespace tamis::hbase
