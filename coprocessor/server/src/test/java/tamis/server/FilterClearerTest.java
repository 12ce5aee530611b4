package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Coprocessor;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.coprocessor.ObserverContext;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessor;
import org.apache.hadoop.hbase.coprocessor.RegionCoprocessorEnvironment;
import org.apache.hadoop.hbase.coprocessor.RegionObserver;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.MiniBatchOperationInProgress;
import org.apache.hadoop.hbase.regionserver.ScanOptions;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.apache.hadoop.hbase.wal.WALKey;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.IndexFilter;
import tamis.hbase.RegionForTest;
import tamis.index.BatchContext;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.table.CellMap;
import tamis.table.CellMapForTest;
import tamis.table.Schema;

/** Cells of a filter and its range of values follow the entries of a region, beside writes, and exclude no row. */
class FilterClearerTest {
  private static final byte[] A = Bytes.toBytes("a");
  private static final int CELLS = 64;
  private static long clock = 1000; // time stamps: a put at that of a tombstone would not show

  private interface Hook {
    void run() throws Exception;
  }

  private static volatile Hook beforeTheLog;
  private static volatile Hook beforeItIsSeen; // a write is in memory and in the log
  private static volatile Hook behindTheSnapshot; // a scanner is opened, and has its read point

  /** Another coprocessor, which does what the test says; its hooks come after ours. */
  public static final class Another implements RegionCoprocessor, RegionObserver {
    @Override
    public Optional<RegionObserver> getRegionObserver() {
      return Optional.of(this);
    }

    @Override
    public void preWALAppend(ObserverContext<RegionCoprocessorEnvironment> c, WALKey key, WALEdit edit)
        throws IOException {
      run(beforeTheLog);
    }

    @Override
    public void postBatchMutate(ObserverContext<RegionCoprocessorEnvironment> c,
        MiniBatchOperationInProgress<Mutation> batch) throws IOException {
      run(beforeItIsSeen);
    }

    @Override
    public void preStoreScannerOpen(ObserverContext<RegionCoprocessorEnvironment> c, Store store, ScanOptions options)
        throws IOException {
      Hook hook = behindTheSnapshot;
      behindTheSnapshot = null;
      run(hook);
    }

    private static void run(Hook hook) throws IOException {
      try {
        if (hook != null) hook.run();
      } catch (IOException e) {
        throw e;
      } catch (Exception e) {
        throw new IOException(e);
      }
    }
  }

  @AfterEach
  void reset() {
    beforeTheLog = null;
    beforeItIsSeen = null;
    behindTheSnapshot = null;
    Fault.only();
    TestServer.stop();
  }

  private static RegionForTest open(String start, String end) throws Exception {
    return open(start, end, HConstants.FOREVER);
  }

  private static RegionForTest open(String start, String end, int secondsToLive) throws Exception {
    TestServer.start(new FeedOptions());
    Table.Index index =
        RegionForTest.withCells(RegionForTest.index(1, "by_a", true, 1), CellMapForTest.ofTwoDigits(CELLS));
    TableDescriptorBuilder descriptor =
        TableDescriptorBuilder.newBuilder(RegionForTest.descriptor(RegionForTest.schema().addIndexes(index).build(), 1))
            .setCoprocessor(CoprocessorDescriptorBuilder.newBuilder(Another.class.getName())
                                .setPriority(Coprocessor.PRIORITY_LOWEST)
                                .build());
    ColumnFamilyDescriptor family = descriptor.build().getColumnFamily(RegionForTest.F);
    descriptor.modifyColumnFamily(
        ColumnFamilyDescriptorBuilder.newBuilder(family).setTimeToLive(secondsToLive).build());
    RegionForTest test = new RegionForTest(descriptor.build(), Bytes.toBytes(start), Bytes.toBytes(end));
    TestServer.open(test.indexed());
    return test;
  }

  private static RegionForTest open() throws Exception {
    return open("", "");
  }

