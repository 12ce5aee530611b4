#include "tamis/hbase/token_login.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <optional>

#include "tamis/base/coding.h"
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
