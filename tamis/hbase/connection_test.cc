#include "tamis/hbase/connection.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "tamis/base/coding.h"
#include "tamis/hbase/channel.h"
#include "tamis/hbase/testing/connection_test_case.h"

namespace tamis::hbase {
namespace {

using testing::HasSubstr;
using Outcome = Reply::Outcome;

TEST_F(ConnectionTest, MatchesAnswersInAnyOrder) {
  std::vector<uint32_t> ids;
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    ids.push_back(request.call_id);
    if (ids.size() < 10) return;
    // Copies the ids: the test may end with the last answer.
    const std::vector<uint32_t> all = ids;
    for (auto id = all.rbegin(); id != all.rend(); ++id) {
      peer->Answer(*id, Id("answer to " + std::to_string(*id)), "cells");
    }
  });
  Connect();
  std::vector<Call> calls;
  for (int i = 0; i < 10; ++i) calls.push_back(MakeCall("Ask"));
  const auto replies = SendAll(std::move(calls));
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_EQ(replies[i].outcome, Outcome::kAnswer) << replies[i].status;
    EXPECT_THAT(std::string(replies[i].message), HasSubstr("answer to " + std::to_string(i + 1)));
    EXPECT_EQ(replies[i].cells, "cells");
  }
}

TEST_F(ConnectionTest, SendsTimeoutAndPriority) {
  uint32_t timeout = 0;
  uint32_t priority = 0;
  std::string service;
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    timeout = request.timeout_ms;
    priority = request.priority;
    service = request.service;
    peer->Answer(request.call_id, Id(""));
  });
  Connect();
  Call call = MakeCall("Ask", kLong);
  call.priority = 100;
  EXPECT_EQ(Send(std::move(call)).outcome, Outcome::kAnswer);
  EXPECT_LE(timeout, 60000u);
  EXPECT_GT(timeout, 0u);
  EXPECT_EQ(priority, 100u);
  EXPECT_EQ(service, "ClientService");
}

TEST_F(ConnectionTest, ServerExceptionEndsTheCall) {
  server_.On("Ask", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "exceptions.RegionMovedException",
                "Region moved to: hostname=h port=7 startCode=8. As of locationSeqNum=9.");
  });
  Connect();
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kException);
  EXPECT_EQ(reply.exception.retry_action(), RetryAction::kRelocate);
  ASSERT_TRUE(reply.exception.moved);
  EXPECT_EQ(reply.exception.moved->server.ToString(), "h,7,8");
  EXPECT_EQ(reply.exception.moved->sequence, 9);
  EXPECT_TRUE(connection_->status().ok());
}

TEST_F(ConnectionTest, TimesOutAndIgnoresALateAnswer) {
  uint32_t late = 0;
  server_.On("Never", [&](const auto& request, const auto&) { late = request.call_id; });
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    peer->Answer(late, Id("late"));
    peer->Answer(late, Id("later"));
    peer->Answer(request.call_id, Id("in time"));
  });
  Connect();
  const Reply lost = Send(MakeCall("Never", std::chrono::milliseconds(20)));
  EXPECT_EQ(lost.outcome, Outcome::kUnknown);
  EXPECT_EQ(lost.status.code(), StatusCode::kDeadlineExceeded);
  // The client may still have to write the call after the deadline, and the server to read it.
  while (server_.calls("Never") == 0) {
    io_.poll();
    std::this_thread::yield();
  }
  const Reply reply = Send(MakeCall("Ask"));
  ASSERT_EQ(reply.outcome, Outcome::kAnswer);
  EXPECT_THAT(std::string(reply.message), HasSubstr("in time"));
}

TEST_F(ConnectionTest, OutcomeIsUnknownIfTheConnectionBreaksDuringACall) {
  server_.On("Ask", [](const auto&, const auto& peer) { peer->Close(); });
  server_.On("First",
             [](const auto& request, const auto& peer) { peer->Answer(request.call_id, Id("")); });
  Connect();
  EXPECT_EQ(Send(MakeCall("First")).outcome, Outcome::kAnswer);
  std::vector<Call> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(MakeCall("Ask"));
  for (const Reply& reply : SendAll(std::move(calls))) {
    EXPECT_EQ(reply.outcome, Outcome::kUnknown);
    EXPECT_THAT(reply.status.message(), HasSubstr("the connection broke"));
  }
  // Later calls are not sent.
  EXPECT_EQ(Send(MakeCall("Ask")).outcome, Outcome::kNotSent);
}

