// TLS connections: which certificates are trusted, which are not, and the errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <fstream>
#include <memory>

#include "tamis/hbase/client.h"
#include "tamis/hbase/session.h"
#include "tamis/hbase/testing/connection_test_case.h"
#include "tamis/hbase/testing/scripted_cluster.h"
#include "tamis/hbase/testing/test_ca.h"
#include "tamis/hbase/testing/tls_front.h"
#include "tamis/hbase/tls_context.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Outcome = Reply::Outcome;

class TlsTest : public ConnectionTest {
 protected:
  TlsTest() {
    server_.On("Ask", [](const auto& request, const auto& peer) {
      peer->Answer(request.call_id, Id("an answer"), request.cells);
    });
  }

  void ConnectInside(const Address& address, const TlsOptions& options,
                     std::chrono::milliseconds handshake_timeout = kLong) {
    auto tls = TlsContext::Load(options);
    ASSERT_TRUE(tls.ok()) << tls.status();
    ConnectTo(address, {.tls = *tls, .handshake_timeout = handshake_timeout});
  }

  // Makes a call that must not be sent, and returns its status.
  Status Refused() {
    const Reply reply = Send(MakeCall("Ask"));
    EXPECT_EQ(reply.outcome, Outcome::kNotSent);
    EXPECT_EQ(server_.calls("Ask"), 0);
    return reply.ToStatus();
  }
  void ExpectAnswer() { EXPECT_EQ(Send(MakeCall("Ask")).ToStatus(), Status()); }

  TestCa ca_;
  TestCa other_ca_;
  const std::string here_ = ca_.Sign("IP:127.0.0.1");
};

TEST_F(TlsTest, CarriesCallsAndAnswersOfAllSizes) {
  TlsFront front(server_.address(), {.identity_file = here_});
  ConnectInside(front.address(), {.ca_file = ca_.file()});
  std::vector<Call> calls;
  for (size_t i = 0; i < 20; ++i) {
    calls.push_back(MakeCall("Ask"));
    calls.back().cells = std::string(i * i * i * 400, static_cast<char>('a' + i));
  }
  const auto replies = SendAll(std::move(calls));
  for (size_t i = 0; i < replies.size(); ++i) {
    ASSERT_EQ(replies[i].outcome, Outcome::kAnswer) << replies[i].status;
    EXPECT_EQ(replies[i].cells, std::string(i * i * i * 400, static_cast<char>('a' + i)));
  }
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(TlsTest, RejectsACertificateOfAnotherCa) {
  TlsFront front(server_.address(), {.identity_file = other_ca_.Sign("IP:127.0.0.1")});
  for (const std::string& file : {ca_.file(), std::string()}) {
    ConnectInside(front.address(), {.ca_file = file});
    const Status status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("its certificate is not trusted"),
                                        HasSubstr("give the certificate of the CA")));
  }
  // Disabling host verification does not disable the check of the CA.
  ConnectInside(front.address(), {.ca_file = ca_.file(), .verify_host = false});
  EXPECT_EQ(Refused().code(), StatusCode::kFailedPrecondition);
}

TEST_F(TlsTest, ErrorForAnExpiredCertificateDoesNotSuggestACa) {
  for (const auto& [begin, reason] : {std::pair(std::chrono::hours(-3), "has expired"),
                                      std::pair(std::chrono::hours(1), "not yet valid")}) {
    TlsFront front(server_.address(), {.identity_file = ca_.Sign("IP:127.0.0.1", begin)});
    ConnectInside(front.address(), {.ca_file = ca_.file()});
    const Status status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr("its certificate is not trusted"),
                                        HasSubstr(reason), HasSubstr("look at the clock"),
                                        Not(HasSubstr("give the certificate of the CA"))));
  }
}

