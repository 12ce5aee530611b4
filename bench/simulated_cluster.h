// SimulatedCluster: simulated regions, servers and messages of their feeds. Half of the bits of
// each filter are set. It tells which regions a coordinator must find; every search of a region is
// answered with no rows.
//
// An index "wide" has 10,000 values a region anywhere between its first and its last, so that
// filters alone can exclude; an index "narrow" has a short range of values in each region.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tamis/base/random.h"
#include "tamis/cluster/cluster.h"
#include "tamis/cluster/region_server.h"
#include "tamis/filter/split_geometry.h"
#include "tamis/query/plan.h"

namespace tamis {

// Answers every search with "searched, nothing found", and counts it.
class EmptyServer : public RegionServer {
 public:
  void Mutate(const pb::MutateRequest&, Callback<pb::MutateReply> done) override {
    done(Unavailable("not here"));
  }
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override {
    pb::SearchReply reply;
    for (const pb::SearchRange& range : request.ranges()) {
      ++ranges;
      pb::RangeResult* result = reply.add_results();
      result->set_region_id(range.region_id());
      result->set_epoch(range.epoch());
      result->set_start(range.start());
      result->set_end(range.end());
      last_start = range.start();
    }
    done(std::move(reply));
  }
  void Poll(const pb::PollRequest&, Callback<pb::PollReply> done) override {
    done(Unavailable("not here"));
  }

  uint64_t ranges = 0;
  std::string last_start;
};

class EmptyCluster : public Cluster {
 public:
  std::shared_ptr<RegionServer> Server(const std::string&) override { return server; }
  void ListRegions(const std::string&, std::vector<KeyRange>,
                   Callback<std::vector<RegionInfo>> done) override {
    done(regions);
  }
  void ListServers(Callback<std::vector<ServerInfo>> done) override { done(NotHere()); }
  void ListTables(Callback<std::vector<TableSchema>> done) override { done(NotHere()); }
  void GetTable(const std::string&, Callback<TableSchema> done) override { done(NotHere()); }

  const std::shared_ptr<EmptyServer> server = std::make_shared<EmptyServer>();
  std::vector<RegionInfo> regions;

 private:
  static Status NotHere() { return Unavailable("not here"); }
};

struct SimulatedRegion {
  uint64_t id = 0;
  uint64_t epoch = 1;
  KeyRange range;
  size_t server = 0;
  uint64_t bits = 0;   // names what its filters hold
  int64_t narrow = 0;  // the least value of its second index
};

struct SimulatedServer {
  std::string name;
  uint64_t start_code = 0;
  uint64_t last = 0;  // number of its last event
  std::vector<size_t> regions;
};

class SimulatedCluster {
 public:
  static constexpr size_t kRegionsPerServer = 100;
  static constexpr double kFpr = 0.001;
  // Values of the narrow index between a region's least and most.
  static constexpr int64_t kNarrow = 1000;

  // The regions of the servers are in no order.
  explicit SimulatedCluster(size_t regions);

  const SchemaPtr& schema() const { return schema_; }
  const SplitGeometry& geometry(size_t index) const { return geometries_[index]; }

  // The value, which is the region's number, whose bits its filter has.
  static int64_t OwnValue(const SimulatedRegion& region, size_t index) {
    return index == 1 ? region.narrow : static_cast<int64_t>(region.bits >> 20);
  }
  // An equality as it is routed.
  RoutingTerm TermOf(size_t index, int64_t value) const;
  // Whether the bits and the range of a region may hold the term.
  bool MayHold(const SimulatedRegion& region, const RoutingTerm& term) const;

  // Messages of a server, each event with its next number.
  pb::Event EventOf(pb::Event::Kind kind, SimulatedServer* server,
                    const SimulatedRegion& region) const;
  pb::Event CompleteOf(SimulatedServer* server, const SimulatedRegion& region, size_t index) const;
  void AddProjection(const SimulatedServer& server, const SimulatedRegion& region, size_t index,
                     pb::PollReply* reply) const;
  static pb::PollReply ReplyOf(const SimulatedServer& server, uint64_t from);

  std::vector<SimulatedServer> servers;
  std::vector<SimulatedRegion> regions;
  EmptyCluster cluster;  // the coordinator's view of it

 private:
  std::string KeyAt(size_t i) const;
  uint64_t Word(const SimulatedRegion& region, size_t index, uint64_t word) const;
  uint64_t HashOf(size_t index, int64_t value) const { return TermOf(index, value).hash; }
  // The encoded value, as ranges of values have it.
  std::string Encoded(size_t index, int64_t value) const { return TermOf(index, value).first; }
  static std::pair<int64_t, int64_t> RangeOf(const SimulatedRegion& region, size_t index);

  const SchemaPtr schema_;
  std::vector<SplitGeometry> geometries_;  // geometries of the indexes
};

}  // namespace tamis
