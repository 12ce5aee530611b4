#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/coding.h"
#include "tamis/hbase/connection.h"
#include "tamis/hbase/sasl_reply.h"
#include "tamis/hbase/testing/connection_test_case.h"
#include "tamis/hbase/testing/loopback_listener.h"
#include "tamis/hbase/testing/masking_mechanism.h"
#include "tamis/hbase/testing/sized_bytes.h"

namespace tamis::hbase {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Outcome = Reply::Outcome;
using Peer = ScriptedServer::Peer;

std::string Challenge(std::string_view token) { return std::string(4, '\0') + Sized(token); }

std::string Refusal(std::string_view message) {
  return std::string("\0\0\0\1", 4) + Sized("javax.security.sasl.SaslException") + Sized(message);
}

std::string NoSecurity() { return std::string("\0\0\0\0\xff\xff\xff\xa8", 8); }

std::string Answer(uint32_t call_id, const std::string& id) {
  pb::ResponseHeader header;
  header.set_call_id(call_id);
  std::string body;
  AppendDelimited(header, &body);
  AppendDelimited(Id(id), &body);
  return Sized(body);
}

// A server that runs a script for each connection.
class SaslServer {
 public:
  explicit SaslServer(std::function<void(Peer&)> script)
      : listener_([script = std::move(script)](int socket) {
          Peer peer(socket);
          script(peer);
        }) {}
  const Address& address() const { return listener_.address(); }

 private:
  const LoopbackListener listener_;
};

struct FakeLogin : SaslLogin {
  char method() const override { return '\x51'; }
  std::vector<std::string> NamesOf(const Address&, std::string_view) const override {
    return names;
  }
  bool IsKnown(const Address&) const override { return known; }
  void Accepted(const Address&, const std::string& name, uint64_t) override { accepted = name; }
  bool Renew(const Address&, uint64_t tickets) override {
    EXPECT_EQ(tickets, 7u);
    return may_renew;
  }
  std::string Missing(const Address& server, const std::string& name) const override {
    return "no ticket for " + name + " of " + server.host;
  }
  void Begin(const Address&, const std::string& name, std::function<bool()> wanted,
             std::function<void(Result<SaslStart>)> done) override {
    EXPECT_TRUE(wanted());
    if (!failure.ok() && name == "first") return done(failure);
    done(SaslStart{.mechanism = std::make_unique<MaskingMechanism>(2, wraps),
                   .token = name,
                   .server = server,
                   .tickets = 7});
  }
  std::string_view reasons_of_refusal() const override { return "usually it is another one"; }
  bool falls_back() const override { return fallback; }

  std::vector<std::string> names = {"first"};
  bool known = true;
  bool wraps = false;
  bool fallback = false;
  bool may_renew = false;  // refused tickets may be of former times
  std::string server;      // the principal that was asked for
  Status failure;
  std::string accepted;
};

// The server's side of a connection.
class Side {
 public:
  Side(Peer& peer, bool wraps) : peer_(peer), wraps_(wraps) {}

  std::string TakeSized() {
    const std::string size = peer_.Receive(4);
    return size.empty() ? "" : peer_.Receive(Reader(size).Big32());
  }
  // Returns the preamble and the first token.
  std::string TakeFirst() {
    const std::string preamble = peer_.Receive(6);
    return preamble + TakeSized();
  }
  // Returns false if the client has not answered as it should.
  bool Handshake() {
    first_ = TakeFirst();
    peer_.SendBytes(Challenge("1"));
    if (TakeSized() != "to 1") return false;
    peer_.SendBytes(Challenge("2"));
    return TakeSized() == "to 2";
  }
  // Reads plain bytes.
  std::string Take(size_t size) {
    if (!wraps_) return peer_.Receive(size);
    while (plain_.size() < size) {
      const std::string piece = TakeSized();
      if (piece.empty()) return "";
      EXPECT_LE(piece.size(), MaskingMechanism::kMaxPieceBytes + 1);
      plain_ += MaskingMechanism::Masked(piece.substr(1)).substr(1);
    }
    std::string taken = plain_.substr(0, size);
    plain_.erase(0, size);
    return taken;
  }
  pb::ConnectionHeader TakeHeader() {
    pb::ConnectionHeader header;
    header.ParseFromString(TakeFrame());
    return header;
  }
  uint32_t TakeCall() {
    const std::string frame = TakeFrame();
    std::string_view rest = frame;
    pb::RequestHeader header;
    if (const auto bytes = TakeDelimited(&rest)) header.ParseFromString(std::string(*bytes));
    return header.call_id();
  }
  void SendPiece(std::string_view bytes) {
    peer_.SendBytes(Sized(MaskingMechanism::Masked(bytes)));
  }
  const std::string& first() const { return first_; }

