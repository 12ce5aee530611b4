package tamis.server;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.search.SearchPage;
import tamis.search.Searcher;

/** The answers to searches of a server's regions. Threads: safe. */
final class ServerSearches {
  private static final long TIMEOUT_NS = TimeUnit.SECONDS.toNanos(10);
  private static final long MANY = 1L << 40; // rows in groups, which are bounded by their bytes

  private final RegionServerState state;

  ServerSearches(RegionServerState state) {
    this.state = state;
  }

  Cluster.SearchReply search(Cluster.SearchRequest request) {
    long timeout = request.getTimeoutNs() > 0 ? Math.min(request.getTimeoutNs(), TIMEOUT_NS) : TIMEOUT_NS;
    long deadline = System.nanoTime() + timeout / 4 * 3; // the rest is for the way back
    Cluster.SearchReply.Builder reply = Cluster.SearchReply.newBuilder();
    Map<IndexedTable, Searcher> searchers = new HashMap<>();
    if (!state.isOwner()) return notOwner(request);
    long rows = 0;
    long bytes = 0;
    List<Cluster.SearchRange> ranges = request.getRangesList();
    for (int i = 0; i < ranges.size(); ++i) {
      long counted = request.hasOrder() ? 0 : rows; // towards the limit
      if (request.getLimit() > 0 && counted >= request.getLimit()) break;
      if (i > 0 && System.nanoTime() - deadline >= 0) break;
      if (bytes >= SearchPage.MAX_BYTES || (!request.getGroups() && rows >= SearchPage.MAX_ROWS)) break;
      long most = request.getGroups() ? MANY : SearchPage.MAX_ROWS - rows;
      if (request.getLimit() > 0) most = Math.min(most, request.getLimit() - counted);
      Cluster.RangeResult result = searchRange(request, ranges.get(i), searchers, most, deadline);
      rows += result.getCounters().getRowsReturned();
      bytes += result.getSerializedSize();
      reply.addResults(result);
    }
    state.metrics.searches.increment();
    for (Cluster.RangeResult result : reply.getResultsList()) state.metrics.searched(result.getCounters());
    // A proof that begins now is as good as one that still holds.
    return Fault.NO_PROOF_AT_THE_END.isOn() || state.isOwner() ? reply.build() : notOwner(request);
  }

  private static Cluster.SearchReply notOwner(Cluster.SearchRequest request) {
    Cluster.SearchReply.Builder reply = Cluster.SearchReply.newBuilder();
    for (Cluster.SearchRange range : request.getRangesList()) {
      reply.addResults(Cluster.RangeResult.newBuilder()
                           .setRegionId(range.getRegionId())
                           .setEpoch(range.getEpoch())
                           .setError(StatusException.error(Cluster.Error.Code.UNAVAILABLE,
                               "the server cannot prove that it still owns its regions")));
    }
    return reply.build();
  }

  private Cluster.RangeResult searchRange(Cluster.SearchRequest request, Cluster.SearchRange range,
      Map<IndexedTable, Searcher> searchers, long most, long deadline) {
    IndexedRegion region = state.regions.find(range.getRegionId(), range.getEpoch(), request.getTableId());
    Cluster.RangeResult.Builder failed =
        Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId()).setEpoch(range.getEpoch());
    if (range.getRegionId() <= 0) {
      return failed
          .setError(StatusException.error(Cluster.Error.Code.INVALID_ARGUMENT,
              Long.toUnsignedString(range.getRegionId()) + " is no number of a region; those are from 1 to 2^63 - 1"))
          .build();
    }
    if (region == null) return failed.setError(OpenRegions.notHere(range.getRegionId())).build();
    Searcher searcher = null;
    for (Map.Entry<IndexedTable, Searcher> other : searchers.entrySet()) {
      if (other.getKey().schema.version == region.table.schema.version) searcher = other.getValue();
    }
    if (searcher == null) {
      try {
        searcher = new Searcher(request, region.table, region.server);
        searchers.put(region.table, searcher);
      } catch (StatusException e) {
        Cluster.Error.Builder error = e.error().toBuilder();
        if (region.table.schema.version != request.getSchemaVersion()) {
          error.setSchemaVersion(region.table.schema.version);
        }
        return failed.setError(error).build();
      }
    }
    Cluster.RangeResult result = searcher.search(region, range, most, deadline);
    // If the region was closed meanwhile, another server may own it and have changed it: the answer is not given.
    boolean gone = region.isClosed() && !Fault.CLOSED_REGION_ANSWERS.isOn();
    return gone ? failed.setError(OpenRegions.notHere(range.getRegionId())).build() : result;
  }
}
