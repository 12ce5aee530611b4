package tamis.server;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionFileSystem;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;
import org.apache.hadoop.hbase.wal.WALSplitUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.index.IndexBuilder;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.region.OpeningFlag;

/**
 * The steps of opening and closing a region which ensure that a coordinator that still believes in the former owner
 * misses no row that the next owner acknowledges: the flag of the opening, the wait after an owner that did not close
 * it cleanly, the event of the closing. Threads: safe.
 */
final class RegionLife {
  private static final Logger LOG = LoggerFactory.getLogger(RegionLife.class);
  private static final long CLOSING_WAIT_NS = TimeUnit.MILLISECONDS.toNanos(1500); // a lease, and a little
  private static final long NEW = 1; // sequence number of a region that was never open and is made of no other

  private final FilterFeed feed;
  private final LongSupplier clock;
  private final BooleanSupplier aborts;

  RegionLife(FilterFeed feed, LongSupplier clock, BooleanSupplier aborts) {
    this.feed = feed;
    this.clock = clock;
    this.aborts = aborts;
  }

  /** Called in postOpen: nothing is written to the region, and coordinators have not heard of it yet. */
  void opened(IndexedRegion region) {
    // The longest wait, until it is known how the last owner closed the region.
    region.notBefore = clock.getAsLong() + Ownership.OPENING_WAIT_NS;
    try {
      OpeningFlag flag = raise(region);
      boolean feared = flag.foundOthers() || (!flag.wasOpened() && mayHaveOtherParents(region));
      if (!feared || Fault.NO_OPENING_WAIT.isOn()) region.notBefore = clock.getAsLong();
      region.flag = flag;
    } catch (Throwable e) {
      LOG.error(
          "Cannot raise the flag of region {}: it is neither searched nor announced to coordinators until that is done",
          region.info().getEncodedName(), e);
    }
  }

  /**
   * Raises the flag if that failed in postOpen. Another server may have opened the region since then and have found no
   * flag. So the flag counts only if, after it was raised, `proves` proves that this server still owns the region.
   * False: try again later.
   */
  boolean raiseLate(IndexedRegion region, BooleanSupplier proves) {
    try {
      OpeningFlag flag = raise(region);
      if (!Fault.LATE_FLAG_WITHOUT_PROOF.isOn() && !proves.getAsBoolean()) return false;
      region.flag = flag;
      return true;
    } catch (Throwable e) {
      LOG.warn(
          "Cannot raise the flag of region {}: it is neither searched nor announced to coordinators until that is done",
          region.info().getEncodedName(), e);
      return false;
    }
  }

  private static OpeningFlag raise(IndexedRegion region) throws IOException {
    HRegionFileSystem files = ((HRegion) region.region).getRegionFileSystem();
    OpeningFlag flag = new OpeningFlag(files.getFileSystem(), files.getRegionDir(), parents(region),
        region.server.replace(',', '-') + "-" + region.epoch);
    if (Fault.BELIEVED_BEFORE_ITS_FLAG.isOn()) region.flag = flag;
    flag.raise();
    return flag;
  }

  /** Directories of the regions that its files say it was made of. */
  private static Set<Path> parents(IndexedRegion region) {
    Path table = ((HRegion) region.region).getRegionFileSystem().getRegionDir().getParent();
    Set<Path> parents = new HashSet<>();
    for (String parent : IndexBuilder.origins(region)) {
      if (!parent.isEmpty()) parents.add(new Path(table, parent));
    }
    return parents;
  }

  /**
   * True if the region may be made of regions that its files do not name (an empty daughter has no files): then the
   * flags of their owners are not found. HBase gives a region that is made of others their last sequence number before
   * it is first opened.
   */
  private static boolean mayHaveOtherParents(IndexedRegion region) throws IOException {
    if (Fault.UNKNOWN_PARENTS_NOT_FEARED.isOn()) return false;
    // Files of its own: it was open, before its table was indexed.
    if (IndexBuilder.origins(region).contains("")) return false;
    HRegion opened = (HRegion) region.region;
    FileSystem logs = CommonFSUtils.getWALFileSystem(opened.getReadOnlyConfiguration());
    if (WALSplitUtil.getMaxRegionSequenceId(logs, opened.getWALRegionDir()) <= NEW) return false;
    List<RegionInfo> known = new ArrayList<>();
    for (Path parent : parents(region)) {
      try {
        known.add(HRegionFileSystem.loadRegionInfoFileContent(opened.getRegionFileSystem().getFileSystem(), parent));
      } catch (FileNotFoundException e) {
        return true; // it is archived, and links to its files are left
      }
    }
    return !covered(opened.getRegionInfo(), known);
  }