TEST_F(ConnectionTest, CloseBeforeTheFirstAnswerNamesPossibleCauses) {
  server_.On("Ask", [](const auto&, const auto& peer) { peer->Close(); });
  Connect();
  EXPECT_THAT(Send(MakeCall("Ask")).status.message(),
              HasSubstr("is there a ClientService on this port"));
}

TEST_F(ConnectionTest, CallsOnARefusedConnectionDidNotRun) {
  server_.On("Ask", [](const auto&, const auto& peer) {
    peer->Throw(0xffffffff, "ipc.BadAuthException", "not so", true);
    peer->Close();
  });
  Connect();
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_EQ(reply.status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(reply.status.message(), HasSubstr("not so"));
}

TEST_F(ConnectionTest, FailsIfNothingListens) {
  Address nobody;
  {
    ScriptedServer gone;
    nobody = gone.address();
  }
  connection_ = Connection::Open(io_, timers_, nobody, {});
  EXPECT_EQ(Send(MakeCall("Ask")).outcome, Outcome::kNotSent);
}

TEST_F(ConnectionTest, InvalidBytesEndTheConnection) {
  const auto after = [&](const std::string& bytes) {
    // The handler owns a copy: the client may be done with the bytes before the server is.
    server_.On("Ask", [bytes](const auto&, const auto& peer) { peer->SendBytes(bytes); });
    Connect();
    const Reply reply = Send(MakeCall("Ask"));
    EXPECT_EQ(reply.outcome, Outcome::kUnknown);
    EXPECT_EQ(reply.status.code(), StatusCode::kDataLoss) << reply.status;
    return reply.status.message();
  };
  EXPECT_THAT(after("HTTP/1.1 400 Bad Request\r\n"), HasSubstr("are allowed"));
  EXPECT_THAT(after(std::string("\0\0\0\3\2\x08\1", 7)), HasSubstr("do not fit together"));
  EXPECT_THAT(after(std::string("\0\0\0\2\x7f\1", 6)), HasSubstr("header cannot be read"));
  // An answer to call 77, although only one call was made.
  EXPECT_THAT(after(std::string("\0\0\0\4\2\x08\x4d\0", 8)), HasSubstr("never made"));
}

TEST_F(ConnectionTest, TooLargeAnswerEndsTheCallBeforeAllBytesArrive) {
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    std::string begin;
    PutBig32(&begin, 2000);
    pb::ResponseHeader header;
    header.set_call_id(request.call_id);
    AppendDelimited(header, &begin);
    peer->SendBytes(begin);
  });
  Connect({.max_frame_bytes = 1999});
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kUnknown);
  EXPECT_THAT(reply.status.message(), HasSubstr("2000 bytes, where 1999 are allowed"));
}

TEST_F(ConnectionTest, TooLargeAnswerFailsOnlyItsCall) {
  server_.On("Large", [](const auto& request, const auto& peer) {
    peer->Answer(request.call_id, Id("large"), std::string(200'000, 'c'));
  });
  server_.On("Ask",
             [](const auto& request, const auto& peer) { peer->Answer(request.call_id, Id("")); });
  Connect({.max_frame_bytes = 1999});
  std::vector<Call> calls;
  for (const char* method : {"Ask", "Large", "Ask"}) calls.push_back(MakeCall(method));
  const auto replies = SendAll(std::move(calls));
  EXPECT_EQ(replies[0].outcome, Outcome::kAnswer);
  EXPECT_EQ(replies[1].outcome, Outcome::kUnknown);
  EXPECT_EQ(replies[1].status.code(), StatusCode::kResourceExhausted) << replies[1].status;
  EXPECT_EQ(replies[2].outcome, Outcome::kAnswer) << replies[2].status;
  EXPECT_EQ(Send(MakeCall("Ask")).outcome, Outcome::kAnswer);
}

TEST_F(ConnectionTest, TooLargeRequestIsNotSent) {
  server_.On("Ask",
             [](const auto& request, const auto& peer) { peer->Answer(request.call_id, Id("")); });
  Connect({.max_request_bytes = 100});
  Call call = MakeCall("Ask");
  call.cells = std::string(101, 'c');
  const Reply reply = Send(std::move(call));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_EQ(reply.status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Send(MakeCall("Ask")).outcome, Outcome::kAnswer);
}

TEST_F(ConnectionTest, ReadsAnAnswerByteByByte) {
  server_.On("Ask", [](const auto& request, const auto& peer) {
    pb::ResponseHeader header;
    header.set_call_id(request.call_id);
    std::string body;
    AppendDelimited(header, &body);
    AppendDelimited(Id("slow"), &body);
    std::string frame;
    PutBig32(&frame, static_cast<uint32_t>(body.size()));
    for (const char c : frame + body) peer->SendBytes({&c, 1});
  });
  Connect();
  EXPECT_THAT(std::string(Send(MakeCall("Ask")).message), HasSubstr("slow"));
}

// ---- Channels.

class ChannelTest : public ConnectionTest {
 protected:
  std::shared_ptr<Channel> To(const Address& address, double window) {
    Channel::Options options;
    options.connection.service = "ClientService";
    options.max_window = window;
    return std::make_shared<Channel>(io_, timers_, address, options);
  }
};

TEST_F(ChannelTest, WindowLimitsCallsInFlight) {
  std::vector<std::pair<uint32_t, ScriptedServer::PeerPtr>> held;
  held.reserve(20);
  std::atomic<int> received = 0;
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    held.emplace_back(request.call_id, peer);
    ++received;
  });
  server_.On("Go", [](const auto&, const auto&) {});
  const auto channel = To(server_.address(), 8);
  int ended = 0;
  for (int i = 0; i < 20; ++i) channel->Send(MakeCall("Ask"), [&](const Reply&) { ++ended; });
  EXPECT_EQ(channel->in_flight(), 8u);
  for (int answered = 0; answered < 20; ++answered) {
    while (received <= answered) io_.poll();
    EXPECT_LE(received, answered + 8);
    held[answered].second->Answer(held[answered].first, Id(""));
    while (ended <= answered) io_.run_one();
  }
  EXPECT_EQ(server_.connections(), 1);
  channel->Close(Cancelled("over"));
}

