package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.hbase.RegionForTest;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.table.CellMapForTest;
import tamis.table.Hash;

/**
 * Memory runs out in the hooks of a write, at each of their places in turn, while a coordinator listens: no entry is
 * lost, nothing that is acknowledged is excluded, and no lock stays.
 */
class OutOfMemoryTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final byte[] A = Bytes.toBytes("a");

  private RegionForTest test;
  private IndexedRegion region;
  private final FeedCopy copy = new FeedCopy(99);
  private final AtomicBoolean stopped = new AtomicBoolean();
  private final AtomicReference<Throwable> pollFailed = new AtomicReference<>();
  private Thread poller;

  @BeforeEach
  void openRegion() throws Exception {
    FeedOptions options = new FeedOptions();
    options.leaseNs = 600 * SECOND;
    FilterFeed feed = TestServer.start(options);
    Table.Index index = RegionForTest.index(1, "by_a", true, 1).toBuilder().setExpectedValues(64).build();
    test = RegionForTest.of(1, RegionForTest.withCells(index, CellMapForTest.ofTwoDigits(64)));
    region = test.indexed();
    TestServer.open(region);
    poller = new Thread(() -> {
      try {
        while (!stopped.get()) {
          copy.apply(feed.poll(copy.request(SECOND / 50), () -> System.nanoTime() + 600 * SECOND), System.nanoTime());
        }
      } catch (Throwable e) {
        pollFailed.set(e);
      }
    });
    poller.start();
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    stopped.set(true);
    poller.join();
    TestServer.close(region);
    TestServer.stop();
    test.close();
  }

  private boolean excludes(String value) {
    return copy.excludes(region.id, 1, Hash.of(encoded(value), 1), encoded(value)) || excludesFrom(value);
  }

  /** Whether a query for values from this one on, below the next cell, leaves the region out. */
  private boolean excludesFrom(String value) {
    byte[] low = encoded(value);
    return copy.excludesRange(region.id, 1, region.table.schema.index(1).cellMap, low, encoded(value + "~"));
  }

  /** Until the coordinator has the filter's bits. */
  private void awaitBits(String absent) {
    while (!excludes(absent) && pollFailed.get() == null) Thread.yield();
  }

  private interface Write {
    void of(byte[] row, String value) throws IOException;
  }

  private void put(byte[] row, String value) throws IOException {
    test.region.put(new Put(row).addColumn(RegionForTest.F, A, Bytes.toBytes(value)));
  }

  /** On another thread, as the next client's handler: it finds locks that stayed. */
  private void onAnotherThread(Write write, byte[] row, String value) throws Exception {
    CompletableFuture<Throwable> ended = new CompletableFuture<>();
    new Thread(() -> {
      try {
        write.of(row, value);
        ended.complete(null);
      } catch (Throwable e) {
        ended.complete(e);
      }
    }).start();
    assertNull(ended.get(), "memory is there again");
  }

  /** Acknowledged values that a coordinator excluded. Each time `times` places in a row find no memory. */
  private int lost(Write write, long times, Fault... more) throws Exception {
    int lost = 0;
    boolean failed = true;
    for (int n = 1; failed; ++n) {
      if (!region.filters.get(1).isPublished()) TestServer.count(region);
      String value = "value" + times + "-" + n;
      awaitBits(value);
      byte[] row = Bytes.toBytes("r" + n % 3); // mostly there is an older value, whose entry goes
      failed = false;
      Fault[] faults = java.util.Arrays.copyOf(more, more.length + 1);
      faults[more.length] = Fault.OUT_OF_MEMORY;
      Fault.exhaustMemory(n, times);
      Fault.only(faults);
      try {
        write.of(row, value);
        if (excludes(value)) ++lost;
      } catch (IOException e) { // never an Error: HBase would take the observer out
        failed = true;
      } finally {
        Fault.only(more);
      }
      failed |= Fault.hasExhaustedMemory();
      assertEquals(0, region.gate.getReadLockCount(), "place " + n);
      onAnotherThread(this::put, row, value);
      if (excludes(value)) ++lost;
      Cluster.RegionCheck check = Checker.check(region, rows -> true);
      assertEquals(0, check.getMissingEntries() + check.getMissingInFilter() + check.getForeignEntries(),
          "place " + n + ": " + check);
      assertTrue(n < 200, "a write has that many places?");
    }
    assertNull(pollFailed.get());
    return lost;
  }

  @Test
  void noValueIsLostWhereMemoryRunsOutOnce() throws Exception {
    assertEquals(0, lost(this::put, 1));
  }

  @Test
  void noValueIsLostWhereMemoryRunsOutUntilTheWriteEnds() throws Exception {
    assertEquals(0, lost(this::put, 1000));
    assertEquals(0,
        lost((row, value)
                 -> test.region.mutateRow(
                     new RowMutations(row)
                         .add((Mutation) new Put(row).addColumn(RegionForTest.F, A, Bytes.toBytes(value)))
                         .add((Mutation) new Append(row).addColumn(RegionForTest.F, Bytes.toBytes("s"), A))),
            1000));
  }

  @Test
  void aValueIsLostWhereASpoiltFilterIsKept() throws Exception {
    assertTrue(lost(this::put, 1, Fault.SPOILT_FILTER_KEPT) > 0);
  }

  @Test
  void closeWithoutAClosingEventIsNotClean() throws Exception {
    FilterFeed feed = TestServer.state().feed;
    RegionLife life = new RegionLife(feed, System::nanoTime, () -> false);
    Fault.exhaustMemory(1, 1);
    Fault.only(Fault.OUT_OF_MEMORY);
    assertThrows(OutOfMemoryError.class, () -> life.closing(region));
    Fault.only();
    assertTrue(feed.openRegions().contains(region.id));
    assertTrue(feed.acknowledgedFloor() < region.acknowledgeAfter.get()); // so its flag stays
    assertFalse(feed.waitAcknowledged(region.acknowledgeAfter.get(), System.nanoTime()));
  }

  /** Values that come again, acknowledged and excluded, after memory ran out in a clearer at one of its places. */
  private int lostBehindTheClearer() throws Exception {
    int lost = 0;
    boolean failed = true;
    for (int n = 1; failed; ++n) {
      if (!region.filters.get(1).isPublished()) TestServer.count(region);
      String value = "v" + (10 + n % 50);
      put(Bytes.toBytes("r"), value);
      put(Bytes.toBytes("r"), "v" + (10 + (n + 20) % 50)); // the cell of the first one is empty, and it was an end
      awaitBits("v90");
      failed = false;
      Fault.exhaustMemory(n, 1);
      Fault.only(Fault.OUT_OF_MEMORY);
      try {
        TestServer.clear(region);
      } catch (OutOfMemoryError e) {
        failed = true;
      } finally {
        Fault.only();
      }
      failed |= Fault.hasExhaustedMemory();
      onAnotherThread(this::put, Bytes.toBytes("s"), value);
      if (excludes(value)) ++lost;
      Cluster.RegionCheck check = Checker.check(region, rows -> true);
      assertEquals(0, check.getMissingEntries() + check.getMissingInFilter(), "place " + n + ": " + check);
      assertTrue(n < 200, "a clearer has that many places?");
    }
    assertNull(pollFailed.get());
    return lost;
  }

  @Test
  void noValueIsLostWhereMemoryRunsOutInTheClearer() throws Exception {
    assertEquals(0, lostBehindTheClearer());
  }
}
