package tamis.region;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.RegionTooBusyException;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.Region;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.regionserver.StoreFile;
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
  /** True if index entries fit between the region's keys (EntryKeys.fit). False: every search scans the region. */
  public final boolean hasEntries;

  /**
   * A writer holds the read lock from before it reads the old rows until the entries that it removed are uncounted.
   * whileQuiet holds the write lock.
   */
  public final ReentrantReadWriteLock gate = new ReentrantReadWriteLock();

  private final AtomicInteger closers = new AtomicInteger(); // threads that wait for the gate's write lock

  // Rows (by hash) in which a version was put that a tombstone masks. Such a version can become visible only until it
  // is flushed: then it is in the same file as its tombstone or in a later one, and the next compaction drops it. So
  // the bits are needed only while the region is open.
  private final AtomicLongArray hiding = new AtomicLongArray(HIDING_BITS / 64);

  // The MVCC number that no write of unknown outcome exceeds; 0: there was none.
  private final AtomicLong unknownUpTo = new AtomicLong();

  public final NewestTimestamps newest = new NewestTimestamps();

  private volatile Set<Integer> complete = Collections.emptySet();

  /** The first 63 bits of the region's encoded name. */
  public final long id;
  /** Distinguishes this opening from others in the same life of the server. */
  public final long epoch = EPOCHS.incrementAndGet();
  public final String server;

  /** The filters in which writes are counted, by index id. Set when the region is opened. */
  public volatile Map<Integer, IndexFilter> filters = Collections.emptyMap();
  /** Copies of the filters of the region's parent; null: there are none, or they are no longer needed. */
  public volatile InheritedFilters parentFilters;
  /** The System.nanoTime before which the region accepts no writes and no loads of files. */
  public volatile long notBefore = System.nanoTime();
  /**
   * The number of an event: a write is acknowledged only after coordinators have applied it. 0: there is none.
   * Long.MAX_VALUE: no event could be sent, so no write is acknowledged.
   */
  public final AtomicLong acknowledgeAfter = new AtomicLong();
  /** Null until the flag is raised: until then searches get no answer, and coordinators do not hear of the region. */
  public volatile OpeningFlag flag;
  /** Counts mini-batches with entries: after every so many of them the server checks whether the filters still fit. */
  public final AtomicLong writes = new AtomicLong();
  public final Recounts recounts = new Recounts();
  /** The number of loads of files that are under way. */
  public final AtomicInteger loads = new AtomicInteger();
  /** The number of loads of files that have begun since the region was opened. */
  public final AtomicLong loadsBegun = new AtomicLong();
  /** Held while the set of complete indexes is changed, in memory and in the markers that the region stores. */
  public final Object marking = new Object();
  /** Guarded by `marking`. */
  public final LoadedRows loadedRows = new LoadedRows();
  /** True if files were loaded since the region was opened: tombstones in any row may mask cells of these files. */
  public volatile boolean loaded;
  /** True once the closing of the region has begun; a REGION_CLOSED event is sent if coordinators know the region. */
  public volatile boolean closing;
  /** True once a REGION_OPENED event is sent. */
  public volatile boolean told;

  /** Held by the thread that builds the region's entries or counts its filters: one thread at a time. */
  public final ReentrantLock building = new ReentrantLock();
  /** The number of rows that the present or last build of missing entries has visited. */
  public volatile long rowsVisited;
  /** The number of attempts to complete the indexes that were begun. Only the last one is retried after a failure. */
  public final AtomicLong completions = new AtomicLong();
  /** Why the indexes could not be built or counted the last time; the work is retried. Null: the work did not fail. */
  public volatile BuildFailure failure;

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

  /** Whether a file of the table's cells was loaded since the region was opened, or before; no hook saw its writes. */
  public boolean hasLoadedCells() {
    if (loaded) return true;
    for (Store store : region.getStores()) {
      if (!table.isOurs(store.getColumnFamilyDescriptor().getName())) continue;
      for (StoreFile file : store.getStorefiles()) {
        if (file.isBulkLoadResult()) return true;
      }
    }
    return false;
  }

  /** The rows of files that were loaded, by family; null: it is not known which, or there are no files. */
  public List<LoadedRows.Range> rowsOf(Map<byte[], List<Path>> loaded) {
    if (loaded == null) return null;
    List<LoadedRows.Range> ranges = new ArrayList<>();
    for (Map.Entry<byte[], List<Path>> files : loaded.entrySet()) {
      Store store = region.getStore(files.getKey());
      if (store == null) return null;
      Set<String> missing = new HashSet<>();
      for (Path path : files.getValue()) missing.add(path.getName());
      for (StoreFile file : store.getStorefiles()) {
        if (!missing.remove(file.getPath().getName())) continue;
        Optional<Cell> first = file.getFirstKey();
        Optional<Cell> last = file.getLastKey();
        // A file without cells has neither.
        if (first.isPresent() != last.isPresent()) return null;
        if (first.isPresent()) {
          ranges.add(new LoadedRows.Range(CellUtil.cloneRow(first.get()), CellUtil.cloneRow(last.get())));
        }
      }
      if (!missing.isEmpty()) return null; // compacted already
    }
    return ranges;
  }

  public static long idOf(String encodedName) {
    return Math.max(1, Long.parseUnsignedLong(encodedName.substring(0, 16), 16) >>> 1);
  }

  /** True while entries are built or filters are counted. */
  public boolean isWorkedOn() {
    return building.isLocked() || recounts.isUnderWay();
  }

  /** True while requests may reach the region. */
  public boolean isOnline() {
    return !closed && online.getAsBoolean();
  }

  public boolean isClosed() {
    return closed;
  }

  /**
   * Throws while a former owner of the region may still answer searches: its answers would lack writes that are
   * acknowledged here.
   */
  public void refuseBeforeItsTime() throws RegionTooBusyException {
    long left = notBefore - System.nanoTime();
    if (left <= 0) return;
    throw new RegionTooBusyException("cannot write to region " + info().getEncodedName()
        + " yet: its former owner did not close it cleanly and may still answer searches; nothing was done; retry"
        + " in " + (TimeUnit.NANOSECONDS.toMillis(left) + 1) + " ms");
  }

  /** Work that runs while no writer is inside the gate. */
  public interface Work {
    void run() throws IOException;
  }

  /**
   * Runs the work while no writer is inside the gate, and while a snapshot shows every write that was. Until that is
   * possible it tries again and again, and delays new writers by at most 50 ms each time. False: the region closes, and
   * the work did not run.
   */
  public boolean whileQuiet(Work work) throws IOException, InterruptedException {
    while (!isClosing()) {
      if (!showsEndedWrites() || !ranAlone(work)) {
        Thread.sleep(20);
        continue;
      }
      return true;
    }
    return false;
  }

  private boolean ranAlone(Work work) throws IOException, InterruptedException {
    boolean gated = !Fault.RECOUNT_AMONG_WRITERS.isOn();
    if (gated && !tryCloseGate()) return false;
    try {
      if (!showsEndedWrites()) return false;
      work.run();
      return true;
    } finally {
      if (gated) gate.writeLock().unlock();
    }
  }

  /** Writers that queue for coordinators hold the gate: they go on, so that it is free in a moment. */
  private boolean tryCloseGate() throws InterruptedException {
    closers.incrementAndGet();
    try {
      host.hurryQueued();
      return gate.writeLock().tryLock(50, TimeUnit.MILLISECONDS);
    } finally {
      closers.decrementAndGet();
    }
  }

  /** Whether work waits until no writer is inside the gate. */
  public boolean isGateClosing() {
    return closers.get() > 0;
  }

  /**
   * A write leaves the gate, and it is not known whether it stands. HBase completes its MVCC number but does not wait
   * until scanners see it, which they do not before all earlier writes are complete. Takes no memory.
   */
  public void outcomeUnknown() {
    if (!(region instanceof HRegion)) return;
    long number = ((HRegion) region).getMVCC().getWritePoint();
    for (long known = unknownUpTo.get(); known < number; known = unknownUpTo.get()) {
      if (unknownUpTo.compareAndSet(known, number)) return;
    }
  }

  /** Whether a scanner that is opened now sees all of the writes of unknown outcome that stand. */
  private boolean showsEndedWrites() {
    long number = unknownUpTo.get();
    return number == 0 || Fault.RECOUNT_BEFORE_WRITES_SHOW.isOn()
        || ((HRegion) region).getMVCC().getReadPoint() >= number;
  }

  /**
   * A number that changes with each load of files. It is negative while a load is under way: the set of files is then
   * not settled.
   */
  public long filesSince() {
    long begun = loadsBegun.get();
    return loads.get() > 0 ? -begun - 1 : begun;
  }

  /** True if the region closes or is closed: long work on it should end. */
  public boolean isClosing() {
    return closed || closing;
  }

  /** True if the region closes, or its server stops or aborts: HBase may then close files that calls still read. */
  public boolean isLeaving() {
    if (Fault.FAILURE_OF_A_CLOSING_REGION_TOLD.isOn()) return false;
    boolean closing = isClosing() || !isOnline();
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

  /** The ids of the complete indexes: they have an entry for every row. */
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
