// ClusterUnderTest: a cluster of any kind, as the tests that are to hold for every kind see it
// (cluster_suite_test.cc, threaded_cluster.h): its two interfaces, an executor, and the little that
// a test needs beyond them.
//
// A further kind is a pair of files, which implement this, and its line in a ClusterKinds(): the
// embedded ones are in embedded_kinds.cc, HBase, which takes longer, in hbase_kind.cc for a program
// of its own. A kind names what it cannot do, by Capability or here, and the tests that need it are
// skipped.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tamis/base/answers.h"
#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/faults.h"
#include "tamis/query/engine.h"
#include "tests/cluster/answer.h"

namespace tamis {

// Wishes of a test. A kind that cannot grant one ignores it: no test may rely on it, but for
// `servers`.
struct ClusterWishes {
  int servers = 4;
  uint64_t seed = 1;
  bool restless = false;     // leases and sessions are short, background work comes in small steps
  bool small_pages = false;  // an answer holds few rows and looks at few entries
  // The most rows, or groups, in an answer; 0: as usual.
  uint64_t page_rows = 0;
  uint64_t page_grouped = 0;
  Faults faults;
};

// The cluster as a coordinator sees it whose network can be cut, alone: the servers go on, and so
// does the coordinator.
class FarCluster {
 public:
  virtual ~FarCluster() = default;

  virtual Cluster& cluster() = 0;
  virtual Executor& executor() = 0;
  // From here on nothing that either side sends arrives, and neither side gets an error.
  virtual void Cut() = 0;
  virtual void Heal() = 0;
};

class ClusterUnderTest {
 public:
  // So long a test waits for what must come.
  static constexpr Duration kPatience = std::chrono::seconds(180);

  virtual ~ClusterUnderTest() = default;

  virtual Cluster& cluster() = 0;
  virtual ClusterAdmin& admin() = 0;
  virtual Executor& executor() = 0;

  // True: one thread, and a clock that goes on only while the thread waits. Then an operation that
  // was begun and not waited for has not been done.
  virtual bool has_virtual_clock() const = 0;
  // Ends all servers cleanly and starts them again. Engines must be gone; `cluster`, `admin`
  // and `executor` are others afterwards.
  virtual bool can_restart() const = 0;
  virtual Status Restart() = 0;
  // By what name another process opens it; empty: none can.
  virtual std::string StoreName() { return ""; }
  // nullptr: this kind has no network. Ends before this.
  virtual Result<std::unique_ptr<FarCluster>> OpenFar() { return std::unique_ptr<FarCluster>(); }
  // For the report of a failed test: where the regions are, and what is known of the row.
  virtual std::string Describe(const TableSchema& table, const RowState& row) = 0;

  // The interfaces, waited for.
  Status Kill(const std::string& server);
  Status Pause(const std::string& server);
  Status Resume(const std::string& server);
  Status Split(RegionId region, const std::string& key = "");
  Status Merge(RegionId region);
  Status Move(RegionId region, const std::string& server);
  Result<JobInfo> Run(const JobSpec& job);
  Result<SchemaPtr> CreateTable(const TableSchema& schema);
  Result<std::vector<RegionInfo>> Regions(const std::string& table,
                                          std::vector<KeyRange> stale = {});
  Result<std::vector<std::string>> Servers();
  // Splits every region of the table once, near its middle.
  Status SplitAll(const std::string& table);

  // Waits until every region of the table is served, its indexes are complete, nothing is pending
  // and the check is clean: its report. An error when that does not come, or the check has faults.
  Result<CheckReport> Reconcile(const std::string& table, Duration patience = kPatience);

  template <class T, class Call>
  Result<T> Ask(Call&& call) {
    return AwaitResult<T>(&executor(), Soon(), std::forward<Call>(call));
  }
  Wait Soon() { return {.deadline = executor().Now() + kPatience}; }

 private:
  template <class Call>
  Status Order(Call&& call) {
    return AwaitStatus(&executor(), Soon(), std::forward<Call>(call));
  }
};

struct ClusterKind {
  std::string name;
  bool virtual_clock = false;  // has_virtual_clock() of an open one
  std::function<Result<std::unique_ptr<ClusterUnderTest>>(const ClusterWishes&)> open;
};

inline void PrintTo(const ClusterKind& kind, std::ostream* out) { *out << kind.name; }

// The kinds that this program tests.
std::vector<ClusterKind> ClusterKinds();

}  // namespace tamis