  private static void put(RegionForTest test, String row, String value) throws IOException {
    test.region.put(new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, ++clock, Bytes.toBytes(value)));
  }

  private static void delete(RegionForTest test, String row) throws IOException {
    test.region.delete(new Delete(Bytes.toBytes(row), ++clock));
  }

  private static IndexFilter filter(RegionForTest test) {
    return test.indexed().filters.get(1);
  }

  /** Entries that stand and that the filter says no to, and rows without an entry. */
  private static long missed(RegionForTest test) throws Exception {
    Cluster.RegionCheck check = Checker.check(test.indexed(), rows -> true);
    return check.getMissingInFilter() + check.getMissingEntries();
  }

  /** Smallest and largest value; null: there is none. */
  private static String range(RegionForTest test) throws Exception {
    Cluster.Projection bits = filter(test).project(Cluster.ColumnId.getDefaultInstance(), 8);
    if (!bits.getHasRange()) return null;
    Schema.Index index = test.indexed().table.schema.index(1);
    assertEquals(1, index.id);
    return Bytes.toString(bits.getMin().toByteArray(), 1, 3) + " to "
        + Bytes.toString(bits.getMax().toByteArray(), 1, 3);
  }

  private static TreeSet<String> valuesOfEntries(RegionForTest test) throws Exception {
    IndexedRegion region = test.indexed();
    Schema schema = region.table.schema;
    TreeSet<String> values = new TreeSet<>();
    for (byte[] key : test.entries()) {
      if (region.keys.kindOf(schema, key) != EntryKeys.Kind.ENTRY) continue;
      values.add(Bytes.toString(region.keys.read(schema, schema.index(1), key).first(), 1, 3));
    }
    return values;
  }

  /** Random order; a failure names its seed. */
  @Test
  void cellsAndRangesFollowTheEntries() throws Exception {
    for (long seed = 1; seed <= 8; ++seed) {
      Random random = new Random(seed);
      CellMap map = CellMapForTest.ofTwoDigits(CELLS);
      try (RegionForTest test = open()) {
        TreeMap<String, String> rows = new TreeMap<>();
        for (int step = 0; step < 200; ++step) { // fewer than have the filter counted again in the background
          String row = "r" + random.nextInt(40);
          if (random.nextInt(3) > 0) {
            rows.put(row, "v" + (10 + random.nextInt(50)));
            put(test, row, rows.get(row));
          } else if (rows.remove(row) != null) {
            delete(test, row);
          }
          if (step % 90 == 89) test.region.flush(true);
          if (step % 20 != 19) continue;
          if (random.nextInt(3) == 0) test.region.compact(true);
          TestServer.clear(test.indexed());
          assertEquals(0, missed(test), "seed " + seed);
          TreeSet<String> values = valuesOfEntries(test);
          Set<Integer> cells = new HashSet<>();
          for (String value : values) cells.add(map.cellOf(encoded(value)));
          assertEquals(cells.size(), filter(test).occupiedCells(), "seed " + seed + " step " + step);
          assertEquals(values.first() + " to " + values.last(), range(test), "seed " + seed);
        }
        for (String row : rows.keySet()) delete(test, row);
        test.region.flush(true);
        test.region.compact(true); // so that their tombstones are not in the way
        put(test, "last", "v30");
        delete(test, "last");
        TestServer.clear(test.indexed());
        assertEquals(0, filter(test).occupiedCells());
        assertNull(range(test));
        assertFalse(filter(test).wantsClearing());
      }
    }
  }

  /** The row with the one entry of a cell is deleted, and another comes, which no scanner sees yet. */
  private static long missedBesideAWriteThatNobodySees() throws Exception {
    try (RegionForTest test = open()) {
      for (String value : new String[] {"v10", "v20", "v30"}) put(test, "r" + value, value);
      delete(test, "rv20");
      beforeItIsSeen = () -> {
        beforeItIsSeen = null;
        List<Throwable> failed = Collections.synchronizedList(new ArrayList<>());
        Thread clearer = new Thread(() -> {
          try {
            TestServer.clear(test.indexed());
          } catch (Throwable e) {
            failed.add(e);
          }
        });
        clearer.start();
        clearer.join();
        assertEquals(Collections.emptyList(), failed);
      };
      put(test, "other", "v20");
      assertNull(beforeItIsSeen);
      return missed(test);
    }
  }

  @Test
  void aWriteIsRegisteredUntilEveryScannerSeesIt() throws Exception {
    assertEquals(0, missedBesideAWriteThatNobodySees());
    for (Fault rule : new Fault[] {Fault.LEFT_BEFORE_COMMIT, Fault.CLEARED_AMID_WRITES}) {
      Fault.only(rule);
      assertEquals(1, missedBesideAWriteThatNobodySees(), rule.name());
    }
  }

  /** Entries of rows that lie elsewhere since a split, or that are deleted. */
  private static void fill(RegionForTest test, int entries, boolean garbage) throws IOException {
    IndexedRegion region = test.indexed();
    for (int i = 0; i < entries; ++i) {
      String row = String.format("%s%03d", garbage ? "z" : "b", i);
      if (!garbage) {
        put(test, row, "v10");
        delete(test, row);
        continue;
      }
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      try {
        test.region.put(new Put(region.keys.entry(1, encoded("v10"), Bytes.toBytes(row)))
                            .addColumn(IndexedTable.FAMILY, IndexedTable.QUALIFIER, IndexedTable.CERTAIN));
      } finally {
        BatchContext.next().writer = BatchContext.Writer.CLIENT;
      }
    }
  }

  /** The cell and the range of a value all of whose entries are gone, and of one that stands after them. */
  private static String afterASearchAmong(int entries, boolean garbage, boolean another) throws Exception {
    try (RegionForTest test = open("", "m")) {
      fill(test, entries, garbage);
      if (another)
        put(test, garbage ? "l" : "bz", "v10"); // after deleted entries; before garbage, which lies elsewhere
      put(test, "k", "v10");
      put(test, "k", "v20");
      TestServer.clear(test.indexed());
      return filter(test).occupiedCells() + " cells, " + range(test) + ", " + missed(test) + " missed";
    }
  }

  @Test
  void aCellThatIsNotDecidedAfterSomeEntriesIsOccupied() throws Exception {
    int most = FilterClearer.MOST_ENTRIES;
    for (boolean garbage : new boolean[] {true, false}) {
      Fault.only();
      assertEquals("1 cells, v20 to v20, 0 missed", afterASearchAmong(most - 2, garbage, false));
      assertEquals("2 cells, v10 to v20, 0 missed", afterASearchAmong(most + 2, garbage, false));
      Fault.only(Fault.UNDECIDED_IS_EMPTY);
      assertEquals("1 cells, v10 to v20, 0 missed", afterASearchAmong(most + 2, garbage, false));
    }
    Fault.only();
    assertEquals("2 cells, v10 to v20, 0 missed", afterASearchAmong(most + 2, false, true));
    Fault.only(Fault.UNDECIDED_IS_EMPTY);
    assertEquals("1 cells, v10 to v20, 1 missed", afterASearchAmong(most + 2, false, true));
  }

  /** A range that could not be decided is looked at again once HBase has dropped what was in the way. */
  @Test
  void aRangeFollowsOnceTombstonesAreGone() throws Exception {
    try (RegionForTest test = open()) {
      fill(test, 100, false);
      put(test, "k", "v20");
      TestServer.clear(test.indexed());
      assertEquals("v10 to v20", range(test));
      assertTrue(filter(test).wantsClearing());
      test.region.flush(true);
      test.region.compact(true);
      for (HStore store : test.region.getStores()) store.closeAndArchiveCompactedFiles();
      TestServer.clear(test.indexed());
      assertEquals("v20 to v20", range(test));
      assertEquals(0, missed(test));
    }
  }

  /** The log fails after the counting: HBase does not say whether the write stands. */
  @Test
  void aWriteOfUnknownOutcomeKeepsItsCell() throws Exception {
    try (RegionForTest test = open()) {
      put(test, "r", "v10");
      put(test, "s", "v20");
      beforeTheLog = () -> {
        throw new DoNotRetryIOException("the log cannot be written");
      };
      assertThrows(DoNotRetryIOException.class, () -> put(test, "other", "v10"));
      beforeTheLog = null;
      delete(test, "r");
      TestServer.clear(test.indexed());
      assertEquals(2, filter(test).occupiedCells());
      TestServer.count(test.indexed()); // which reads what stands
      assertEquals(1, filter(test).occupiedCells());
      put(test, "r", "v10");
      delete(test, "r");
      TestServer.clear(test.indexed());
      assertEquals(1, filter(test).occupiedCells());
    }
  }

  /** The next write runs the hook, and no later one. */
  private static void once(Hook hook) {
    beforeItIsSeen = () -> {
      beforeItIsSeen = null;
      hook.run();
    };
  }

  /**
   * A write of unknown outcome stands. No scanner sees it, since an earlier write of a column without an index is not
   * complete yet, and the entries are counted again.
   */
  private static long missedByARecountBesideAnEarlierWrite() throws Exception {
    try (RegionForTest test = open()) {
      put(test, "r", "v10");
      WatchedThreads threads = new WatchedThreads();
      CountDownLatch began = new CountDownLatch(1);
      CountDownLatch mayEnd = new CountDownLatch(1);
      once(() -> {
        began.countDown();
        mayEnd.await();
      });
      Put plain = new Put(Bytes.toBytes("p")).addColumn(RegionForTest.F, Bytes.toBytes("none"), Bytes.toBytes("x"));
      threads.start(() -> test.region.put(plain));
      began.await();
      once(() -> { throw new DoNotRetryIOException("another coprocessor throws"); });
      assertThrows(DoNotRetryIOException.class, () -> put(test, "s", "v20"));
      Thread recount = threads.start(() -> TestServer.count(test.indexed()));
      if (Fault.RECOUNT_BEFORE_WRITES_SHOW.isOn()) recount.join();
      while (recount.isAlive() && recount.getState() != Thread.State.TIMED_WAITING) Thread.yield();
      mayEnd.countDown();
      threads.join();
      put(test, "s", "v20"); // it changes no entry, so nothing is counted
      return missed(test);
    }
  }

  @Test
  void aRecountSeesTheWritesOfUnknownOutcomeThatStand() throws Exception {
    assertEquals(0, missedByARecountBesideAnEarlierWrite());
    Fault.only(Fault.RECOUNT_BEFORE_WRITES_SHOW);
    assertEquals(1, missedByARecountBesideAnEarlierWrite());
  }

  /** A put of the same value makes an entry younger, which may look expired until then. */
  @Test
  void nothingIsClearedWhereCellsExpire() throws Exception {
    try (RegionForTest test = open("", "", 3600)) {
      clock = System.currentTimeMillis();
      put(test, "r", "v10");
      put(test, "s", "v20");
      delete(test, "r");
      TestServer.clear(test.indexed());
      assertEquals(2, filter(test).occupiedCells());
      assertEquals("v10 to v20", range(test));
    }
  }

  /** A rebuild is there for entries that are missing. */
  private static int cellsBesideARebuild() throws Exception {
    try (RegionForTest test = open()) {
      put(test, "r", "v10");
      put(test, "s", "v20");
      int[] cells = new int[1];
      assertTrue(TestServer.state().indexes.rebuild(test.indexed(), 1, rows -> {
        if (cells[0] > 0) return true;
        try {
          delete(test, "r");
          TestServer.clear(test.indexed());
        } catch (IOException e) {
          throw new java.io.UncheckedIOException(e);
        }
        cells[0] = filter(test).occupiedCells();
        return true;
      }));
      assertEquals(1, filter(test).occupiedCells()); // counted again
      delete(test, "s");
      TestServer.clear(test.indexed());
      assertEquals(0, filter(test).occupiedCells());
      return cells[0];
    }
  }

  @Test
  void nothingIsClearedBesideARebuild() throws Exception {
    assertEquals(2, cellsBesideARebuild());
    Fault.only(Fault.CLEARED_WHILE_INCOMPLETE);
    assertEquals(1, cellsBesideARebuild());
  }

  /** Files are to be loaded, which come without their entries. */
  private static int cellsBeforeALoad() throws Exception {
    try (RegionForTest test = open()) {
      put(test, "r", "v10");
      put(test, "s", "v20");
      test.indexed().setComplete(Collections.emptySet());
      delete(test, "r");
      TestServer.clear(test.indexed());
      return filter(test).occupiedCells();
    }
  }

  @Test
  void nothingIsClearedWhereAnIndexIsNotComplete() throws Exception {
    assertEquals(2, cellsBeforeALoad());
    Fault.only(Fault.CLEARED_WHILE_INCOMPLETE);
    assertEquals(1, cellsBeforeALoad());
  }

  /** A coordinator that knows the filter excludes the region from what is cleared, and from nothing else. */
  @Test
  void coordinatorsFollow() throws Exception {
    try (RegionForTest test = open()) {
      for (String value : new String[] {"v10", "v20", "v30"}) put(test, "r" + value, value);
      FeedCopy copy = new FeedCopy(3);
      IndexedRegion region = test.indexed();
      follow(copy);
      assertFalse(copy.excludesRange(region.id, 1, CellMapForTest.ofTwoDigits(CELLS), encoded("v20"), encoded("v21")));
      assertTrue(copy.excludesRange(region.id, 1, CellMapForTest.ofTwoDigits(CELLS), encoded("v22"), encoded("v25")));
      delete(test, "rv20");
      delete(test, "rv30");
      TestServer.clear(region);
      follow(copy);
      assertTrue(copy.excludesRange(region.id, 1, CellMapForTest.ofTwoDigits(CELLS), encoded("v20"), encoded("v21")));
      assertTrue(copy.excludesRange(region.id, 1, CellMapForTest.ofTwoDigits(CELLS), encoded("v20"), encoded("v90")));
      assertFalse(copy.excludesRange(region.id, 1, CellMapForTest.ofTwoDigits(CELLS), encoded("v00"), encoded("v90")));
    }
  }

  private static void follow(FeedCopy copy) throws InterruptedException {
    for (int i = 0; i < 3; ++i) {
      copy.apply(TestServer.state().feed.poll(copy.request(0), () -> System.nanoTime() + TimeUnit.HOURS.toNanos(1)),
          System.nanoTime());
    }
  }

  /** Work that waits is done once, a while later, and again while there is more. */
  @Test
  void removalsHaveTheIndexLookedAtOnceAndAgainWhileThereIsMore() throws Exception {
    try (RegionForTest test = open()) {
      ArrayDeque<Runnable> later = new ArrayDeque<>();
      List<Long> delays = new ArrayList<>();
      FilterClearer clearer = new FilterClearer((step, after) -> {
        delays.add(after);
        later.add(step);
      }, Runnable::run, 7);
      for (int i = 10; i < 70; ++i) put(test, "r" + i, "v" + i);
      put(test, "r70", "v1");
      Schema.Index index = test.indexed().table.schema.index(1);
      for (int i = 10; i < 65; ++i) delete(test, "r" + i);
      for (int i = 0; i < 3; ++i) clearer.enqueue(test.indexed(), index);
      assertEquals(1, later.size());
      later.poll().run();
      assertTrue(later.isEmpty());
      assertEquals(6, filter(test).occupiedCells());
      delete(test, "r65");
      delete(test, "r66");
      beforeItIsSeen = () -> {
        beforeItIsSeen = null;
        clearer.enqueue(test.indexed(), index);
        later.poll().run();
      };
      put(test, "r1", "v66"); // under way while v65 is cleared
      assertEquals(1, later.size());
      assertEquals(5, filter(test).occupiedCells());
      delete(test, "r1");
      later.poll().run();
      assertEquals(4, filter(test).occupiedCells());
      assertEquals(Collections.nCopies(3, 7L), delays);
      assertEquals(0, missed(test));
    }
  }

  /** A row comes to the cell of another one that goes, after the first snapshot that the clearer takes. */
  private static long missedBehindTheSnapshot() throws Exception {
    try (RegionForTest test = open()) {
      for (String value : new String[] {"v10", "v20", "v30"}) put(test, "r" + value, value);
      delete(test, "rv20");
      behindTheSnapshot = () -> put(test, "other", "v20");
      TestServer.clear(test.indexed());
      assertNull(behindTheSnapshot);
      return missed(test);
    }
  }

  @Test
  void theSnapshotIsTakenBehindTheLookAtTheWrites() throws Exception {
    assertEquals(0, missedBehindTheSnapshot());
    Fault.only(Fault.CLEARED_BY_OLD_SNAPSHOT);
    assertEquals(1, missedBehindTheSnapshot());
  }

  /** A second pass would cancel the round of the first, and the other way round. */
  @Test
  void onePassOverAFilterRunsAtATime() throws Exception {
    try (RegionForTest test = open()) {
      ArrayDeque<Runnable> later = new ArrayDeque<>();
      FilterClearer clearer = new FilterClearer((step, after) -> later.add(step), Runnable::run, 7);
      for (int i = 10; i < 14; ++i) put(test, "r" + i, "v" + i);
      Schema.Index index = test.indexed().table.schema.index(1);
      delete(test, "r10");
      clearer.enqueue(test.indexed(), index);
      behindTheSnapshot = () -> {
        delete(test, "r11");
        clearer.enqueue(test.indexed(), index);
        assertTrue(later.isEmpty());
      };
      later.poll().run();
      assertNull(behindTheSnapshot);
      assertEquals(3, filter(test).occupiedCells());
      assertEquals(1, later.size());
      later.poll().run();
      assertEquals(2, filter(test).occupiedCells());
      assertTrue(later.isEmpty());
    }
  }

  /** Memory or threads may run out, once, wherever the work is handed over. */
  @Test
  void workThatCannotBeHandedOverIsDoneAfterALaterWrite() throws Exception {
    for (Throwable thrown : new Throwable[] {new RejectedExecutionException("full"), new OutOfMemoryError("threads")}) {
      for (boolean byTheTimer : new boolean[] {true, false}) {
        try (RegionForTest test = open()) {
          ArrayDeque<Runnable> later = new ArrayDeque<>();
          ArrayDeque<Throwable> toThrow = new ArrayDeque<>(Collections.singleton(thrown));
          Executor failing = step -> {
            if (!toThrow.isEmpty()) sneak(toThrow.poll());
            step.run();
          };
          FilterClearer clearer = new FilterClearer((step, after) -> {
            if (byTheTimer) failing.execute(() -> {});
            later.add(step);
          }, failing, 7);
          put(test, "r", "v10");
          put(test, "s", "v20");
          delete(test, "r");
          Schema.Index index = test.indexed().table.schema.index(1);
          assertThrows(thrown.getClass(), () -> {
            clearer.enqueue(test.indexed(), index);
            later.poll().run();
          });
          clearer.enqueue(test.indexed(), index);
          later.poll().run();
          assertEquals(1, filter(test).occupiedCells());
        }
      }
    }
  }

  private static void sneak(Throwable thrown) {
    if (thrown instanceof Error) throw(Error) thrown;
    throw(RuntimeException) thrown;
  }
}