 private:
  std::string TakeFrame() {
    const std::string size = Take(4);
    return size.empty() ? "" : Take(Reader(size).Big32());
  }

  Peer& peer_;
  const bool wraps_;
  std::string plain_;
  std::string first_;
};

// Lets a client log in, and answers one call. Returns the first token of the client; empty: the
// login failed.
std::string LogInAndAnswer(Peer& peer) {
  Side side(peer, false);
  if (!side.Handshake()) return "";
  side.TakeHeader();
  peer.SendBytes(Answer(side.TakeCall(), "yes"));
  peer.Receive(1);
  return side.first().substr(6);
}

class SaslConnectionTest : public ConnectionTest {
 protected:
  void ConnectTo(const SaslServer& server) {
    ConnectionTest::ConnectTo(server.address(),
                              {.login = login_, .handshake_timeout = handshake_timeout_});
  }
  const std::shared_ptr<FakeLogin> login_ = std::make_shared<FakeLogin>();
  std::chrono::milliseconds handshake_timeout_{60'000};
};

TEST_F(SaslConnectionTest, CallsFollowTheHandshake) {
  std::string first;
  pb::ConnectionHeader header;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, false);
    if (!side.Handshake()) return;
    first = side.first();
    header = side.TakeHeader();
    peer.SendBytes(Answer(side.TakeCall(), "yes"));
    peer.Receive(1);
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
  EXPECT_EQ(first, std::string("HBas\0\x51", 6) + "first");
  EXPECT_EQ(header.service_name(), "ClientService");
  EXPECT_FALSE(header.has_user_info());
  EXPECT_EQ(login_->accepted, "first");
  connection_->Close(Cancelled("over"));
}

TEST_F(SaslConnectionTest, WrappedPiecesAreTheByteStreamInBothDirections) {
  login_->wraps = true;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, true);
    if (!side.Handshake()) return;
    side.TakeHeader();
    std::string answers;
    for (int i = 0; i < 3; ++i) {
      const uint32_t id = side.TakeCall();
      answers += Answer(id, std::string(1000, static_cast<char>('a' + id)));
    }
    // Pieces that end within a frame; one of several frames.
    side.SendPiece(answers.substr(0, 2));
    side.SendPiece("");
    side.SendPiece(answers.substr(2, 500));
    side.SendPiece(answers.substr(502));
    peer.Receive(1);
  });
  ConnectTo(server);
  std::vector<Call> calls;
  for (int i = 0; i < 3; ++i) {
    calls.push_back(MakeCall("Ask"));
    calls.back().cells = std::string(300, 'c');  // several pieces
  }
  const auto replies = SendAll(std::move(calls));
  for (size_t i = 0; i < replies.size(); ++i) {
    ASSERT_EQ(replies[i].outcome, Outcome::kAnswer) << replies[i].status;
    EXPECT_THAT(std::string(replies[i].message),
                HasSubstr(std::string(1000, static_cast<char>('b' + i))));
  }
  connection_->Close(Cancelled("over"));
}

TEST_F(SaslConnectionTest, WrongPieceEndsTheConnection) {
  login_->wraps = true;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, true);
    if (!side.Handshake()) return;
    side.TakeHeader();
    side.TakeCall();
    peer.SendBytes(Sized("?wrong"));
    peer.Receive(1);
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kUnknown);
  EXPECT_EQ(reply.status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(reply.status.message(), HasSubstr("a wrong piece"));
}

TEST_F(SaslConnectionTest, RefusalTriesTheOtherName) {
  login_->names = {"first", "second"};
  std::atomic<int> connections = 0;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, false);
    if (++connections == 1) {
      side.TakeFirst();
      return peer.SendBytes(Refusal("GSS initiate failed"));
    }
    if (!side.Handshake()) return;
    EXPECT_TRUE(side.first().ends_with("second"));
    side.TakeHeader();
    peer.SendBytes(Answer(side.TakeCall(), "yes"));
    peer.Receive(1);
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
  EXPECT_EQ(login_->accepted, "second");
  EXPECT_EQ(connections, 2);
  connection_->Close(Cancelled("over"));
}

