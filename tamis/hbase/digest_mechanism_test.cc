#include "tamis/hbase/digest_mechanism.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tamis/hbase/token_file.h"

namespace tamis::hbase {
namespace {

using testing::HasSubstr;

DigestMechanism Mechanism(std::vector<Protection> protections) {
  return DigestMechanism({.user = "chris",
                          .password = "secret",
                          .protections = std::move(protections),
                          .client_nonce = "OA6MHXh6VqTrRk"});
}

std::string Challenge(const std::string& qop) {
  return "realm=\"default\",nonce=\"OA6MG9tEQGm2hh\",qop=\"" + qop +
         "\",charset=utf-8,cipher=\"3des,rc4\",algorithm=md5-sess";
}

// The values were computed by Python's hashlib, independently of this code.
TEST(DigestMechanismTest, RespondsAndChecksTheServersProof) {
  DigestMechanism mechanism = Mechanism({Protection::kAuthentication});
  const auto response = mechanism.Next(Challenge("auth"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_FALSE(response->is_last);
  EXPECT_THAT(*response->token, HasSubstr("digest-uri=\"null/default\""));
  EXPECT_THAT(*response->token, HasSubstr("response=e9b5640173f471b58fa512e9917f2402,qop=auth"));
  const auto last = mechanism.Next("rspauth=521b11290c8f4413f805eed37d3969d8");
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_TRUE(last->is_last);
  EXPECT_FALSE(last->token);
  EXPECT_FALSE(mechanism.wraps());
}

TEST(DigestMechanismTest, WrongProofEndsTheLogin) {
  for (const char* proof :
       {"rspauth=00", "rspauth=", "", "other=521b11290c8f4413f805eed37d3969d8", "="}) {
    DigestMechanism mechanism = Mechanism({Protection::kAuthentication});
    ASSERT_TRUE(mechanism.Next(Challenge("auth")).ok());
    EXPECT_EQ(mechanism.Next(proof).status().code(), StatusCode::kFailedPrecondition) << proof;
  }
}

TEST(DigestMechanismTest, ProtectionsAreNegotiated) {
  DigestMechanism strict = Mechanism({Protection::kPrivacy});
  EXPECT_THAT(strict.Next(Challenge("auth,auth-int")).status().message(),
              HasSubstr("hbase.rpc.protection must agree"));
  DigestMechanism any =
      Mechanism({Protection::kPrivacy, Protection::kIntegrity, Protection::kAuthentication});
  const auto response = any.Next(Challenge("auth,auth-int"));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(*response->token, HasSubstr("qop=auth-int"));
  EXPECT_TRUE(any.wraps());
}

TEST(DigestMechanismTest, ForeignChallengeIsAnError) {
  for (const char* challenge : {"", "nonce", "nonce=\"a", "nonce=\"a\\", "realm=\"default\""}) {
    DigestMechanism mechanism = Mechanism({Protection::kAuthentication});
    EXPECT_EQ(mechanism.Next(challenge).status().code(), StatusCode::kDataLoss) << challenge;
  }
}

TEST(DigestMechanismTest, DamagedPieceIsAnError) {
  for (const auto protection : {Protection::kIntegrity, Protection::kPrivacy}) {
    DigestMechanism mechanism = Mechanism({protection});
    ASSERT_TRUE(mechanism.Next(Challenge("auth-int,auth-conf")).ok());
    const auto piece = mechanism.Wrap("some bytes");
    ASSERT_TRUE(piece.ok()) << piece.status();
    EXPECT_NE(*mechanism.Wrap("some bytes"), *piece);
    // The client's own pieces are not those of the server, whose key is another one.
    EXPECT_EQ(mechanism.Unwrap(*piece).status().code(), StatusCode::kDataLoss);
    for (size_t size = 0; size < piece->size(); ++size) {
      EXPECT_EQ(mechanism.Unwrap(piece->substr(0, size)).status().code(), StatusCode::kDataLoss);
    }
  }
}

TEST(TokenFileTest, ReadsTokensAndRefusesForeignBytes) {
  const std::string token = std::string("\x02id\x03pwd", 7) + "\x10HBASE_AUTH_TOKEN" + "\x04uuid";
  const std::string file = std::string("HDTS\0\x01", 6) +
                           "\x05"
                           "alias" +
                           token + std::string(1, '\0');
  const auto tokens = ParseTokens(file);
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 1u);
  EXPECT_EQ(tokens->front().identifier, "id");
  EXPECT_EQ(tokens->front().password, "pwd");
  EXPECT_EQ(tokens->front().kind, kHBaseTokenKind);
  EXPECT_EQ(tokens->front().service, "uuid");
  for (size_t size = 0; size + 1 < file.size(); ++size) {
    EXPECT_EQ(ParseTokens(file.substr(0, size)).status().code(), StatusCode::kDataLoss) << size;
  }
  EXPECT_THAT(ParseTokens(std::string("HDTS\1", 5)).status().message(), HasSubstr("format 1"));
  EXPECT_THAT(ReadTokens("/none").status().message(), HasSubstr("/none"));
}

}  // namespace
}  // namespace tamis::hbase
