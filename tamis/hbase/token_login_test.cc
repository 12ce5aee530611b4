#include "tamis/hbase/token_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/testing/loopback_listener.h"
#include "tamis/hbase/testing/scripted_server.h"
#include "tamis/hbase/testing/sized_bytes.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

DelegationToken Token(const std::string& cluster, int64_t expires_ms) {
  pb::TokenIdentifier identifier;
  identifier.set_username("ada@R");
  identifier.set_issue_date(1000);
  identifier.set_expiration_date(expires_ms);
  DelegationToken token{.identifier = {},
                        .password = "secret",
                        .kind = std::string(kHBaseTokenKind),
                        .service = cluster};
  const std::string bytes = identifier.SerializeAsString();
  PutBig32(&token.identifier, static_cast<uint32_t>(bytes.size()));
  token.identifier += bytes;
  return token;
}

// How the login begins, in a cluster of this id.
Status Begun(std::vector<DelegationToken> tokens, const std::string& cluster) {
  TokenLogin login(std::move(tokens), {.token_file = "job.tokens"});
  login.FindClusterBy([&](const auto& done) { done(cluster); });
  std::optional<Status> begun;
  login.Begin(
      {"h", 1}, "", [] { return true; },
      [&](const Result<SaslStart>& start) { begun = start.status(); });
  return begun.value_or(Internal("Begin did not call back"));
}

TEST(TokenFileTest, WrittenTokensAreReadBack) {
  std::vector<DelegationToken> tokens = {Token("a", 2000)};
  for (const size_t size : {0u, 1u, 127u, 128u, 255u, 256u, 65535u, 70000u}) {
    tokens.push_back({.identifier = std::string(size, 'i'),
                      .password = std::string(size, 'p'),
                      .kind = "OTHER",
                      .service = ""});
  }
  const auto parsed = ParseTokens(FormatTokens(tokens));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, tokens);

  const std::string file = testing::TempDir() + "tokens-" + std::to_string(NowMs());
  ASSERT_EQ(WriteTokens(tokens, file), Status());
  const auto read = ReadTokens(file);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, tokens);
  struct stat state {};
  ASSERT_EQ(::stat(file.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 0777, 0600u);
  EXPECT_THAT(WriteTokens(tokens, "/none/of/these").message(),
              HasSubstr("cannot write the tokens to \"/none/of/these\""));
}

TEST(TokenFileTest, FactsAreThoseOfTheIdentifier) {
  const auto facts = FactsOf(Token("a", 2000));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->user, "ada@R");
  EXPECT_EQ(facts->issued_ms, 1000);
  EXPECT_EQ(facts->expires_ms, 2000);
  DelegationToken cut = Token("a", 2000);
  cut.identifier.pop_back();
  EXPECT_EQ(FactsOf(cut).status().code(), StatusCode::kDataLoss);
}

TEST(TokenLoginTest, TokenOfTheClusterIsChosen) {
  const int64_t later = NowMs() + 3'600'000;
  EXPECT_EQ(Begun({Token("a", later)}, "x"), Status());  // the only one is tried anywhere
  EXPECT_EQ(Begun({Token("a", 1), Token("b", later)}, "b"), Status());
  const Status none = Begun({Token("a", later), Token("b", later)}, "c");
  EXPECT_EQ(none.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.message(), HasSubstr("\"job.tokens\" has no delegation token of the HBase with "
                                        "the id c"));
}

std::string ClusterIdAnswer(const std::string& id) {
  pb::GetConnectionRegistryResponse answer;
  answer.set_cluster_id(id);
  return PreambleAnswer(answer);
}

TEST(TokenLoginTest, ClusterIsAskedForItsIdWithoutALogin) {
  const int64_t later = NowMs() + 3'600'000;
  const std::string file = testing::TempDir() + "two-tokens-" + std::to_string(NowMs());
  DelegationToken wanted = Token("b", later);
  ASSERT_EQ(WriteTokens({Token("a", later - 1), wanted}, file), Status());
  std::promise<std::string> response;
  std::atomic<bool> has_response = false;
  std::vector<std::thread> threads;  // only the thread of the listener uses it
  const auto serve = [&](int socket) {
    ScriptedServer::Peer peer(socket);
    const std::string preamble = peer.Receive(6);
    if (preamble == "Regist") return peer.SendBytes(ClusterIdAnswer("b"));
    EXPECT_EQ(preamble, std::string("HBas\0\x52", 6));
    peer.Receive(4);  // an empty token
    peer.SendBytes(std::string(4, '\0') +
                   Sized("realm=\"default\",nonce=\"n\",qop=\"auth\",charset=utf-8,"
                         "algorithm=md5-sess"));
    const std::string size = peer.Receive(4);
    if (size.empty() || has_response.exchange(true)) return;
    response.set_value(peer.Receive(Reader(size).Big32()));
    peer.Receive(1);
  };
  // The question comes by a second connection, while the first one waits for the token.
  std::optional<LoopbackListener> server(
      [&](int socket) { threads.emplace_back([&, socket] { serve(socket); }); });
  auto client = Client::Open(
      {.addresses = server->address().ToString(), .kerberos = KerberosOptions{.token_file = file}});
  ASSERT_TRUE(client.ok()) << client.status();
  (*client)->Locate("t", "r", [](const auto&) {});
  const std::string got = response.get_future().get();
  client->reset();
  server.reset();
  for (std::thread& thread : threads) thread.join();
  std::string user(4 * ((wanted.identifier.size() + 2) / 3) + 1, '\0');
  user.resize(static_cast<size_t>(
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(user.data()),
                      reinterpret_cast<const unsigned char*>(wanted.identifier.data()),
                      static_cast<int>(wanted.identifier.size()))));
  EXPECT_THAT(got, HasSubstr("username=\"" + user + "\""));
}

TEST(TokenLoginTest, ExpiredTokenIsNamed) {
  const Status expired = Begun({Token("a", 86'400'000)}, "a");
  EXPECT_EQ(expired.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(expired.message(),
              AllOf(HasSubstr("the delegation token of ada@R in \"job.tokens\" expired at "
                              "1970-01-02 00:00 UTC"),
                    HasSubstr("tamis token get")));
}

}  // namespace
}  // namespace tamis::hbase
