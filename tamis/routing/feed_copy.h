// FeedCopy: a coordinator's copy of the state that the feeds of all servers describe: the servers,
// and for each table a RoutedTable of its open regions and their indexes.
//
// Each region of a server has a slot in the layout of its table, and the copies of its indexes
// stand under that slot. A pair of region and index whose bits have not arrived is in the server's
// `missing`, cells in `missing_cells`. The layouts are brought up to date with the regions
// (Reconcile) before the lock is released.
//
//   Threads   const members may run concurrently; others need exclusive access. A function that
//             takes a Lock releases and locks it again on the way
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>

#include "tamis/base/executor.h"
#include "tamis/cluster/cluster.pb.h"
#include "tamis/cluster/faults.h"
#include "tamis/routing/index_copies.h"
#include "tamis/routing/matrix_budget.h"
#include "tamis/routing/routed_servers.h"
#include "tamis/routing/routed_table.h"

namespace tamis {

class FeedCopy {
 public:
  using Lock = std::unique_lock<std::shared_mutex>;
  using Region = RoutedServer::Region;

  // How much is done before searches get their turn: events, regions dropped, copies loaded.
  static constexpr size_t kEventsAtOnce = 64;
  // The most layers that a filter of a reply may have.
  static constexpr uint32_t kMaxLayers = 4096;

  FeedCopy(size_t max_bytes, const Faults& faults) : faults_(faults), budget_(tables_, max_bytes) {}
  FeedCopy(const FeedCopy&) = delete;
  FeedCopy& operator=(const FeedCopy&) = delete;

  const Faults& faults() const { return faults_; }
  const MatrixBudget& budget() const { return budget_; }
  const MatrixBudget::Tables& tables() const { return tables_; }
  RoutedServers& servers() { return servers_; }
  const RoutedServers& servers() const { return servers_; }

  // ---- Tables

  // nullptr: no region of the table is known.
  const RoutedTable* FindTable(uint32_t table_id) const;
  // REQUIRES: a server has the region.
  RoutedTable& TableOf(const Region& region) { return tables_.at(region.table_id); }
  // nullptr: no complete index of that region is known.
  IndexCopies* CopiesOf(const Region& region, uint32_t index_id);
  // nullptr: the region has no cells of that index.
  CellCopies* CellsOf(const Region& region, uint32_t index_id);
  // Brings the layouts of all tables up to date with what has been applied; to be called before the
  // lock is released. True: call it again, after other threads had their turn.
  bool Reconcile();
  void ReconcileAll(Lock* lock);
  // Gives other threads their turn.
  static void LetOthers(Lock* lock);

  // ---- Regions and indexes of a server

  void OpenRegion(RoutedServer* server, const pb::Event& event);
  void DropRegion(RoutedServer* server, uint64_t region_id);
  // Drops all regions of the server; its lease ends first.
  void Clear(RoutedServer* server, Lock* lock);
  // REQUIRES of the following two: the server has the region.
  void CompleteIndex(RoutedServer* server, const pb::Event& event);
  void DropIndex(RoutedServer* server, uint64_t region_id, uint32_t index_id);
  void GrantLease(RoutedServer* server, Time until);

  // ---- Bits that are missing

  bool HasRoomForCells(const Region& region, const CellCopies& cells) const;
  // Requests missing bits that find room, a bounded number.
  void AddWanted(const RoutedServer& server, pb::PollRequest* request) const;
  // Calls fn(index, region) for the indexes of the server's regions whose bits find no room.
  template <class Fn>
  void ForEachLeftOut(const RoutedServer& server, Fn&& fn) const {
    for (const auto& [index_id, region_id] : server.missing) {
      const Region& region = server.regions.at(region_id);
      const IndexCopies& copies = tables_.at(region.table_id).indexes.at(index_id);
      const IndexCopies::Copy& copy = *copies.Find(region.slot);
      if (!budget_.CouldHaveRoom(copies, copy.geometry, copy.layers)) fn(index_id, region);
    }
  }

 private:
  const Faults faults_;
  RoutedServers servers_;
  MatrixBudget::Tables tables_;
  const MatrixBudget budget_;
};

}  // namespace tamis
