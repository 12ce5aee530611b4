package tamis.index;

import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import tamis.table.Hash;

/**
 * Exclusive locks of rows, for all regions of the server; HBase's own row locks are shared among puts. A batch takes
 * these after HBase's, in the order of their hashes, and while it holds them HBase locks no row that it does not hold
 * already. So batches cannot deadlock. Rows are locked by 64-bit hash: two batches of hundreds of rows share a lock
 * only if they share a row. Locks are not fair: of the batches that wait for a row, the first that runs gets it.
 *
 * Threads: safe.
 */
final class RowLocks {
  private static final ConcurrentHashMap<Long, Held> LOCKS = new ConcurrentHashMap<>();

  /** The locks of one batch; released as a whole, by the thread that acquired them. */
  static final class Held {
    private final Thread owner = Thread.currentThread();
    private final long[] rows; // hashes, in the order in which they are locked
    private int locked; // how many of these are locked, from the front
    private boolean released;

    private Held(long[] rows) {
      this.rows = rows;
    }

    void release() {
      // Locks that an outer batch of the thread holds are its own to release.
      for (int i = 0; i < locked; ++i) LOCKS.remove(rows[i], this);
      synchronized (this) {
        released = true;
        notifyAll();
      }
    }

    private synchronized boolean awaitRelease(long deadline) throws InterruptedException {
      while (!released) {
        long left = deadline - System.nanoTime();
        if (left <= 0) return false;
        TimeUnit.NANOSECONDS.timedWait(this, left);
      }
      return true;
    }
  }

  private RowLocks() {}

  /**
   * Locks the rows. Returns null, and holds nothing, if that takes longer than the time. A row that this thread has
   * locked already stays locked by the earlier call.
   */
  static Held acquire(long region, Collection<byte[]> rows, long timeoutNs) throws InterruptedException {
    long[] hashes = new long[rows.size()];
    int n = 0;
    for (byte[] row : rows) hashes[n++] = Hash.of(row, 0) ^ region * 0x9e3779b97f4a7c15L;
    Arrays.sort(hashes);
    Held mine = new Held(hashes);
    long deadline = System.nanoTime() + timeoutNs;
    boolean done = false;
    try {
      while (mine.locked < hashes.length) {
        Held other = LOCKS.putIfAbsent(hashes[mine.locked], mine);
        if (other == null || other.owner == mine.owner) {
          ++mine.locked;
        } else if (!other.awaitRelease(deadline)) {
          return null;
        }
      }
      done = true;
      return mine;
    } finally {
      if (!done) mine.release();
    }
  }
}
