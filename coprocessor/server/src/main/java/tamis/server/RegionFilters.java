package tamis.server;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.feed.FilterRoom;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.region.RowCursor;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Counts the filters of a server's regions from their entries: when a region opens, and when a filter does not fit its
 * index any more. The memory of all filters together is bounded: a filter whose counters find no room keeps bits alone,
 * and an index whose bits find none has no filter until others go. Threads: safe.
 */
public final class RegionFilters {
  public static final long MAX_BYTES = Runtime.getRuntime().maxMemory() / 10;

  private static final Logger LOG = LoggerFactory.getLogger(RegionFilters.class);
  private static final long REBUILD_AFTER_IGNORED = 100; // removals, at the least

  private final Supplier<Collection<IndexedRegion>> regions;
  private final Executor counters;
  private final LongSupplier clock;
  private final LongSupplier maxBytes;
  final LongAdder counted = new LongAdder(); // filters, for the first time or again
  final LongAdder failed = new LongAdder(); // times that it failed

  RegionFilters(Supplier<Collection<IndexedRegion>> regions, Executor counters, LongSupplier maxBytes) {
    this(regions, counters, maxBytes, System::nanoTime);
  }

  RegionFilters(
      Supplier<Collection<IndexedRegion>> regions, Executor counters, LongSupplier maxBytes, LongSupplier clock) {
    this.regions = regions;
    this.counters = counters;
    this.maxBytes = maxBytes;
    this.clock = clock;
  }

  /** Counts the entries of an index again, and publishes the filter. */
  void count(IndexedRegion region, Schema.Index index) throws IOException, InterruptedException {
    IndexFilter filter = region.filters.get(index.id);
    if (filter == null) return;
    while (!isCounted(region, index, filter)) { // the generation was too small; the next one is larger
    }
    counted.increment();
    if (filter.isMissing() && !region.isClosing()) {
      LOG.warn("No filter for an index of region {} before others go: those of this server have {} bytes",
          region.info().getEncodedName(), bytes());
    }
    giveRoom(); // it may be smaller than before
  }

  /** Counts one generation. False: it was too small for the entries. */
  private boolean isCounted(IndexedRegion region, Schema.Index index, IndexFilter filter)
      throws IOException, InterruptedException {
    if (!region.complete().contains(index.id)) return true;
    FilterRoom room = roomOf(filter);
    // No write is inside while it begins and its snapshot is taken: a removal that was committed before the snapshot
    // must not be applied to counts made from it.
    ReadView[] taken = new ReadView[1];
    region.building.lockInterruptibly();
    try {
      boolean quiet = region.whileQuiet(() -> {
        if (!filter.beginGeneration(() -> region.complete().contains(index.id), room)) return;
        taken[0] = new ReadView(region.region); // after it: an index that is made again meanwhile begins from the start
      });
      return !quiet || taken[0] == null || countEntries(region, index, filter, taken[0]);
    } catch (IOException | RuntimeException | Error e) {
      filter.abandonGeneration();
      throw e;
    } finally {
      region.building.unlock();
    }
  }

  /** Counts the entries of the view into the begun generation and publishes it. False: it was too small for them. */
  private boolean countEntries(IndexedRegion region, Schema.Index index, IndexFilter filter, ReadView view)
      throws IOException {
    boolean done = false;
    try {
      byte[] prefix = region.keys.index(index.id);
      Scan scan = new Scan().addFamily(IndexedTable.FAMILY).withStartRow(prefix).setCacheBlocks(false);
      if (Key.prefixEnd(prefix).length > 0) scan.withStopRow(Key.prefixEnd(prefix));
      List<IndexEntry> entries = new ArrayList<>();
      try (RowCursor rows = new RowCursor(view.open(scan))) {
        for (List<Cell> cells = rows.next(); cells != null; cells = rows.next()) {
          if (region.isClosing()) return true;
          byte[] key = CellUtil.cloneRow(cells.get(0));
          if (region.keys.kindOf(region.table.schema, key) != EntryKeys.Kind.ENTRY) continue;
          entries.add(region.keys.read(region.table.schema, index, key));
          if (entries.size() < 1000) continue;
          if (!filter.countExisting(entries)) return false;
          entries.clear();
          // A larger one may do as bits alone, or is not begun.
          if (filter.isTooLarge(roomOf(filter)) && filter.outgrow()) return false;
        }
      }
      if (!filter.countExisting(entries) || (filter.isTooLarge(roomOf(filter)) && filter.outgrow())) return false;
      filter.publish();
      done = true;
      return true;
    } catch (DamagedBytesException e) {
      throw new IOException("an entry of region " + region.info().getEncodedName() + " is damaged", e);
    } finally {
      view.close();
      if (!done) filter.abandonGeneration();
    }
  }

