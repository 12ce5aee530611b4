// Errors of a cluster that cannot be reached, and destruction while the client is still answering.
#include "tamis/hbase_cluster/hbase_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <functional>
#include <thread>

#include "tamis/hbase/testing/scripted_cluster.h"

namespace tamis {
namespace {

namespace asio = boost::asio;

using testing::AllOf;
using testing::HasSubstr;

// If a region has moved, the cluster reads hbase:meta, and the answer arrives on the client's
// thread. The answer is long, so that some destructions happen while it is being processed.
TEST(HBaseClusterTest, AnswerMayArriveDuringDestruction) {
  hbase::ScriptedCluster scripted(2);
  constexpr int kRegions = 600;
  const auto key = [](int i) { return std::to_string(1000 + i); };
  hbase::Region whole = scripted.SetRegion(key(0), key(1), 1);
  for (int i = 1; i < kRegions; ++i) scripted.SetRegion(key(i), key(i + 1), 1);
  whole.end = "";
  scripted.server(1).On("ExecService", [](const auto& request, const auto& peer) {
    peer->Throw(request.call_id, "NotServingRegionException");
  });
  const std::string address = scripted.server(1).address().ToString();
  for (int i = 0; i < 20; ++i) {
    ThreadExecutor executor(1);
    auto cluster = *HBaseCluster::Open({.client = {.addresses = address}}, &executor);
    cluster->known_regions().Learn("t", {}, {std::make_shared<hbase::Region>(whole)});
    const int reads = scripted.meta_reads();
    cluster->Stub(address)->GetStatus({}, [](const auto&) {});
    while (scripted.meta_reads() < reads + 2) std::this_thread::yield();
    for (int turn = 0; turn < 3000 * i; ++turn) std::this_thread::yield();
    cluster.reset();
  }
}

TEST(HBaseClusterTest, ReportsWhyAnAddressFails) {
  const auto why = [](const std::string& addresses) {
    return HBaseCluster::WhyNoAnswer({.addresses = addresses}, std::chrono::milliseconds(500))
        .message();
  };
  EXPECT_THAT(why("localhost:1"), AllOf(HasSubstr("localhost:1"), HasSubstr("refused")));
  EXPECT_THAT(why("nobody.invalid:16000"),
              AllOf(HasSubstr("nobody.invalid:16000"), HasSubstr("cannot be resolved")));
  // Like ZooKeeper: it reads four bytes as a length, rejects it, and closes.
  asio::io_context io;
  asio::ip::tcp::acceptor zookeeper(io, {asio::ip::address_v4::loopback(), 0});
  std::function<void()> accept = [&] {
    zookeeper.async_accept([&](const boost::system::error_code&, asio::ip::tcp::socket socket) {
      std::array<char, 4> length;
      boost::system::error_code ignored;
      asio::read(socket, asio::buffer(length), ignored);
      accept();
    });
  };
  accept();
  std::thread server([&] { io.run(); });
  const std::string said = why("localhost:" + std::to_string(zookeeper.local_endpoint().port()));
  io.stop();
  server.join();
  EXPECT_THAT(said, AllOf(HasSubstr("before its first answer"), HasSubstr("ZooKeeper")));
}

}  // namespace
}  // namespace tamis