TEST_F(TlsTest, ReportsThatNoCipherIsInCommon) {
  // The server's only cipher needs another kind of key than the server has.
  TlsFront front(server_.address(), {.identity_file = here_,
                                     .client_ca_file = "",
                                     .newest_version = TLS1_2_VERSION,
                                     .ciphers = "ECDHE-RSA-AES128-GCM-SHA256"});
  ConnectInside(front.address(), {.ca_file = ca_.file()});
  const Status status = Refused();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no TLS version or cipher in common"));
}

TEST_F(TlsTest, ErrorForAnOldTlsVersionNamesTheVersionToAllow) {
  TlsFront front(server_.address(), {.identity_file = here_,
                                     .client_ca_file = "",
                                     .newest_version = TLS1_1_VERSION,
                                     .ciphers = ""});
  ConnectInside(front.address(), {.ca_file = ca_.file()});
  const Status status = Refused();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("no TLS version or cipher in common"), HasSubstr("protocol version"),
                    HasSubstr("allow TLS 1.2 or newer there")));
}

TEST_F(TlsTest, RejectsACertificateForAnotherPurpose) {
  constexpr std::chrono::hours kSince(-1);
  TlsFront front(server_.address(),
                 {.identity_file = ca_.Sign("IP:127.0.0.1", kSince, "clientAuth")});
  ConnectInside(front.address(), {.ca_file = ca_.file()});
  Status status = Refused();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("its certificate is not trusted"), HasSubstr("purpose"),
                    HasSubstr("serverAuth"), Not(HasSubstr("give the certificate of the CA"))));

  // The client's certificate, which the server verifies.
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsFront looking(
        server_.address(),
        {.identity_file = here_, .client_ca_file = ca_.file(), .newest_version = version});
    ConnectInside(looking.address(),
                  {.ca_file = ca_.file(),
                   .certificate_file = ca_.Sign("DNS:somebody", kSince, "serverAuth")});
    status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(),
                AllOf(HasSubstr("it refuses our certificate"), HasSubstr("for clients")));
  }
  TlsFront looking(server_.address(), {.identity_file = here_, .client_ca_file = ca_.file()});
  ConnectInside(
      looking.address(),
      {.ca_file = ca_.file(), .certificate_file = ca_.Sign("DNS:somebody", kSince, "clientAuth")});
  ExpectAnswer();
  TlsFront both(server_.address(),
                {.identity_file = ca_.Sign("IP:127.0.0.1", kSince, "serverAuth,clientAuth")});
  ConnectInside(both.address(), {.ca_file = ca_.file()});
  ExpectAnswer();
}

TEST_F(TlsTest, TrustsAServerCertificateListedDirectly) {
  TlsFront front(server_.address(), {.identity_file = here_});
  ConnectInside(front.address(), {.ca_file = here_});
  ExpectAnswer();
}

TEST_F(TlsTest, RejectsACertificateOfAnotherHost) {
  for (const char* names : {"DNS:elsewhere", "IP:127.0.0.2", "DNS:127.0.0.1"}) {
    TlsFront front(server_.address(), {.identity_file = ca_.Sign(names)});
    ConnectInside(front.address(), {.ca_file = ca_.file()});
    const Status status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("its certificate is not for 127.0.0.1"));
  }
  TlsFront named(server_.address(), {.identity_file = ca_.Sign("DNS:elsewhere,DNS:localhost")});
  ConnectInside({"localhost", named.address().port}, {.ca_file = ca_.file()});
  ExpectAnswer();
  ConnectInside(named.address(), {.ca_file = ca_.file(), .verify_host = false});
  ExpectAnswer();
}

TEST_F(TlsTest, ReportsThatTheServerWantsACertificate) {
  // With TLS 1.2 the server reports this during the handshake, with 1.3 after the client's
  // handshake has ended.
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsFront front(
        server_.address(),
        {.identity_file = here_, .client_ca_file = ca_.file(), .newest_version = version});
    ConnectInside(front.address(), {.ca_file = ca_.file()});
    Status status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("it requires a client certificate"));
    ConnectInside(front.address(),
                  {.ca_file = ca_.file(), .certificate_file = other_ca_.Sign("DNS:somebody")});
    status = Refused();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), HasSubstr("it refuses our certificate"));
  }
  TlsFront front(server_.address(), {.identity_file = here_, .client_ca_file = ca_.file()});
  ConnectInside(front.address(),
                {.ca_file = ca_.file(), .certificate_file = ca_.Sign("DNS:somebody")});
  ExpectAnswer();
}