  /** Whether each key of the region lies in one of the regions `by`. */
  static boolean covered(RegionInfo region, List<RegionInfo> by) {
    List<RegionInfo> sorted = new ArrayList<>(by);
    sorted.sort(Comparator.comparing(RegionInfo::getStartKey, Bytes.BYTES_COMPARATOR));
    byte[] from = region.getStartKey();
    for (RegionInfo each : sorted) {
      if (Bytes.compareTo(each.getStartKey(), from) > 0) return false;
      if (each.getEndKey().length == 0) return true;
      if (Bytes.compareTo(each.getEndKey(), from) > 0) from = each.getEndKey();
      if (region.getEndKey().length > 0 && Bytes.compareTo(from, region.getEndKey()) >= 0) return true;
    }
    return false;
  }

  /**
   * Called once the region is online: deletes the flags of former owners if the opening wait is over. Returns how many
   * ns are left of the wait; 0: nothing is left to do.
   */
  long settle(IndexedRegion region) throws IOException {
    OpeningFlag flag = region.flag;
    if (flag == null || !flag.foundOthers() || region.isClosed()) return 0;
    long left = region.notBefore - clock.getAsLong();
    if (left > 0) return left;
    flag.deleteOthers();
    return 0;
  }

  /**
   * Tells coordinators that the region closes. HBase calls preClose twice: the first call appends the event, the second
   * waits until coordinators have applied it.
   */
  void closing(IndexedRegion region) throws InterruptedException {
    boolean first;
    synchronized (region) {
      first = !region.closing;
      region.closing = true;
      if (first) {
        for (IndexFilter filter : region.filters.values()) filter.retire();
        // Writes go on, and wait until coordinators have applied the closing: then none of them excludes the region.
        if (region.told && !Fault.CLOSING_NOT_TOLD.isOn()) {
          boolean told = false;
          try {
            region.acknowledgeAfter.accumulateAndGet(tellClosed(region), Math::max);
            told = true;
          } finally {
            // Coordinators that believe in the region do not hear of it: the flag stays, and its next owner waits.
            if (!told) region.acknowledgeAfter.set(Long.MAX_VALUE);
          }
        }
      }
    }
    if (!first && !aborts.getAsBoolean()) {
      feed.waitAcknowledged(region.acknowledgeAfter.get(), clock.getAsLong() + CLOSING_WAIT_NS);
    }
    if (Fault.FLAG_LOWERED_IN_PRECLOSE.isOn()) lowerFlag(region);
  }

  private long tellClosed(IndexedRegion region) {
    return feed.append(Cluster.Event.newBuilder()
                           .setKind(Cluster.Event.Kind.REGION_CLOSED)
                           .setRegionId(region.id)
                           .setEpoch(region.epoch));
  }

  void closed(IndexedRegion region, boolean inOrder) {
    synchronized (region) {
      for (IndexFilter filter : region.filters.values()) filter.retire();
      if (region.told && !region.closing) { // preClose did not get here: an abort, or another coprocessor threw
        region.closing = true;
        tellClosed(region);
        inOrder = false;
      }
    }
    // Only now: until the region is closed it takes writes, and the closing may still fail.
    if (inOrder) lowerFlag(region);
  }

  private void lowerFlag(IndexedRegion region) {
    OpeningFlag flag = region.flag;
    if (flag == null) return;
    // No coordinator believes in this opening any more, nor in one before it.
    boolean known =
        feed.acknowledgedFloor() >= region.acknowledgeAfter.get() || Fault.FLAG_LOWERED_BEFORE_ALL_KNOW.isOn();
    boolean settled = region.notBefore - clock.getAsLong() <= 0 || Fault.FLAG_LOWERED_BEFORE_ITS_WAIT.isOn();
    if (!known || !settled) return;
    try {
      flag.deleteOthers();
      flag.lower();
    } catch (IOException e) {
      LOG.warn("The flag of region {} stays: its next owner waits a moment", region.info().getEncodedName(), e);
    }
  }
}
