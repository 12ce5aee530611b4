package tamis.region;

import java.util.Arrays;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.HStoreFile;

/**
 * An upper bound of the time stamps of a row's versions and tombstones: the newest in the region's files when this was
 * first called, and the newest written since, by a hash of the row. A put with a greater time stamp, as nearly all puts
 * have, need not read what could hide it. Threads: safe; the writers of one row must come one after the other.
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

  /** Whether the row may have a version or tombstone at the time stamp or above. */
  public boolean mayStand(IndexedRegion region, byte[] row, long timestamp) {
    if (region.loaded) return true; // the loaded files were not looked at
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
