package tamis.index;

import java.util.Arrays;
import java.util.Collection;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import tamis.filter.Hash;

/**
 * Exclusive locks of rows, for all regions of the server: HBase takes shared ones for puts. Taken behind HBase's own,
 * and in one order, so that nobody waits in a circle. Behind them HBase locks rows again that it holds, and no others.
 * A lock goes by the 64-bit hash of its row: batches of hundreds of rows have none in common unless they have a row.
 * Not fair: of those who wait for a row whoever runs first has it.
 *
 * Threads: safe.
 */
final class RowLocks {
  private static final ConcurrentHashMap<Long, Held> LOCKS = new ConcurrentHashMap<>();

  /** The locks of one batch; released as a whole, by the thread that acquired them. */
  static final class Held {
    private final Thread owner = Thread.currentThread();
    private final long[] rows; // hashes, in the order in which they are locked
    private int locked; // of these, from the front
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

  /** Null: not within the time, and nothing is held. Rows that this thread has locked already stay as they are. */
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
