package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.InvalidProtocolBufferException;

/**
 * What all observers of a server share: the regions of indexed tables that are open here, and the answers to requests
 * for them. One a process, as long as the jar is on the class path. Threads: safe.
 */
final class RegionServerState implements Endpoint.Requests {
  static final RegionServerState INSTANCE = new RegionServerState();

  private static final Logger LOG = LoggerFactory.getLogger(RegionServerState.class);
  private static final long SEARCH_TIMEOUT_NS = TimeUnit.SECONDS.toNanos(10);
  private static final int BUILDERS = 2;

  private final Map<Long, IndexedRegion> regions = new ConcurrentHashMap<>();
  private final ExecutorService builders;

  private RegionServerState() {
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(BUILDERS, BUILDERS, 10, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), work -> {
          Thread thread = new Thread(work, "tamis-index-builder");
          thread.setDaemon(true);
          return thread;
        });
    pool.allowCoreThreadTimeOut(true);
    builders = pool;
  }

  // ---- Regions

  /** The region may take writes soon, and is told of by its id. */
  void opened(IndexedRegion region) {
    regions.put(region.id, region);
    builders.execute(() -> completeWhenOnline(region));
  }

  void closed(IndexedRegion region) {
    region.setClosed();
    regions.remove(region.id, region);
  }

  /** Nothing is written before the region is online: its log has no opening yet. */
  private void completeWhenOnline(IndexedRegion region) {
    try {
      while (!region.isOnline()) {
        if (region.isClosed()) return;
        Thread.sleep(20);
      }
      complete(region);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Throwable e) {
      if (!region.isClosed()) {
        LOG.error("The indexes of region {} stay incomplete; searches scan it", region.info().getEncodedName(), e);
      }
    }
  }

  /** Completes what is not complete. */
  static void complete(IndexedRegion region) throws IOException {
    if (!region.hasEntries) return;
    Set<Integer> complete = IndexBuilder.markedComplete(region);
    if (complete.size() < region.indexIds().size()) {
      if (!IndexBuilder.build(region, rows -> !region.isClosed())) return;
      complete.addAll(region.indexIds());
    }
    IndexBuilder.mark(region, complete);
    region.setComplete(complete);
  }

  // ---- Requests

  @Override
  public byte[] call(String method, byte[] request) throws IOException, InvalidProtocolBufferException {
    switch (method) {
      case "Mutate":
        return mutate(Cluster.MutateRequest.parseFrom(request)).toByteArray();
      case "Search":
        return search(Cluster.SearchRequest.parseFrom(request)).toByteArray();
      default:
        throw new org.apache.hadoop.hbase.DoNotRetryIOException("this server does not answer " + method);
    }
  }

  /** null: not here. */
  private IndexedRegion find(long id, long epoch, int tableId) {
    IndexedRegion region = regions.get(id);
    boolean here = region != null && region.isOnline() && region.table.tableId == tableId
        && (epoch == 0 || epoch == region.epoch);
    return here ? region : null;
  }

  private static Cluster.Error notHere(long id) {
    return ConditionalWrites.error(Cluster.Error.Code.UNAVAILABLE,
        "region " + Long.toUnsignedString(id) + " is not open here");
  }

  Cluster.MutateReply mutate(Cluster.MutateRequest request) {
    Cluster.MutateReply.Builder reply = Cluster.MutateReply.newBuilder();
    for (Cluster.RegionMutations mutations : request.getRegionsList()) {
      IndexedRegion region = find(mutations.getRegionId(), mutations.getEpoch(), request.getTableId());
      reply.addRegions(region == null
          ? Cluster.RegionMutateResult.newBuilder().setRegionId(mutations.getRegionId())
              .setError(notHere(mutations.getRegionId())).build()
          : Mutator.mutate(region, mutations, request.getSchemaVersion()));
    }
    return reply.build();
  }

  Cluster.SearchReply search(Cluster.SearchRequest request) {
    long timeout = request.getTimeoutNs() > 0 ? Math.min(request.getTimeoutNs(), SEARCH_TIMEOUT_NS) : SEARCH_TIMEOUT_NS;
    long deadline = System.nanoTime() + timeout / 4 * 3; // the rest is for the way back
    Cluster.SearchReply.Builder reply = Cluster.SearchReply.newBuilder();
    Map<IndexedTable, Searcher> searchers = new HashMap<>();
    long rows = 0;
    long bytes = 0;
    List<Cluster.SearchRange> ranges = request.getRangesList();
    for (int i = 0; i < ranges.size(); ++i) {
      if (request.getLimit() > 0 && rows >= request.getLimit()) break;
      if (i > 0 && System.nanoTime() - deadline >= 0) break;
      if (rows >= Searcher.PAGE_ROWS || bytes >= Searcher.PAGE_BYTES) break;
      long most = Searcher.PAGE_ROWS - rows;
      if (request.getLimit() > 0) most = Math.min(most, request.getLimit() - rows);
      Cluster.RangeResult result = searchRange(request, ranges.get(i), searchers, most, deadline);
      rows += result.getRowsCount();
      bytes += result.getSerializedSize();
      reply.addResults(result);
    }
    return reply.build();
  }

  private Cluster.RangeResult searchRange(Cluster.SearchRequest request, Cluster.SearchRange range,
      Map<IndexedTable, Searcher> searchers, long most, long deadline) {
    IndexedRegion region = find(range.getRegionId(), range.getEpoch(), request.getTableId());
    Cluster.RangeResult.Builder failed =
        Cluster.RangeResult.newBuilder().setRegionId(range.getRegionId()).setEpoch(range.getEpoch());
    if (region == null) return failed.setError(notHere(range.getRegionId())).build();
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
    // It has been closed meanwhile: what was read is as it was, but nobody knows whether it still is.
    if (region.isClosed()) return failed.setError(notHere(range.getRegionId())).build();
    return result;
  }

  List<IndexedRegion> regions() {
    return new ArrayList<>(regions.values());
  }
}
