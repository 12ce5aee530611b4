// Clients whose addresses are not those of an HBase. Operations may take an hour, so that a test
// which ends shows that the reason was reported at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <future>
#include <thread>

#include "tamis/hbase/client.h"
#include "tamis/hbase/testing/scripted_cluster.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

using testing::AllOf;
using testing::HasSubstr;

// A server of another kind: it reads four bytes, answers, and closes.
class ForeignServer {
 public:
  explicit ForeignServer(std::string answer) : answer_(std::move(answer)) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~ForeignServer() {
    io_.stop();
    thread_.join();
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](const boost::system::error_code&, asio::ip::tcp::socket socket) {
      std::array<char, 4> first;
      boost::system::error_code ignored;
      asio::read(socket, asio::buffer(first), ignored);
      asio::write(socket, asio::buffer(answer_), ignored);
      Accept();
    });
  }

  const std::string answer_;
  asio::io_context io_;
  asio::ip::tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

class WrongAddressTest : public testing::Test {
 protected:
  static std::string RefusingAddress() {
    const ScriptedServer gone;
    return gone.address().ToString();
  }
  static std::unique_ptr<Client> Open(const std::string& addresses,
                                      std::function<Address(const Address&)> way = {}) {
    return *Client::Open({.addresses = addresses,
                          .way = std::move(way),
                          .operation_timeout = std::chrono::hours(1)});
  }
  static std::string WhyNot(const std::string& addresses) {
    const Status status = Open(addresses)->Namespaces().status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    return status.message();
  }
};

TEST_F(WrongAddressTest, RefusedConnectionIsReportedAtOnce) {
  const std::string one = RefusingAddress();
  const std::string other = RefusingAddress();
  EXPECT_THAT(WhyNot(one + "," + other),
              AllOf(HasSubstr(one), HasSubstr(other), HasSubstr("refused")));
}

TEST_F(WrongAddressTest, UnknownHostIsReportedAtOnce) {
  // The resolver needs no network to know that there is no such interface.
  EXPECT_THAT(WhyNot("[fe80::1%nosuchinterface]:16000"),
              AllOf(HasSubstr("nosuchinterface"), HasSubstr("cannot be resolved")));
}

// ZooKeeper reads four bytes as a length, rejects it, and closes.
TEST_F(WrongAddressTest, ZooKeepersPortIsReportedAtOnce) {
  const ForeignServer zookeeper("");
  EXPECT_THAT(WhyNot(zookeeper.address()),
              AllOf(HasSubstr("before its first answer"), HasSubstr("ZooKeeper")));
}

TEST_F(WrongAddressTest, AnswerOfAnotherProtocolIsReportedAtOnce) {
  const ForeignServer web("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(WhyNot(web.address()),
              AllOf(HasSubstr(web.address()), HasSubstr("does not answer as an HBase")));
  const ForeignServer other(std::string("\0\0\0\x03\xff\xff\xff", 7));
  EXPECT_THAT(WhyNot(other.address()), HasSubstr("does not answer as an HBase"));
}

// The reasons differ, and none will mend.
TEST_F(WrongAddressTest, EachAddressHasItsReason) {
  const ForeignServer zookeeper("");
  EXPECT_THAT(WhyNot(RefusingAddress() + "," + zookeeper.address()),
              AllOf(HasSubstr("refused"), HasSubstr("ZooKeeper")));
}

TEST_F(WrongAddressTest, MasterThatStartsIsWaitedFor) {
  ScriptedCluster cluster(1);
  cluster.server(0).On("ListNamespaces", [](const auto& request, const auto& peer) {
    peer->Answer(request.call_id, pb::ListNamespacesResponse());
  });
  std::atomic<int> calls = 0;
  cluster.server(0).On("GetActiveMaster", [&](const auto& request, const auto& peer) {
    pb::GetActiveMasterResponse answer;
    if (++calls > 3) ToProto(cluster.server(0).name(), answer.mutable_server_name());
    if (calls < 3) return peer->Throw(request.call_id, "ipc.ServerNotRunningYetException");
    peer->Answer(request.call_id, answer);
  });
  const auto client = Open(RefusingAddress() + "," + cluster.server(0).address().ToString());
  EXPECT_TRUE(client->Namespaces().ok());
  EXPECT_EQ(calls, 4);
}

// All operations ask the first server and lose the connection at the same moment.
TEST_F(WrongAddressTest, OperationsAtTheSameTimeTryEveryAddress) {
  constexpr int kOperations = 4;
  ScriptedServer foreign;
  foreign.On("GetActiveMaster", [&](const auto&, const auto& peer) {
    if (foreign.calls("GetActiveMaster") == kOperations) peer->Close();
  });
  ScriptedCluster cluster(1);
  cluster.server(0).On("ListNamespaces", [](const auto& request, const auto& peer) {
    peer->Answer(request.call_id, pb::ListNamespacesResponse());
  });
  const auto client =
      Open(foreign.address().ToString() + "," + cluster.server(0).address().ToString());
  std::vector<std::future<Status>> operations;
  for (int i = 0; i < kOperations; ++i) {
    operations.push_back(
        std::async(std::launch::async, [&] { return client->Namespaces().status(); }));
  }
  for (auto& operation : operations) EXPECT_EQ(operation.get(), Status());
}

// After the first answer the addresses are known to be right: HBase may be restarted.
TEST_F(WrongAddressTest, RefusedConnectionIsRetriedAfterTheFirstAnswer) {
  ScriptedCluster cluster(1);
  std::atomic<int> refusals = 0;
  std::atomic<bool> is_over = false;
  const auto answer_unless_over = [&](const auto& request, const auto& peer) {
    if (!is_over.exchange(false)) {
      return peer->Answer(request.call_id, pb::ListNamespacesResponse());
    }
    refusals = 2;
    peer->Close();
  };
  cluster.server(0).On("ListNamespaces", answer_unless_over);
  cluster.server(0).On("GetActiveMaster", [&](const auto& request, const auto& peer) {
    if (refusals > 0) return peer->Close();
    pb::GetActiveMasterResponse answer;
    ToProto(cluster.server(0).name(), answer.mutable_server_name());
    peer->Answer(request.call_id, answer);
  });
  const Address nothing = *ParseAddresses(RefusingAddress())->begin();
  const auto client = Open(cluster.server(0).address().ToString(), [&](const Address& to) {
    if (refusals == 0) return to;
    --refusals;
    return nothing;
  });
  EXPECT_TRUE(client->Namespaces().ok());
  is_over = true;
  EXPECT_TRUE(client->Namespaces().ok());
  EXPECT_EQ(refusals, 0);
}

}  // namespace
}  // namespace tamis::hbase
