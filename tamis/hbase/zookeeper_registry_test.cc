#include "tamis/hbase/zookeeper_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <map>
#include <optional>
#include <string>

#include "tamis/base/coding.h"
#include "tamis/hbase/testing/loopback_listener.h"
#include "tamis/hbase/testing/scripted_server.h"
#include "tamis/hbase/testing/sized_bytes.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

namespace asio = boost::asio;

using testing::AllOf;
using testing::HasSubstr;
using Peer = ScriptedServer::Peer;

std::string Znode(const google::protobuf::MessageLite& message) {
  return "\xff" + Sized("master:16000") + "PBUF" + message.SerializeAsString();
}

using Znodes = std::map<std::string, std::string>;

// A member of a quorum: its znodes; without any, it closes every connection.
class ScriptedZooKeeper {
 public:
  explicit ScriptedZooKeeper(Znodes znodes, bool answers = true)
      : znodes_(std::move(znodes)), answers_(answers), listener_([this](int socket) {
          Peer peer(socket);
          if (!znodes_.empty()) Serve(peer);
        }) {}
  std::string address() const { return listener_.address().ToString(); }

 private:
  static std::string Take(Peer& peer) {
    const std::string size = peer.Receive(4);
    return size.empty() ? "" : peer.Receive(Reader(size).Big32());
  }
  void Serve(Peer& peer) {
    if (Take(peer).size() != 45) return;  // a ConnectRequest
    if (!answers_) {
      peer.Receive(1000);
      return;
    }
    peer.SendBytes(Sized(std::string(4 + 4 + 8 + 4 + 16 + 1, '\0')));
    const std::string request = Take(peer);
    Reader reader(request);
    const uint32_t id = reader.Big32();
    EXPECT_EQ(reader.Big32(), 4u);  // getData
    const std::string path(reader.Bytes(reader.Big32()));
    EXPECT_EQ(reader.Byte(), 0);  // no watch
    const auto found = znodes_.find(path);
    std::string answer;
    PutBig32(&answer, id);
    PutBig64(&answer, 0);
    PutBig32(&answer, found == znodes_.end() ? static_cast<uint32_t>(-101) : 0);
    if (found != znodes_.end()) answer += Sized(found->second) + std::string(68, '\0');
    peer.SendBytes(Sized(answer));
    EXPECT_EQ(Take(peer).substr(4), "\xff\xff\xff\xf5");  // closes the session
  }

  const Znodes znodes_;
  const bool answers_;
  const LoopbackListener listener_;
};

class ZooKeeperRegistryTest : public testing::Test {
 protected:
  ZooKeeperRegistryTest() {
    master_.mutable_master()->set_host_name("m");
    master_.mutable_master()->set_port(16000);
    master_.mutable_master()->set_start_code(7);
  }

  Result<ServerName> ActiveMaster(const std::string& quorum, const std::string& parent = "/hbase") {
    ZooKeeperRegistry registry(io_, timers_, {.quorum = quorum, .parent = parent});
    std::optional<Result<ServerName>> found;
    asio::co_spawn(io_, Ask(registry, Clock::now() + time_, &found), EndIfItThrew);
    while (!found) io_.run_one();
    return *std::move(found);
  }

  static Task<void> Ask(ZooKeeperRegistry& registry, Deadline deadline,
                        std::optional<Result<ServerName>>* found) {
    *found = co_await registry.ActiveMaster(deadline);
  }

  asio::io_context io_;
  const asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  Timers timers_{io_};
  pb::Master master_;
  std::chrono::milliseconds time_{60'000};
};

TEST_F(ZooKeeperRegistryTest, ReadsTheMastersZnode) {
  const ScriptedZooKeeper member(Znodes{{"/secure/master", Znode(master_)}});
  const auto found = ActiveMaster(member.address(), "/secure");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->ToString(), "m,16000,7");
}

TEST_F(ZooKeeperRegistryTest, DeadMembersArePassedOver) {
  const ScriptedZooKeeper closing(Znodes{});
  const ScriptedZooKeeper member(Znodes{{"/hbase/master", Znode(master_)}});
  const auto found = ActiveMaster("localhost:1," + closing.address() + "," + member.address());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->address.host, "m");
}

TEST_F(ZooKeeperRegistryTest, ErrorHasTheReasonOfEachMember) {
  const ScriptedZooKeeper closing(Znodes{});
  const ScriptedZooKeeper empty(Znodes{{"/other", ""}});
  const auto found = ActiveMaster("localhost:1," + closing.address() + "," + empty.address());
  EXPECT_EQ(found.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(found.status().message(),
              AllOf(HasSubstr("localhost:1: Connection refused"),
                    HasSubstr(closing.address() + ": it closes the connection"),
                    HasSubstr("no znode /hbase/master: HBase does not run, or "
                              "zookeeper.znode.parent is another one")));
}

TEST_F(ZooKeeperRegistryTest, WrongQuorumIsFinal) {
  const ScriptedZooKeeper closing(Znodes{});
  EXPECT_EQ(ActiveMaster("localhost:1," + closing.address()).status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(ZooKeeperRegistryTest, SilentMemberEndsInTime) {
  const ScriptedZooKeeper silent(Znodes{{"/hbase/master", Znode(master_)}}, false);
  time_ = std::chrono::milliseconds(20);
  const auto found = ActiveMaster(silent.address());
  EXPECT_THAT(found.status().message(), HasSubstr("no answer in time"));
}

TEST_F(ZooKeeperRegistryTest, ForeignValueIsAnError) {
  const ScriptedZooKeeper member(Znodes{{"/hbase/master", "something"}});
  EXPECT_EQ(ActiveMaster(member.address()).status().code(), StatusCode::kDataLoss);
  const std::string value = Znode(master_);
  EXPECT_TRUE(MessageOfZnode(value).ok());
  for (size_t size = 0; size < 21; ++size) {
    EXPECT_FALSE(MessageOfZnode(value.substr(0, size)).ok()) << size;
  }
}

}  // namespace
}  // namespace tamis::hbase