TEST_F(TlsTest, ReportsThatOnlyOneSideUsesTls) {
  ConnectInside(server_.address(), {.ca_file = ca_.file()});
  const Status inside = Refused();
  EXPECT_EQ(inside.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(inside.message(), HasSubstr("it does not speak TLS"));

  TlsFront front(server_.address(), {.identity_file = here_});
  ConnectTo(front.address(), {});
  EXPECT_THAT(Send(MakeCall("Ask")).ToStatus().message(),
              HasSubstr("Does it require TLS or Kerberos?"));
}

// A port that accepts connections and never answers.
class SilentPort {
 public:
  explicit SilentPort(asio::io_context& io)
      : acceptor_(io, {asio::ip::address_v4::loopback(), 0}), client_(io) {}
  Address address() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  // Whether a client has sent bytes.
  bool WasSpokenTo() {
    boost::system::error_code ignored;
    acceptor_.non_blocking(true);
    if (!client_.is_open()) acceptor_.accept(client_, ignored);
    return client_.is_open() && client_.available() > 0;
  }

 private:
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket client_;
};

TEST_F(TlsTest, EndsAStalledHandshake) {
  SilentPort port(io_);
  ConnectInside(port.address(), {.ca_file = ca_.file()}, std::chrono::milliseconds(20));
  const Status status = Refused();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("no TLS handshake within 20 ms"));
}

TEST_F(TlsTest, HandshakeTimeoutComesFromTheClientOptions) {
  SilentPort port(io_);
  auto tls = TlsContext::Load({.ca_file = ca_.file()});
  ASSERT_TRUE(tls.ok()) << tls.status();
  Session session(
      io_,
      {.addresses = "localhost:1", .tls = {}, .handshake_timeout = std::chrono::milliseconds(20)},
      *tls, nullptr);
  std::optional<Reply> reply;
  session.channels.To(port.address(), "ClientService").Send(MakeCall("Ask"), [&](Reply one) {
    reply = std::move(one);
  });
  while (!reply) io_.run_one();
  EXPECT_THAT(reply->status.message(), HasSubstr("no TLS handshake within 20 ms"));
  session.Close();
}

TEST_F(TlsTest, CallThatWaitsForAStalledHandshakeNamesIt) {
  SilentPort port(io_);
  ConnectInside(port.address(), {.ca_file = ca_.file()});
  while (!port.WasSpokenTo()) io_.poll();
  const Reply reply = Send(MakeCall("Ask", std::chrono::milliseconds(1)));
  EXPECT_EQ(reply.status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(reply.status.message(), HasSubstr("no TLS handshake in time"));
}

TEST_F(TlsTest, AbandonedConnectionEndsWithItsHandshake) {
  SilentPort port(io_);
  ConnectInside(port.address(), {.ca_file = ca_.file()}, std::chrono::milliseconds(20));
  const std::weak_ptr<Connection> known = connection_;
  while (!port.WasSpokenTo()) io_.poll();
  connection_.reset();
  while (!known.expired()) io_.run_one();
}

TEST_F(TlsTest, FailsAtOnceIfAllServersRefuse) {
  TlsFront front(server_.address(), {.identity_file = here_});
  const auto client = Client::Open(
      {.addresses = front.address().ToString(), .tls = TlsOptions{.ca_file = other_ca_.file()}});
  ASSERT_TRUE(client.ok()) << client.status();
  // It ends before its timeout of one minute, and not with kUnavailable.
  for (const Status& status : {(*client)->Regions("t").status(), (*client)->Tables().status()}) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(front.address().ToString()),
                                        HasSubstr("its certificate is not trusted")));
  }
}

