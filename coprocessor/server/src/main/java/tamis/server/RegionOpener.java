package tamis.server;

import java.io.IOException;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Backoff;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.pb.Cluster;
import tamis.region.BuildFailure;
import tamis.region.IndexedRegion;
import tamis.region.InheritedFilters;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Schema;

/**
 * Runs the steps of opening a region on its server, from postOpen until coordinators hear of it, and of closing it, in
 * their order and on the right threads. RegionLife has the steps and their reasons. Threads: safe.
 */
public final class RegionOpener {
  private static final Logger LOG = LoggerFactory.getLogger(RegionOpener.class);
  private static final long ONLINE_LOOK_NS = TimeUnit.MILLISECONDS.toNanos(20);
  private static final Backoff FLAG_FAILED = new Backoff(TimeUnit.SECONDS.toNanos(1), TimeUnit.MINUTES.toNanos(1));

  private final OpenRegions regions;
  private final FilterFeed feed; // null: nothing is reported
  private final RegionLife life; // null: no flags
  private final Ownership ownership; // null: no proof is required
  private final Workers workers;
  private final ParentFilters keptFilters;
  private final RegionFilters filters;
  private final RegionIndexes indexes;

  RegionOpener(OpenRegions regions, FilterFeed feed, RegionLife life, Ownership ownership, Workers workers,
      ParentFilters keptFilters, RegionFilters filters, RegionIndexes indexes) {
    this.regions = regions;
    this.feed = feed;
    this.life = life;
    this.ownership = ownership;
    this.workers = workers;
    this.keptFilters = keptFilters;
    this.filters = filters;
    this.indexes = indexes;
  }

  /** Called in postOpen: nothing is written to the region, and coordinators have not heard of it yet. */
  public void opened(IndexedRegion region) {
    if (region.server.isEmpty()) return; // a tool has opened it without a server: it gets no requests
    if (life != null) life.opened(region);
    if (!regions.add(region)) {
      LOG.error("Region {} has the id of another one here: it is neither searched nor announced to coordinators",
          region.info().getEncodedName());
      return;
    }
    if (feed != null) {
      region.parentFilters = keptFilters.take(region, feed);
      // Writes are counted in these copies, too.
      if (region.parentFilters != null) region.filters = region.parentFilters.filters;
    }
    workers.steps.run(() -> beginWhenOnline(region), 0);
  }

  public void closing(IndexedRegion region) throws InterruptedException {
    if (life != null) life.closing(region);
  }

  public void closed(IndexedRegion region, boolean inOrder) {
    if (region.isClosed()) return;
    region.setClosed();
    regions.remove(region);
    try {
      if (inOrder) keptFilters.leave(region);
      filters.giveRoom();
    } finally {
      if (life != null) life.closed(region, inOrder);
    }
  }

  /** Waits until the region is online: before, nothing may be written, since its log does not hold the opening yet. */
  private void beginWhenOnline(IndexedRegion region) {
    if (region.isClosed()) return;
    if (!region.isOnline() && !Fault.WRITTEN_BEFORE_ONLINE.isOn()) {
      workers.steps.run(() -> beginWhenOnline(region), ONLINE_LOOK_NS);
    } else if (life != null && region.flag == null) {
      raiseLate(region, 0);
    } else {
      begin(region);
    }
  }

  private void raiseLate(IndexedRegion region, int failures) {
    workers.waits.execute(() -> {
      if (region.isClosed()) return;
      if (life.raiseLate(region, ownership::proveAnew)) {
        begin(region);
      } else {
        workers.steps.run(() -> raiseLate(region, failures + 1), FLAG_FAILED.after(failures));
      }
    });
  }

  private void begin(IndexedRegion region) {
    try {
      tellOpened(region, ((HRegion) region.region).getOpenSeqNum());
      settle(region);
      indexes.completeAndCount(region);
    } catch (Throwable e) {
      region.failure = BuildFailure.givenUp(StatusException.errorOf(e, false));
      LOG.error("Region {} is not told of, or its indexes stay incomplete: searches ask or scan it until it is opened"
              + " again",
          region.info().getEncodedName(), e);
    }
  }

  private void settle(IndexedRegion region) {
    if (life == null) return;
    try {
      long left = life.settle(region);
      if (left > 0) workers.steps.run(() -> settle(region), left);
    } catch (IOException e) {
      LOG.warn("The flags of former owners of region {} stay: its next owner waits a moment",
          region.info().getEncodedName(), e);
    }
  }

  /** Called once the region is online. `opened`: the sequence number that it was opened with. */
  void tellOpened(IndexedRegion region, long opened) {
    boolean flagged = region.flag != null || ownership == null;
    if (feed == null || !flagged || !region.hasEntries) return;
    synchronized (region) {
      if (region.closing || region.isClosed()) return;
      region.told = true;
      feed.append(Cluster.Event.newBuilder()
                      .setKind(Cluster.Event.Kind.REGION_OPENED)
                      .setRegionId(region.id)
                      .setEpoch(region.epoch)
                      .setTableId(region.table.tableId)
                      .setStart(ByteString.copyFrom(region.info().getStartKey()))
                      .setEnd(ByteString.copyFrom(region.info().getEndKey())));
      feed.tellTable(region.table.tableId, region.table.schema.version);
      InheritedFilters parentFilters = region.parentFilters;
      region.parentFilters = null;
      boolean inherits = parentFilters != null && parentFilters.isAllThere(opened);
      Map<Integer, IndexFilter> own = new HashMap<>(inherits ? parentFilters.filters : Collections.emptyMap());
      for (Schema.Index index : region.table.schema.indexes) {
        own.computeIfAbsent(index.id, id -> new IndexFilter(feed, index, region.id, region.epoch));
      }
      region.filters = own;
      if (inherits) parentFilters.filters.values().forEach(IndexFilter::publish);
    }
  }
}