TEST_F(ChannelTest, WindowShrinksWhenTheServerIsOverloaded) {
  server_.On("Ask", [](const auto& request, const auto& peer) {
    pb::ResponseHeader header;
    header.set_call_id(request.call_id);
    header.mutable_exception()->set_exception_class_name("x.CallQueueTooBigException");
    header.mutable_exception()->set_server_overloaded(true);
    std::string body;
    AppendDelimited(header, &body);
    std::string frame;
    PutBig32(&frame, static_cast<uint32_t>(body.size()));
    peer->SendBytes(frame + body);
  });
  const auto channel = To(server_.address(), 64);
  for (int i = 0; i < 3; ++i) {
    bool ended = false;
    channel->Send(MakeCall("Ask"), [&](const Reply& reply) {
      EXPECT_EQ(reply.exception.retry_action(), RetryAction::kBackOff);
      ended = true;
    });
    while (!ended) io_.run_one();
  }
  EXPECT_EQ(channel->window(), 8);
  channel->Close(Cancelled("over"));
  // Overload does not raise a window that is already smaller than the minimum.
  const auto narrow = To(server_.address(), 1);
  bool ended = false;
  narrow->Send(MakeCall("Ask"), [&](const Reply&) { ended = true; });
  while (!ended) io_.run_one();
  EXPECT_EQ(narrow->window(), 1);
  narrow->Close(Cancelled("over"));
}

TEST_F(ChannelTest, ReopensABrokenConnection) {
  std::atomic<bool> first = true;  // each connection has a thread
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    if (first.exchange(false)) return peer->Close();
    peer->Answer(request.call_id, Id("again"));
  });
  const auto channel = To(server_.address(), 8);
  const auto ask = [&] {
    std::optional<Reply> reply;
    channel->Send(MakeCall("Ask"), [&](Reply r) { reply = std::move(r); });
    while (!reply) io_.run_one();
    return *reply;
  };
  const Reply broken = ask();
  EXPECT_EQ(broken.outcome, Outcome::kUnknown);
  EXPECT_THAT(broken.status.message(), HasSubstr(server_.address().ToString()));
  // During the pause, calls fail at once with the old reason.
  Reply reply = ask();
  while (reply.outcome == Outcome::kNotSent) {
    EXPECT_THAT(reply.status.message(), HasSubstr("the connection broke"));
    reply = ask();
  }
  EXPECT_EQ(reply.outcome, Outcome::kAnswer);
  EXPECT_EQ(server_.connections(), 2);
  channel->Close(Cancelled("over"));
}

TEST_F(ChannelTest, ClosedChannelStaysClosed) {
  const auto channel = To(server_.address(), 8);
  const auto send = [&] {
    auto reply = std::make_shared<std::optional<Reply>>();
    channel->Send(MakeCall("Ask"), [reply](Reply r) { *reply = std::move(r); });
    return reply;
  };
  const auto ended = send();
  while (server_.calls("Ask") == 0) io_.poll();
  channel->Close(Cancelled("over"));
  while (!*ended) io_.run_one();
  // Longer than the pause after a failure.
  const auto end = Clock::now() + std::chrono::milliseconds(50);
  while (Clock::now() < end) {
    const auto later = send();
    while (!*later) io_.run_one();
    EXPECT_EQ((*later)->status, Cancelled("over"));
  }
  EXPECT_EQ(channel->connections_opened(), 1u);
}