// A cluster in which the first server's certificate is valid, and the second one's is for another
// host.
class TlsClusterTest : public TlsTest {
 protected:
  TlsClusterTest() {
    cluster_.SetAddress(0, good_.address());
    cluster_.SetAddress(1, bad_.address());
    client_ = *Client::Open(
        {.addresses = good_.address().ToString(), .tls = TlsOptions{.ca_file = ca_.file()}});
  }

  // The operation ends before its timeout of one minute, and not with kUnavailable.
  void ExpectRefusal(const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(), AllOf(HasSubstr(bad_.address().ToString()),
                                        HasSubstr("its certificate is not for 127.0.0.1")));
  }

  ScriptedCluster cluster_{2};
  TlsFront good_{cluster_.server(0).address(), {.identity_file = here_}};
  TlsFront bad_{cluster_.server(1).address(), {.identity_file = ca_.Sign("DNS:elsewhere")}};
  std::unique_ptr<Client> client_;
};

TEST_F(TlsClusterTest, ServerCertificateForAnotherHostEndsCallsAtOnce) {
  cluster_.SetRegion("", "", 1);
  ExpectRefusal(client_->Get("t", {.row = "r"}).status());
  ExpectRefusal(
      client_->Mutate("t", Mutation::Put("r").Set("f", "q", "v"), WriteOptions()).status());
  ExpectRefusal(client_->Scan("t", {})->Next().status());
  for (const auto& row : client_->Get("t", std::vector<Get>{{.row = "r"}, {.row = "s"}})) {
    ExpectRefusal(row.status());
  }
  EXPECT_EQ(cluster_.server(1).connections(), 0);
}

TEST_F(TlsClusterTest, MasterCertificateForAnotherHostEndsCallsAtOnce) {
  cluster_.server(0).On("GetActiveMaster", [this](const auto& request, const auto& peer) {
    pb::GetActiveMasterResponse answer;
    ToProto(ServerName{bad_.address(), 1}, answer.mutable_server_name());
    peer->Answer(request.call_id, answer);
  });
  ExpectRefusal(client_->Tables().status());
}

TEST_F(TlsClusterTest, FindsARegionThatMovedAwayFromSuchAServer) {
  cluster_.server(0).On("Get", [](const auto& request, const auto& peer) {
    ScriptedCluster::AnswerGet(request, peer, "found");
  });
  cluster_.SetRegion("", "", 1);
  ASSERT_TRUE(client_->Regions("t").ok());  // the client caches the region's location
  cluster_.SetRegion("", "", 0);
  const auto row = client_->Get("t", {.row = "r"});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->Find("f", "q"), "found");
}

TEST_F(TlsTest, NamesUnusableFiles) {
  const auto why = [](const TlsOptions& options) {
    const auto client = Client::Open({.addresses = "localhost:1", .tls = options});
    EXPECT_EQ(client.status().code(), StatusCode::kInvalidArgument);
    return client.status().message();
  };
  EXPECT_THAT(why({.ca_file = "/nowhere/ca.pem"}),
              AllOf(HasSubstr("\"/nowhere/ca.pem\""), HasSubstr("No such file")));
  const std::string text = ca_.file() + ".txt";
  std::ofstream(text) << "no certificate";
  EXPECT_THAT(why({.ca_file = text}), AllOf(HasSubstr(text), HasSubstr("PEM")));
  EXPECT_THAT(why({.certificate_file = text}), AllOf(HasSubstr(text), HasSubstr("PEM")));
  EXPECT_THAT(why({.certificate_file = here_, .key_file = ca_.Sign("DNS:other")}),
              HasSubstr("it has to be the certificate's"));
  EXPECT_THAT(why({.certificate_file = ca_.file()}), HasSubstr("cannot use the key in"));
  EXPECT_THAT(why({.key_file = here_}), HasSubstr("of no use without a certificate"));
}

}  // namespace
}  // namespace tamis::hbase
