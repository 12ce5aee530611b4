// The end of a cluster whose client is still answering.
#include "tamis/hbase_cluster/hbase_cluster.h"

#include <gtest/gtest.h>

#include <thread>

#include "tamis/hbase/scripted_cluster.h"

namespace tamis {
namespace {

// Of a region that is not where it was, the cluster asks hbase:meta, and hears the answer on the
// client's thread. It is a long one, so that it is being heard at some of these ends.
TEST(HBaseClusterTest, AnAnswerMayComeWhileItEnds) {
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

}  // namespace
}  // namespace tamis
