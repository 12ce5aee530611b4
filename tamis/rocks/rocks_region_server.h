// RocksRegionServer: one region server of an embedded cluster: the regions that it has open, their
// filters, its feed, its membership. Killing it throws away its memory and nothing else; the rows
// and entries are in the store that all servers share.
//
// Threads: safe. Calls from outside wait while it is paused, and are never answered once it is
// killed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tamis/cluster/cluster_admin.h"
#include "tamis/cluster/region_server.h"
#include "tamis/rocks/checker.h"
#include "tamis/rocks/filter_clearer.h"
#include "tamis/rocks/index_builder.h"
#include "tamis/rocks/open_regions.h"
#include "tamis/rocks/ownership_proof.h"
#include "tamis/rocks/region.h"
#include "tamis/rocks/region_splitter.h"
#include "tamis/rocks/search_task.h"
#include "tamis/rocks/server_context.h"

namespace tamis {

class RocksRegionServer : public RegionServer,
                          public std::enable_shared_from_this<RocksRegionServer> {
 public:
  // `context` holds the shared parts; Start creates the server's own.
  static std::shared_ptr<RocksRegionServer> Start(ServerContext context, Executor* executor);

  void Mutate(const pb::MutateRequest& request, Callback<pb::MutateReply> done) override;
  void Search(const pb::SearchRequest& request, Callback<pb::SearchReply> done) override;
  void Poll(const pb::PollRequest& request, Callback<pb::PollReply> done) override;

  // Orders of the master. A region is opened as its record in the catalog says; for as long as
  // `wait` it acknowledges no put, since leases of a former owner may live, and searches be
  // answered by it, until then.
  void OpenRegion(const pb::RegionRecord& record, Duration wait);
  // Done when the region is closed: true when the close was clean, so that the next owner need
  // not wait: no coordinator trusts it any more, and its own wait after the opening is over.
  void CloseRegion(uint64_t region_id, uint64_t epoch, Callback<bool> done);
  // Closes every region of a table that was dropped.
  void CloseTable(uint32_t table_id);
  // Splits at `key`, or near the middle when empty.
  void SplitRegion(uint64_t region_id, std::string key, DoneCallback done);
  // Takes the table's schema from the catalog; done when all its regions here follow it.
  void UpdateSchema(uint32_t table_id, std::function<void()> done);
  // Makes entries and filters of the index agree with the rows, in these regions, which must be
  // open here; done when coordinators know.
  void RebuildIndex(const std::vector<uint64_t>& region_ids, uint32_t index_id, DoneCallback done);
  // Compares the regions of the table that are open here with their indexes and filters.
  void Check(uint32_t table_id, Callback<CheckReport> done);

  void Pause() { context_->executor->Pause(); }
  void Resume() { context_->executor->Resume(); }
  void Kill();

  const std::string& name() const { return context_->name; }
  uint64_t start_code() const { return context_->start_code; }
  bool paused() const { return context_->executor->paused(); }
  bool killed() const { return context_->executor->killed(); }
  std::vector<std::shared_ptr<Region>> Regions() const { return regions_->All(); }
  std::shared_ptr<Region> FindRegion(uint64_t region_id) const { return regions_->Find(region_id); }
  // All but the info, which the cluster knows.
  ServerStatus GetStatus() const;
  size_t pending_builds() const { return builder_->pending(); }
  FilterFeed& feed() { return *context_->feed; }

 private:
  RocksRegionServer(ServerContext context, Executor* executor);

  void AfterWrite(const std::shared_ptr<Region>& region);
  void MutateRegions(const pb::MutateRequest& request, Callback<pb::MutateReply> done);

  const std::shared_ptr<ServerContext> context_;
  std::shared_ptr<OwnershipProof> proof_;
  std::shared_ptr<IndexBuilder> builder_;
  std::shared_ptr<OpenRegions> regions_;
  std::shared_ptr<RegionSplitter> splitter_;
  std::shared_ptr<FilterClearer> clearer_;
  const std::shared_ptr<SearchCounts> searched_ = std::make_shared<SearchCounts>();
};

}  // namespace tamis
