package tamis.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RowLocksTest {
  private static final long LONG = TimeUnit.MINUTES.toNanos(1);

  private final ExecutorService others = Executors.newCachedThreadPool();

  @AfterEach
  void end() {
    others.shutdownNow();
  }

  private static Collection<byte[]> rows(int from, int to) {
    List<byte[]> rows = new ArrayList<>();
    for (int i = from; i < to; ++i) rows.add(Bytes.toBytes(i));
    return rows;
  }

  private <T> T elsewhere(Callable<T> work) throws Exception {
    return others.submit(work).get(1, TimeUnit.MINUTES);
  }

  @Test
  void batchesWithoutARowInCommonDoNotWait() throws Exception {
    RowLocks.Held held = RowLocks.acquire(1, rows(0, 5000), 0);
    assertNotNull(held);
    elsewhere(() -> {
      RowLocks.Held theirs = RowLocks.acquire(1, rows(5000, 50_000), 0);
      assertNotNull(theirs);
      theirs.release();
      RowLocks.Held same = RowLocks.acquire(2, rows(0, 5000), 0); // rows of another region
      assertNotNull(same);
      same.release();
      return null;
    });
    held.release();
  }

  @Test
  void lockRequestThatComesTooLateHoldsNothing() throws Exception {
    RowLocks.Held held = RowLocks.acquire(5, rows(5, 6), 0);
    assertNull(elsewhere(() -> RowLocks.acquire(5, rows(0, 10), 1)));
    RowLocks.Held rest = elsewhere(() -> RowLocks.acquire(5, rows(6, 10), 0));
    assertNotNull(rest);
    held.release();
    assertNotNull(RowLocks.acquire(5, rows(0, 6), 0));
  }

  @Test
  void aBatchInsideOfABatchKeepsTheLocksOfTheOuterOne() throws Exception {
    RowLocks.Held outer = RowLocks.acquire(3, rows(0, 2), 0);
    RowLocks.Held inner = RowLocks.acquire(3, rows(1, 3), 0);
    assertNotNull(inner);
    inner.release();
    assertNull(elsewhere(() -> RowLocks.acquire(3, rows(1, 2), 0)));
    RowLocks.Held last = elsewhere(() -> RowLocks.acquire(3, rows(2, 3), 0));
    assertNotNull(last);
    outer.release();
    assertNotNull(RowLocks.acquire(3, rows(0, 2), 0));
  }

  @Test
  void aRowIsOneThreadsAtATime() throws Exception {
    long seed = System.nanoTime();
    int rows = 20;
    AtomicReferenceArray<Thread> owners = new AtomicReferenceArray<>(rows);
    List<Future<Integer>> done = new ArrayList<>();
    for (int t = 0; t < 4; ++t) {
      Random random = new Random(seed + t);
      done.add(others.submit(() -> {
        int wrong = 0;
        for (int i = 0; i < 2000; ++i) {
          TreeSet<byte[]> mine = new TreeSet<>(Bytes.BYTES_COMPARATOR);
          for (int k = random.nextInt(6); k >= 0; --k) mine.add(Bytes.toBytes(random.nextInt(rows)));
          RowLocks.Held held = RowLocks.acquire(4, mine, LONG);
          for (byte[] row : mine) {
            if (!owners.compareAndSet(Bytes.toInt(row), null, Thread.currentThread())) ++wrong;
          }
          Thread.yield();
          for (byte[] row : mine) {
            if (!owners.compareAndSet(Bytes.toInt(row), Thread.currentThread(), null)) ++wrong;
          }
          held.release();
        }
        return wrong;
      }));
    }
    for (Future<Integer> one : done) assertEquals(0, one.get(1, TimeUnit.MINUTES), "seed " + seed);
  }
}
