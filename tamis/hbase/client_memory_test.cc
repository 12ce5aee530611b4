// A client on whose thread each allocation fails once, in turn: the thread waits for memory, and
// the call succeeds. A large answer for which there is no memory is skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>

#include "tamis/base/coding.h"
#include "tamis/base/testing/failing_allocations.h"
#include "tamis/base/testing/limited_address_space.h"
#include "tamis/hbase/client.h"
#include "tamis/hbase/frame.h"
#include "tamis/hbase/testing/scripted_cluster.h"
#include "tamis/hbase/wire.pb.h"

namespace tamis::hbase {
namespace {

// Ends the failing of the client's thread, on which callbacks run, and returns whether an
// allocation failed. Then begins again, unless `allocations` is negative.
bool Exchange(Client& client, int64_t allocations) {
  const auto failed = std::make_shared<std::promise<bool>>();
  client.Get("t", {.row = "a"}, [failed, allocations](const Result<Row>&) {
    FailingAllocations::End();
    failed->set_value(FailingAllocations::failed() > 0);
    if (allocations >= 0) {
      FailingAllocations::Begin(static_cast<uint64_t>(allocations), /*only_one=*/true);
    }
  });
  return failed->get_future().get();
}

TEST(ClientMemoryTest, CallWaitsForMemoryAtEachAllocationOfTheClientsThread) {
  ScriptedCluster cluster(3);
  cluster.SetRegion("", "", 1);
  cluster.server(1).On("Get", [](const auto& request, const auto& peer) {
    ScriptedCluster::AnswerGet(request, peer, "v");
  });
  const auto client = *Client::Open({.addresses = cluster.server(2).address().ToString()});
  FailingAllocations::AskNewHandler();
  bool reached = true;
  int64_t n = 0;
  for (; reached; ++n) {
    Exchange(*client, n);
    const auto row = client->Get("t", {.row = "b"});
    ASSERT_TRUE(row.ok()) << row.status() << " at allocation " << n;
    EXPECT_EQ(row->Find("f", "q").value_or("absent"), "v");
    reached = Exchange(*client, -1);
  }
  EXPECT_GT(n, 20);
}

TEST(ClientMemoryTest, AnswerWithoutMemoryIsSkipped) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs the address space";
#endif
  constexpr uint32_t kSize = 512 << 20;
  pb::ResponseHeader header;
  header.set_call_id(7);
  std::string bytes;
  PutBig32(&bytes, kSize);
  AppendDelimited(header, &bytes);
  FrameReader reader(1 << 30);
  std::copy(bytes.begin(), bytes.end(), reader.Space().begin());
  reader.Commit(bytes.size());
  const auto frame = [&] {
    const LimitedAddressSpace limit(size_t{256} << 20);
    EXPECT_TRUE(limit.is_set());
    return reader.Next();
  }();
  ASSERT_TRUE(frame.ok()) << frame.status();
  ASSERT_TRUE(frame->has_value());
  EXPECT_TRUE((*frame)->is_cut());
  EXPECT_EQ((*frame)->size, kSize);
}

}  // namespace
}  // namespace tamis::hbase
