// Mishaps: the failures and changes that happen to the simulated cluster while it works, drawn one
// by one; and sequences of them that matter only when their parts follow each other closely.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/cluster/random_rows.h"
#include "tests/cluster/sim_cluster.h"
#include "tests/cluster/write_burst.h"

namespace tamis {

class Mishaps {
 public:
  struct Options {
    size_t most_regions = 12;
    double fpr = RandomRows::kFpr;  // the rate of the indexes that come and go
  };
  // Writes of rows near to the key, which make a mishap matter.
  using StartBurst = std::function<void(int64_t key, WriteBurst::Kind kind)>;

  Mishaps(SimCluster* cluster, Random* random, RandomRows* rows, const Options& options,
          std::map<std::string, uint64_t>* counts, StartBurst start_burst)
      : sim_(*cluster),
        random_(*random),
        rows_(*rows),
        options_(options),
        counts_(*counts),
        start_burst_(std::move(start_burst)) {}

  // The table that they happen to.
  void set_table(SchemaPtr table) { table_ = std::move(table); }

  void Happen();
  // Nothing goes on by itself after this.
  void Forget() { ++generation_; }

 private:
  bool MaySleep(const std::string& server) const;
  DoneCallback Counted(const char* what);
  Duration Milliseconds(uint64_t below) {
    return std::chrono::milliseconds(random_.Uniform(below));
  }
  void After(Duration delay, std::function<void()> task);
  // Calls `then` once a life of a server that is not the record's has the region open; gives up
  // after a while.
  void WhenReopened(const pb::RegionRecord& record, int tries,
                    std::function<void(const pb::RegionRecord&)> then);

  void Split(const pb::RegionRecord& region);
  void ToggleIndex();
  void AddColumn();

  // Sequences.
  void MoveSoonAfterReopening(const pb::RegionRecord& region, int64_t key);
  void WakeBesideSuccessor(const pb::RegionRecord& region, int64_t key);
  void DropDuringBackfill();
  void DropWhileAsleep(const std::string& server);
  void MoveTwiceDuringBackfill(const pb::RegionRecord& region);
  void RepliesLostAsLeasesShrink(const pb::RegionRecord& region, int64_t key);
  void WritesAcrossMove(const pb::RegionRecord& region, int64_t key);

  SimCluster& sim_;
  Random& random_;
  RandomRows& rows_;
  const Options options_;
  std::map<std::string, uint64_t>& counts_;
  const StartBurst start_burst_;
  SchemaPtr table_;
  uint64_t generation_ = 0;
};

}  // namespace tamis