  /** On a thread of `counters`, counts those filters again that do not fit their index any more or now find room. */
  void lookAt(IndexedRegion region) {
    long now = clock.getAsLong();
    if (region.closing || !region.recounts.begin(now)) return;
    boolean handedOver = false;
    try {
      List<Schema.Index> worn = wornOf(region, now);
      if (worn.isEmpty()) return;
      counters.execute(() -> countAnew(region, worn));
      handedOver = true;
    } finally {
      if (!handedOver) region.recounts.end(); // memory may have run out: it is looked at again later
    }
  }

  private List<Schema.Index> wornOf(IndexedRegion region, long now) {
    boolean rests = region.recounts.rests(now);
    Room room = new Room();
    List<Schema.Index> worn = new ArrayList<>();
    for (Schema.Index index : region.table.schema.indexes) {
      IndexFilter filter = region.filters.get(index.id);
      if (filter == null || !region.complete().contains(index.id)) continue;
      boolean rebuild = (!rests || filter.isMissing()) && filter.wantsRebuild(REBUILD_AFTER_IGNORED, room.of(filter));
      if (rebuild || room.isExceededBy(filter)) worn.add(index);
    }
    return worn;
  }

  private void countAnew(IndexedRegion region, List<Schema.Index> worn) {
    // A job that makes entries holds the lock for long; it calls lookAt afterwards if putOff was called.
    if (!region.building.tryLock()) {
      region.recounts.end();
      region.recounts.putOff();
      // The job may have ended before putOff.
      if (!region.building.isLocked() && region.recounts.takePutOff()) lookAt(region);
      return;
    }
    boolean done = false;
    try {
      long began = clock.getAsLong();
      for (Schema.Index index : worn) {
        count(region, index);
        IndexFilter filter = region.filters.get(index.id);
        if (new Room().isExceededBy(filter)) filter.giveUp();
      }
      region.recounts.done(began, clock.getAsLong());
      done = true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (Throwable e) {
      region.recounts.failed(clock.getAsLong());
      failed.increment();
      if (!region.isClosed()) LOG.error("A filter of region {} stays as it is", region.info().getEncodedName(), e);
    } finally {
      region.building.unlock();
      region.recounts.end();
    }
    if (done) giveRoom(); // this one was left out as long as it was being counted
  }

  /** Called after a filter has gone or shrunk: tries again to count the filters that found no room before. */
  void giveRoom() {
    for (IndexedRegion region : regions.get()) {
      boolean missing = false;
      for (IndexFilter filter : region.filters.values()) missing |= filter.isMissing();
      if (missing) lookAt(region);
    }
  }

  /** The memory of all filters at one moment. */
  private final class Room {
    private long bytes;
    private long published; // `bytes` without the filter that is being counted
    private long count;

    Room() {
      for (IndexedRegion region : regions.get()) {
        for (IndexFilter filter : region.filters.values()) {
          bytes += filter.sizeBytes();
          published += filter.publishedBytes();
          if (filter.isPublished()) ++count;
        }
      }
    }

    FilterRoom of(IndexFilter filter) {
      return new FilterRoom(maxBytes.getAsLong(), bytes - filter.sizeBytes());
    }

    /**
     * Whether the filter is at least of average size and all published filters exceed their bound: writes add layers to
     * filters even if there is no room.
     */
    boolean isExceededBy(IndexFilter filter) {
      long own = filter.publishedBytes();
      boolean large = own > 0 && own * count >= published;
      return large && !new FilterRoom(maxBytes.getAsLong(), published - own).hasForBits(own);
    }
  }

  private FilterRoom roomOf(IndexFilter filter) {
    return new Room().of(filter);
  }

  long bytes() {
    return new Room().bytes;
  }
}