TEST_F(SaslConnectionTest, RefusedTicketsAreRenewedOnce) {
  login_->names = {"first", "second"};
  login_->may_renew = true;
  login_->server = "hbase/host7@R";
  std::atomic<int> connections = 0;
  std::vector<std::string> names;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, false);
    names.push_back(side.TakeFirst().substr(6));
    ++connections;
    peer.SendBytes(Refusal("GSS initiate failed"));
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_THAT(reply.status.message(), HasSubstr("refuses the login to hbase/host7@R"));
  EXPECT_EQ(connections, 4);
  EXPECT_THAT(names, testing::ElementsAre("first", "second", "first", "second"));
}

TEST_F(SaslConnectionTest, RefusedTicketsAreRenewedWhereTheKdcDoesNotKnowTheOtherName) {
  login_->names = {"second", "first"};
  login_->failure = FailedPrecondition("the KDC does not know first");
  login_->may_renew = true;
  std::atomic<int> connections = 0;
  const SaslServer server([&](Peer& peer) {
    if (++connections == 1) {
      Side(peer, false).TakeFirst();
      return peer.SendBytes(Refusal("GSS initiate failed"));
    }
    LogInAndAnswer(peer);
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
  EXPECT_EQ(connections, 2);
  connection_->Close(Cancelled("over"));
}

std::string Principal(const std::string& name) {
  pb::SecurityPreamableResponse answer;
  answer.set_server_principal(name);
  return PreambleAnswer(answer);
}

// A server whose principal is not known yet. Its answers to the question depend on its version.
class PrincipalQuestionTest : public SaslConnectionTest {
 protected:
  PrincipalQuestionTest() {
    login_->known = false;
    login_->names = {"hbase/_HOST@R", "hmaster/_HOST@R"};
  }
  void ExpectAnswer(const SaslServer& server) {
    ConnectTo(server);
    const Reply reply = Send(MakeCall("Ask"));
    EXPECT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
    connection_->Close(Cancelled("over"));
  }
};

TEST_F(PrincipalQuestionTest, AnswerDecidesWhichNameIsTried) {
  std::promise<std::string> name;
  const SaslServer server([&](Peer& peer) {
    EXPECT_EQ(peer.Receive(6), "Securi");
    peer.SendBytes(Principal("hmaster/host7.example.com@R"));
    name.set_value(LogInAndAnswer(peer));
  });
  ExpectAnswer(server);
  EXPECT_EQ(name.get_future().get(), "hmaster/_HOST@R");
  EXPECT_EQ(login_->accepted, "hmaster/_HOST@R");
}

TEST_F(PrincipalQuestionTest, AnswerThatIsNeitherNameLeavesBothToTry) {
  std::atomic<int> connections = 0;
  const SaslServer server([&](Peer& peer) {
    if (++connections == 2) return void(LogInAndAnswer(peer));
    EXPECT_EQ(peer.Receive(6), "Securi");
    peer.SendBytes(Principal("root"));
    Side(peer, false).TakeFirst();
    peer.SendBytes(Refusal("GSS initiate failed"));
  });
  ExpectAnswer(server);
  EXPECT_EQ(login_->accepted, "hmaster/_HOST@R");
  EXPECT_EQ(connections, 2);
}

TEST_F(PrincipalQuestionTest, ServerThatClosesAtTheQuestionIsConnectedAgain) {
  std::atomic<int> connections = 0;
  const SaslServer server([&](Peer& peer) {
    if (++connections == 2) return void(LogInAndAnswer(peer));
    peer.Receive(6);
    peer.Throw(0xffffffff, "ipc.FatalConnectionException", "Expected HEADER=HBas", true);
  });
  ExpectAnswer(server);
  EXPECT_EQ(login_->accepted, "hbase/_HOST@R");
}

TEST_F(PrincipalQuestionTest, ServerWithoutSecurityStaysConnected) {
  login_->fallback = true;
  const SaslServer server([&](Peer& peer) {
    peer.Receive(6);
    peer.Throw(0xffffffff, "ipc.SecurityNotEnabledException");
    Side side(peer, false);
    side.TakeFirst();
    peer.SendBytes(NoSecurity());
    side.TakeHeader();
    peer.SendBytes(Answer(side.TakeCall(), "yes"));
    peer.Receive(1);
  });
  ExpectAnswer(server);
}

TEST_F(PrincipalQuestionTest, NamesStandForPrincipalsOfTheirServiceAndRealm) {
  EXPECT_TRUE(NamesPrincipal("hbase/_HOST@R", "hbase/a.b@R"));
  EXPECT_TRUE(NamesPrincipal("hbase/a@R", "hbase/a@R"));
  for (const char* other : {"", "root", "hbase/@R", "hbase@R", "hbase/a@S", "hmaster/a@R",
                            "xhbase/a@R", "hbase/a/b@R"}) {
    EXPECT_FALSE(NamesPrincipal("hbase/_HOST@R", other)) << other;
  }
  EXPECT_FALSE(NamesPrincipal("hbase/a@R", "hbase/b@R"));
}

TEST_F(SaslConnectionTest, NameUnknownToTheKdcTriesTheOtherOne) {
  login_->names = {"first", "second"};
  login_->failure = FailedPrecondition("the KDC does not know first");
  const SaslServer server([&](Peer& peer) { LogInAndAnswer(peer); });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
  EXPECT_EQ(login_->accepted, "second");
  connection_->Close(Cancelled("over"));
}

TEST_F(SaslConnectionTest, RefusalOfEveryNameTellsOfTheFirst) {
  login_->names = {"first", "second"};
  const SaslServer server([&](Peer& peer) {
    const std::string first = Side(peer, false).TakeFirst();
    peer.SendBytes(Refusal("GSS initiate failed"));
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_EQ(reply.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(reply.status.message(),
              AllOf(HasSubstr("refuses the login to first"), HasSubstr("GSS initiate failed")));
  EXPECT_EQ(login_->accepted, "");
}

TEST_F(SaslConnectionTest, ServerWithoutSecurityIsUsedOnlyIfFallbackAllowsIt) {
  pb::ConnectionHeader header;
  const SaslServer server([&](Peer& peer) {
    Side side(peer, false);
    side.TakeFirst();
    peer.SendBytes(NoSecurity());
    header = side.TakeHeader();
    const uint32_t id = side.TakeCall();
    if (id != 0) peer.SendBytes(Answer(id, "yes"));
    peer.Receive(1);
  });
  ConnectTo(server);
  const Reply refused = Send(MakeCall("Ask"));
  EXPECT_EQ(refused.outcome, Outcome::kNotSent);
  EXPECT_EQ(refused.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(refused.status.message(), HasSubstr("fallback=simple"));

  login_->fallback = true;
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer) << reply.status;
  EXPECT_EQ(header.user_info().effective_user(), "somebody");
  connection_->Close(Cancelled("over"));
}

TEST_F(SaslConnectionTest, BytesOutOfTurnEndTheLogin) {
  const SaslServer server([&](Peer& peer) {
    Side(peer, false).TakeFirst();
    peer.SendBytes(Challenge("1") + Challenge("2"));
    peer.Receive(1);
  });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_THAT(reply.status.message(), HasSubstr("more than its turn"));
}

TEST_F(SaslConnectionTest, SilentServerEndsTheLoginInTime) {
  handshake_timeout_ = std::chrono::milliseconds(20);
  const SaslServer server([&](Peer& peer) { peer.Receive(1000); });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_THAT(reply.status.message(), HasSubstr("no answer to the login within 20 ms"));
}

TEST_F(SaslConnectionTest, LoginWithoutTicketSendsNothing) {
  login_->failure = FailedPrecondition("there is no Kerberos ticket");
  std::promise<std::string> received;
  const SaslServer server([&](Peer& peer) { received.set_value(peer.Receive(1)); });
  ConnectTo(server);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_EQ(reply.status.message(), "there is no Kerberos ticket");
  EXPECT_EQ(received.get_future().get(), "");
}

TEST(SaslReplyTest, ParsesEachKindAndRefusesForeignBytes) {
  const auto challenge = ParseSaslReply(Challenge("token"));
  ASSERT_TRUE(challenge.ok() && *challenge);
  EXPECT_EQ((*challenge)->size, 13u);
  const std::string bytes = Refusal("no");
  const auto refusal = ParseSaslReply(bytes);
  ASSERT_TRUE(refusal.ok() && *refusal);
  EXPECT_EQ((*refusal)->message, "no");
  EXPECT_EQ((*refusal)->class_name, "javax.security.sasl.SaslException");
  const auto none = ParseSaslReply(NoSecurity());
  ASSERT_TRUE(none.ok() && *none);
  EXPECT_EQ((*none)->kind, SaslReply::Kind::kNoSecurity);
  EXPECT_EQ(ParseSaslReply("HTTP/1.1 400 Bad").status().code(), StatusCode::kDataLoss);
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto part = ParseSaslReply(bytes.substr(0, size));
    EXPECT_TRUE(part.ok() && !*part) << size;
  }
}

}  // namespace
}  // namespace tamis::hbase