// The peer's kernel still accepts bytes, so the connection does not break: a machine cut off after
// a proxy, or a process that hangs.
TEST_F(ChannelTest, ReplacesASilentConnection) {
  std::mutex mutex;
  std::vector<std::pair<uint32_t, ScriptedServer::PeerPtr>> held;
  std::atomic<int> received = 0;
  server_.On("Wait", [&](const auto& request, const auto& peer) {
    const std::lock_guard lock(mutex);
    held.emplace_back(request.call_id, peer);
    ++received;
  });
  server_.On("Ask", [&](const auto& request, const auto& peer) {
    {
      const std::lock_guard lock(mutex);
      if (!held.empty() && held[0].second == peer) return;
    }
    peer->Answer(request.call_id, Id("here"));  // the test may end, and the mutex with it
  });
  Channel::Options options;
  options.connection.service = "ClientService";
  options.patience = std::chrono::milliseconds(10);
  const auto channel = std::make_shared<Channel>(io_, timers_, server_.address(), options);
  const auto send = [&](Call call) {
    auto reply = std::make_shared<std::optional<Reply>>();
    channel->Send(std::move(call), [reply](Reply r) { *reply = std::move(r); });
    return reply;
  };
  const auto waiting = send(MakeCall("Wait"));
  while (received == 0) io_.poll();
  const auto lost = send(MakeCall("Ask", std::chrono::milliseconds(50)));
  while (!*lost) io_.run_one();
  EXPECT_EQ((*lost)->outcome, Outcome::kUnknown);
  const auto next = send(MakeCall("Ask", std::chrono::seconds(20)));
  while (!*next) io_.run_one();
  EXPECT_EQ((*next)->outcome, Outcome::kAnswer) << (*next)->status;
  EXPECT_EQ(server_.connections(), 2);
  // Calls on the old connection keep their deadlines.
  EXPECT_FALSE(*waiting);
  held[0].second->Answer(held[0].first, Id("late, but not too late"));
  while (!*waiting) io_.run_one();
  EXPECT_EQ((*waiting)->outcome, Outcome::kAnswer);
  // The old connection is closed after its last call has ended.
  while (server_.connections_ended() < 1) io_.poll();
  channel->Close(Cancelled("over"));
}

// A listener that never accepts and whose queue is full: the next client stays in the connecting
// state.
class FullListener {
 public:
  FullListener() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    where_.sin_family = AF_INET;
    where_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(where_);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&where_), size), 0);
    EXPECT_EQ(::listen(listener_, 0), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&where_), &size), 0);
    for (int& waiting : waiting_) {
      waiting = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      ::connect(waiting, reinterpret_cast<sockaddr*>(&where_), sizeof(where_));
    }
  }
  ~FullListener() {
    for (const int waiting : waiting_) ::close(waiting);
    ::close(listener_);
  }
  Address address() const { return {"127.0.0.1", ntohs(where_.sin_port)}; }

 private:
  int listener_ = -1;
  int waiting_[4] = {};
  sockaddr_in where_{};
};

TEST_F(ChannelTest, ConnectionMayBeDroppedWhileItConnects) {
  const FullListener silent;
  Channel::Options options;
  options.connection.service = "ClientService";
  options.connection.connect_timeout = std::chrono::seconds(60);
  options.patience = std::chrono::milliseconds(10);
  const auto channel = std::make_shared<Channel>(io_, timers_, silent.address(), options);
  std::optional<Reply> reply;
  channel->Send(MakeCall("Ask", std::chrono::milliseconds(50)),
                [&](Reply r) { reply = std::move(r); });
  while (!reply) io_.run_one();
  EXPECT_THAT(reply->status.message(), HasSubstr("no connection in time"));
  // The pending operation ends after the last owner has gone.
  io_.poll();
  channel->Close(Cancelled("over"));
}

TEST_F(ConnectionTest, ThrowingWayFailsOnlyItsConnection) {
  Connection::Options options;
  options.way = [](const Address&) -> Address { throw std::runtime_error("no tunnel is free"); };
  Connect(options);
  const Reply reply = Send(MakeCall("Ask"));
  EXPECT_EQ(reply.outcome, Outcome::kNotSent);
  EXPECT_THAT(reply.status.message(), HasSubstr("no tunnel is free"));
}

}  // namespace
}  // namespace tamis::hbase
