package tamis.region;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.Region;
import tamis.base.Fault;
import tamis.feed.IndexFilter;
import tamis.feed.Recounts;
import tamis.table.Schema;

/** One opening of a region of an indexed table on this server. Threads: safe. */
public final class IndexedRegion {
  private static final int HIDING_BITS = 1 << 14;
  private static final int HIDING_SHIFT = 18;
  private static final AtomicLong EPOCHS = new AtomicLong();

  public final Region region;
  public final IndexedTable table;
  public final EntryKeys keys;
  /** Whether there is room for entries; else the region is scanned, always. */
  public final boolean hasEntries;

  /** Writers are inside from before they read the old row until what they removed is uncounted. */
  public final ReentrantReadWriteLock gate = new ReentrantReadWriteLock();

  // Rows (by hash) of which a version was put behind a tombstone. It may show until it is flushed: then it stands in a
  // file with its tombstone, or behind the file of it, and the next compaction drops it. So this need not be kept
  // longer than the region is open.
  private final AtomicLongArray hiding = new AtomicLongArray(HIDING_BITS / 64);

  public final NewestTimestamps newest = new NewestTimestamps();

  private volatile Set<Integer> complete = Collections.emptySet();

  /** The first 63 bits of the region's encoded name. */
  public final long id;
  /** Tells this opening from others of the same life of the server. */
  public final long epoch = EPOCHS.incrementAndGet();
  public final String server;

  /** The indexes that can be reported; by index id. Set when the region is opened. */
  public volatile Map<Integer, IndexFilter> filters = Collections.emptyMap();
  /** From its parent; null: nothing. */
  public volatile InheritedFilters parentFilters;
  /** nanoTime before which nothing is acknowledged. */
  public volatile long notBefore = System.nanoTime();
  /** Writes are acknowledged only once this event is. */
  public final AtomicLong acknowledgeAfter = new AtomicLong();
  /** Null until it is raised: till then no search is answered and nothing is told. */
  public volatile OpeningFlag flag;
  /** Now and then it is asked whether the filters still fit. */
  public final AtomicLong writes = new AtomicLong();
  public final Recounts recounts = new Recounts();
  /** Loads of files that are under way. */
  public final AtomicInteger loads = new AtomicInteger();
  /** The number of loads that ever began. */
  public final AtomicLong loadsBegun = new AtomicLong();
  /** Held while it is said which indexes are complete, here and by markers. */
  public final Object marking = new Object();
  /** Files were loaded since it was opened: what they brought may stand behind tombstones of any row. */
  public volatile boolean loaded;
  /** The closing was told. */
  public volatile boolean closing;
  /** The opening was told. */
  public volatile boolean told;

  /** Held by whoever makes its entries or counts its filters: one at a time. */
  public final ReentrantLock building = new ReentrantLock();
  /** By whoever makes its entries. */
  public volatile long rowsVisited;
  /** How often it was begun to complete its indexes: the last one goes on, whatever fails. */
  public final AtomicLong completions = new AtomicLong();
  /** Why its indexes could not be made, or not be counted; it is tried again. Null: it could. */
  public volatile String problem;

  public final RegionHost host;
  private final BooleanSupplier online;
  private volatile boolean closed;

  public IndexedRegion(Region region, IndexedTable table, String server, BooleanSupplier online, RegionHost host) {
    this.region = region;
    this.table = table;
    this.server = server;
    this.online = online;
    this.host = host;
    id = idOf(region.getRegionInfo().getEncodedName());
    RegionInfo info = region.getRegionInfo();
    keys = new EntryKeys(info.getStartKey(), info.getEndKey(), table.prefixZeros);
    hasEntries = keys.fit();
  }

  public static long idOf(String encodedName) {
    return Math.max(1, Long.parseUnsignedLong(encodedName.substring(0, 16), 16) >>> 1);
  }

  /** Requests may reach it. */
  public boolean isOnline() {
    return !closed && online.getAsBoolean();
  }

  public boolean isClosed() {
    return closed;
  }

  /** Throws while the last owner may still be believed: he would answer without what is acknowledged here. */
  public void refuseBeforeItsTime() throws RegionTooBusyException {
    if (notBefore - System.nanoTime() <= 0) return;
    throw new RegionTooBusyException("the region was opened behind an owner who did not close it in good order;"
        + " it takes"
        + " writes in a moment");
  }

  /** Work that runs while no writer is inside. */
  public interface Work {
    void run() throws IOException;
  }

  /**
   * Does it while no writer is inside, and waits for such a moment without holding anybody up for long. False: the
   * region closes.
   */
  public boolean whileQuiet(Work work) throws IOException, InterruptedException {
    while (!isGoing()) {
      boolean gated = !Fault.RECOUNT_AMONG_WRITERS.isOn();
      if (gated && !gate.writeLock().tryLock(50, TimeUnit.MILLISECONDS)) {
        Thread.sleep(20);
        continue;
      }
      try {
        work.run();
        return true;
      } finally {
        if (gated) gate.writeLock().unlock();
      }
    }
    return false;
  }

  /**
   * Tells the state of its files from one after a further load; negative while one is under way: it equals no other.
   */
  public long filesSince() {
    long begun = loadsBegun.get();
    return loads.get() > 0 ? -begun - 1 : begun;
  }

  /** It closes or has been closed: long work on it ends. */
  public boolean isGoing() {
    return closed || closing;
  }

  /** The region closes, or its server stops or aborts: HBase closes what calls still read from. */
  public boolean isLeaving() {
    if (Fault.FAILURE_OF_A_CLOSING_REGION_TOLD.isOn()) return false;
    boolean closing = isGoing() || !isOnline();
    if (region instanceof HRegion) {
      HRegion here = (HRegion) region;
      closing |= here.isClosing() || here.isClosed();
    }
    return closing || host.isEnding();
  }

  public void setClosed() {
    closed = true;
  }

  public RegionInfo info() {
    return region.getRegionInfo();
  }

  public boolean isHiding(byte[] row) {
    int bit = Arrays.hashCode(row) * 0x9e3779b1 >>> HIDING_SHIFT;
    return (hiding.get(bit / 64) >>> bit & 1) != 0;
  }

  public void setHiding(byte[] row) {
    int bit = Arrays.hashCode(row) * 0x9e3779b1 >>> HIDING_SHIFT;
    hiding.accumulateAndGet(bit / 64, 1L << bit, (a, b) -> a | b);
  }

  /** Ids of the indexes that have an entry for every row. */
  public Set<Integer> complete() {
    return complete;
  }

  public void setComplete(Collection<Integer> indexes) {
    Set<Integer> ids = new HashSet<>();
    for (Schema.Index index : table.schema.indexes) {
      if (indexes.contains(index.id)) ids.add(index.id);
    }
    complete = Collections.unmodifiableSet(ids);
  }

  public List<Integer> indexIds() {
    List<Integer> ids = new ArrayList<>();
    for (Schema.Index index : table.schema.indexes) ids.add(index.id);
    return ids;
  }
}
