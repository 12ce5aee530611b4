#include "tests/cluster/hbase_outages.h"

#include <string>
#include <thread>

namespace tamis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kServers = 3;
// A session of these clusters lasts 6 seconds.
constexpr seconds kWithinSession{3};
constexpr seconds kBeyondSession{9};
// How long a server may take to end that must, and one that need not.
constexpr seconds kMustEnd{40};
constexpr seconds kMayEnd{6};

// A server that was declared dead learns it when it is back, and ends; then it can be started.
void AwaitEnd(const LocalHBase& hbase, const std::string& role, seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (hbase.StateOf(role) != "down" && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(milliseconds(500));
  }
}

}  // namespace

std::vector<Outage> HBaseOutages(const LocalHBase& hbase) {
  hbase.Run("heal");  // fails where there are no cuts: half of the outages would not begin
  std::vector<Outage> outages;
  const auto order = [&hbase](const std::string& words) {
    return [&hbase, words] { return hbase.Try(words); };
  };
  const auto nothing = [] {};
  const auto heal = [&hbase] { hbase.Try("heal"); };
  for (int i = 1; i <= kServers; ++i) {
    const std::string role = "rs" + std::to_string(i);
    outages.push_back({"server killed", seconds(1), order("kill " + role), nothing});
    outages.push_back({"server asleep within its session", kWithinSession, order("pause " + role),
                       [&hbase, role] { hbase.Try("resume " + role); }});
    outages.push_back({"server asleep beyond its session", kBeyondSession, order("pause " + role),
                       [&hbase, role] {
                         hbase.Try("resume " + role);
                         AwaitEnd(hbase, role, kMustEnd);
                       }});
    for (const char* how : {"", " --silent"}) {
      outages.push_back({std::string("master cut off from a server") + how, kBeyondSession,
                         order("cut master " + role + how), [&hbase, role] {
                           hbase.Try("heal");
                           // The master may have expired it, if there was something to tell it.
                           AwaitEnd(hbase, role, kMayEnd);
                         }});
    }
    outages.push_back({"server cut off from ZooKeeper for a moment", kWithinSession,
                       order("cut " + role + " zk"), heal});
    outages.push_back({"server cut off from ZooKeeper", kBeyondSession,
                       order("cut " + role + " zk"), [&hbase, role] {
                         hbase.Try("heal");
                         AwaitEnd(hbase, role, kMustEnd);
                       }});
  }
  outages.push_back({"master killed", kWithinSession, order("kill master"), nothing});
  outages.push_back({"ZooKeeper killed", kWithinSession, order("kill zk"), nothing});
  // A server that ended only after the end of its own outage is started at the end of the next one.
  for (Outage& outage : outages) {
    outage.end = [&hbase, undo = outage.end] {
      undo();
      hbase.Try("start");
    };
  }
  return outages;
}

}  // namespace tamis
