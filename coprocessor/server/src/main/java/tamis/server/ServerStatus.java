package tamis.server;

import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.Store;
import tamis.base.StatusException;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.BuildFailure;
import tamis.region.IndexedRegion;
import tamis.table.Schema;

/** The answers to requests for the status of a server and its regions. Threads: safe. */
final class ServerStatus {
  private static final String NO_ROOM_TEXT =
      "its end key leaves no room for index entries, so every search scans it; merge it with its right neighbour";
  private static final BuildFailure NO_ROOM =
      BuildFailure.givenUp(StatusException.error(Cluster.Error.Code.FAILED_PRECONDITION, NO_ROOM_TEXT));

  private final RegionServerState state;

  ServerStatus(RegionServerState state) {
    this.state = state;
  }

  /**
   * If HBase checks rights, the answer has no row counts of tables that the caller may not read, and only how
   * many coordinators there are and how they follow.
   */
  Cluster.StatusReply of(Cluster.StatusRequest request) {
    Cluster.StatusReply.Builder reply = Cluster.StatusReply.newBuilder().setFilterBytes(state.filterBytes());
    if (state.feed != null) state.feed.describe(reply, !state.server.secured);
    boolean all = !state.server.secured || request.getTableId() == 0
        || state.readers.tablesOf(state.regions.all()).contains(request.getTableId());
    long work = 0;
    FileFilters files = new FileFilters();
    for (IndexedRegion region : state.regions.all()) {
      if (region.isWorkedOn()) ++work;
      files.add(region);
      if (request.getTableId() == 0 || region.table.tableId != request.getTableId()) continue;
      if (state.regions.isHere(region)) reply.addRegions(of(region, all));
    }
    return reply.setPendingWork(work)
        .setSearches(state.metrics.searches.sum())
        .setRegionsSearched(state.metrics.searchedRanges.sum())
        .setFileFiltersAsked(files.asked)
        .setFileFiltersSaidNo(files.saidNo)
        .setFileFiltersMissing(files.missing)
        .build();
  }

  private static Cluster.RegionStatus of(IndexedRegion region, boolean all) {
    Cluster.RegionStatus.Builder status = Cluster.RegionStatus.newBuilder()
                                              .setRegionId(region.id)
                                              .setEpoch(region.epoch)
                                              .setSchemaVersion(region.table.schema.version);
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      boolean complete = region.complete().contains(index.id);
      boolean published = complete && filter != null && filter.isPublished();
      status.addIndexes(Cluster.IndexStatus.newBuilder()
                            .setIndexId(index.id)
                            .setComplete(complete)
                            .setPublished(published)
                            .setEntries(published && all ? filter.entries() : 0));
    }
    BuildFailure failure = region.hasEntries ? region.failure : NO_ROOM;
    if (failure != null) status.setFailure(failure.message(all));
    if (!all) return status.build();
    FileFilters files = new FileFilters();
    files.add(region);
    return status.setRowsVisited(region.rowsVisited)
        .setFileFiltersAsked(files.asked)
        .setFileFiltersSaidNo(files.saidNo)
        .setFileFiltersMissing(files.missing)
        .build();
  }

  /** HBase's counters of the Bloom filters of the files of rows, for all readers together. */
  private static final class FileFilters {
    long asked;
    long saidNo;
    long missing;

    void add(IndexedRegion region) {
      for (Store store : region.region.getStores()) {
        if (!(store instanceof HStore) || !region.table.isOurs(store.getColumnFamilyDescriptor().getName())) continue;
        HStore files = (HStore) store;
        asked += files.getBloomFilterRequestsCount();
        saidNo += files.getBloomFilterNegativeResultsCount();
        missing += files.getBloomFilterEligibleRequestsCount();
      }
    }
  }
}
