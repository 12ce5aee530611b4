package tamis.region;

import java.util.Arrays;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.HStoreFile;

/**
 * A bound on the time stamps that stand in a row, of versions and tombstones alike: what its files had when they were
 * first looked at, and what was written since, by a hash of the row. A put above it need not look for what would hide
 * it, which is how nearly all puts are. Threads: safe; a row's writers one after the other.
 */
public final class NewestTimestamps {
  private static final int STRIPES = 1 << 10;
  private static final int SHIFT = 32 - 10;

  private final AtomicLongArray newest = new AtomicLongArray(STRIPES);
  private volatile long inFiles = Long.MIN_VALUE; // not known yet

  private static int stripe(byte[] row) {
    return Arrays.hashCode(row) * 0x9e3779b1 >>> SHIFT;
  }

  public void note(byte[] row, long timestamp) {
    newest.accumulateAndGet(stripe(row), timestamp, Math::max);
  }

  /** Whether something may stand in the row at the time stamp or above. */
  public boolean mayStand(IndexedRegion region, byte[] row, long timestamp) {
    if (region.loaded) return true; // files came that nobody looked at
    long files = inFiles;
    if (files == Long.MIN_VALUE) {
      files = newestInFiles(region);
      inFiles = files;
    }
    return timestamp <= files || timestamp <= newest.get(stripe(row));
  }

  private static long newestInFiles(IndexedRegion region) {
    if (!(region.region instanceof HRegion)) return Long.MAX_VALUE;
    long newest = 0;
    for (HStore store : ((HRegion) region.region).getStores()) {
      if (!region.table.isOurs(store.getColumnFamilyDescriptor().getName())) continue;
      for (HStoreFile file : store.getStorefiles()) {
        OptionalLong stamp = file.getReader() == null ? OptionalLong.empty() : file.getMaximumTimestamp();
        newest = Math.max(newest, stamp.isPresent() ? stamp.getAsLong() : Long.MAX_VALUE);
      }
    }
    return newest;
  }
}
