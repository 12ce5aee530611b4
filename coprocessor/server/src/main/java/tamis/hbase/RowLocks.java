package tamis.hbase;

import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Exclusive locks of rows, for all regions of the server: HBase takes shared ones for puts. Taken behind HBase's own,
 * and in one order, so that nobody waits in a circle. Behind them HBase locks rows again that it holds, and no others.
 * Threads: safe.
 */
final class RowLocks {
  private static final int STRIPES = 1 << 14;
  private static final ReentrantLock[] LOCKS = new ReentrantLock[STRIPES];

  static {
    for (int i = 0; i < STRIPES; ++i) LOCKS[i] = new ReentrantLock();
  }

  private RowLocks() {}

  /** What is held; null: not within the time, and nothing is held. */
  static int[] acquire(int region, Collection<byte[]> rows, long timeoutNs) throws InterruptedException {
    int[] stripes = new int[rows.size()];
    int n = 0;
    for (byte[] row : rows) {
      int hash = (Arrays.hashCode(row) ^ region) * 0x9e3779b1;
      stripes[n++] = hash >>> 18;
    }
    stripes = Arrays.stream(stripes).sorted().distinct().toArray();
    long deadline = System.nanoTime() + timeoutNs;
    for (int i = 0; i < stripes.length; ++i) {
      boolean taken = false;
      try {
        taken = LOCKS[stripes[i]].tryLock() || LOCKS[stripes[i]].tryLock(Math.max(0, deadline - System.nanoTime()),
            TimeUnit.NANOSECONDS);
      } finally {
        if (!taken) release(Arrays.copyOf(stripes, i));
      }
      if (!taken) return null;
    }
    return stripes;
  }

  /** REQUIRES: the thread that acquired them. */
  static void release(int[] stripes) {
    for (int stripe : stripes) LOCKS[stripe].unlock();
  }
}
