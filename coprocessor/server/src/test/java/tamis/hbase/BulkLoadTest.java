package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tamis.hbase.RegionForTest.encoded;

import java.io.IOException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.compactions.CompactionContext;
import org.apache.hadoop.hbase.regionserver.throttle.NoLimitThroughputController;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedCopy;
import tamis.feed.FeedOptions;
import tamis.feed.FilterFeed;
import tamis.feed.FilterRoom;
import tamis.feed.IndexEntry;
import tamis.feed.IndexFilter;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.server.TestServer;
import tamis.table.Codec;
import tamis.table.Hash;
import tamis.table.Schema;

/** Rules of files that are loaded: their rows are found, and coordinators are told before. */
class BulkLoadTest extends RuleTestCase {
  private static Path file(RegionForTest test, String... rows) throws IOException {
    FileSystem files = test.region.getRegionFileSystem().getFileSystem();
    Path path =
        new Path(new Path(test.region.getRegionFileSystem().getTableDir(), "load-" + System.nanoTime()), "f/file");
    try (HFile.Writer writer = HFile.getWriterFactory(test.conf, new CacheConfig(test.conf))
                                   .withPath(files, path)
                                   .withFileContext(new HFileContextBuilder().build())
                                   .create()) {
      for (String row : rows) {
        writer.append(new KeyValue(Bytes.toBytes(row), RegionForTest.F, A, 1000, Bytes.toBytes("loaded")));
      }
    }
    return path;
  }

  private static List<Pair<byte[], String>> pairs(Path file) {
    return Collections.singletonList(new Pair<>(RegionForTest.F, file.toString()));
  }

  private static void load(RegionForTest test, Path file) throws IOException {
    List<Pair<byte[], String>> files = pairs(file);
    test.region.getCoprocessorHost().preBulkLoadHFile(files);
    java.util.Map<byte[], List<Path>> loaded = null;
    try {
      loaded = ((HRegion) test.region).bulkLoadHFiles(files, true, null);
    } finally {
      if (!Fault.LOAD_WITHOUT_TELLING.isOn()) test.region.getCoprocessorHost().postBulkLoadHFile(files, loaded);
    }
  }

  private void awaitBuilt(IndexedRegion region) throws Exception {
    while (!region.complete().contains(1) || !region.filters.get(1).isPublished()) Thread.yield();
  }

  /** Whether a coordinator with a lease leaves out a row that was loaded. */
  private boolean leavesOutWhatWasLoaded(boolean listens) throws Exception {
    FeedOptions options = new FeedOptions();
    options.leaseNs = 60 * SECOND;
    FilterFeed feed = TestServer.start(options);
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("there", "before"));
      TestServer.open(region);
      FeedCopy copy = new FeedCopy(3);
      for (int i = 0; i < 3; ++i) {
        copy.apply(feed.poll(copy.request(0), () -> System.nanoTime() + 100 * SECOND), System.nanoTime());
      }
      assertTrue(copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded")));
      boolean[] stop = new boolean[1];
      Thread poller = new Thread(() -> {
        try {
          while (!stop[0])
            copy.apply(feed.poll(copy.request(SECOND / 50), () -> System.nanoTime() + 100 * SECOND), System.nanoTime());
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
        }
      });
      if (listens) poller.start();
      load(test, file(test, "x1", "x2", "x3"));
      boolean left = copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded"));
      if (listens) {
        awaitBuilt(region);
        Cluster.RegionCheck check = Checker.check(region, rows -> true);
        assertEquals(4, check.getEntries(), check.toString());
        assertEquals(0, check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter());
        left |= copy.excludes(region.id, 1, Hash.of(encoded("loaded"), 1), encoded("loaded"));
        stop[0] = true;
        poller.join();
      }
      return left;
    }
  }

  @Test
  void loadedRowsAreNotExcluded() throws Exception {
    assertFalse(leavesOutWhatWasLoaded(true));
    Fault.only(Fault.LOAD_WITHOUT_TELLING);
    assertTrue(leavesOutWhatWasLoaded(false));
  }

  /**
   * The filter is dropped while a put is between its counting and its end: how far both of them wait, after the drop.
   */
  private static long[] waitedForBesideADrop() throws Exception {
    long[] now = {1000 * SECOND};
    FilterFeed feed = new FilterFeed("s", 7, new FeedOptions(), () -> now[0], (column, bytes) -> null);
    Schema.Index index =
        Schema.parse(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build().toByteArray())
            .index(1);
    IndexFilter filter = new IndexFilter(feed, index, 1, 1);
    filter.beginGeneration(() -> true, FilterRoom.ENDLESS);
    filter.publish();
    poll(feed, now, 0);
    assertTrue(poll(feed, now, feed.last()).getLeaseNs() > 0); // it excludes what the filter lacks
    java.util.List<IndexEntry> written =
        Collections.singletonList(new IndexEntry(index, encoded("v"), new byte[][] {encoded("v")}, 1, true));
    filter.add(written);
    long dropped = filter.drop();
    assertEquals(feed.last(), dropped);
    // The put, and who loads beside the first.
    long[] waited = {filter.waitFor(written) - dropped, filter.drop() - dropped};
    filter.beginGeneration(() -> true, FilterRoom.ENDLESS);
    filter.countExisting(written);
    filter.publish();
    assertEquals(waited[0], filter.waitFor(written) - dropped); // one after the load
    poll(feed, now, feed.last());
    assertEquals(0, filter.waitFor(written)); // it knows
    return waited;
  }

  @Test
  void writeOrLoadBesideADropWaitsForIt() throws Exception {
    assertArrayEquals(new long[] {0, 0}, waitedForBesideADrop());
    Fault.only(Fault.DROP_NOT_WAITED_FOR);
    for (long behind : waitedForBesideADrop()) assertTrue(behind < 0);
  }

  private long missedAfterALoad() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("x1", "before"));
      TestServer.open(region);
      load(test, file(test, "x0", "x1", "x2"));
      awaitBuilt(region);
      return missed(test);
    }
  }

  @Test
  void noMarkerOutlivesALoad() throws Exception {
    assertEquals(0, missedAfterALoad());
    Fault.only(Fault.LOAD_WITHOUT_UNMARKING);
    assertEquals(2, missedAfterALoad());
  }

  /** Whether an entry that stands has a mark once a version was loaded under a tombstone of its row. */
  private boolean isMarkedBehindALoad() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", false, 1)).build();
    try (RegionForTest test = open(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      byte[] row = Bytes.toBytes("x");
      test.region.put(new Put(row).addColumn(RegionForTest.F, Bytes.toBytes("s"), 1, row));
      test.region.delete(new Delete(row).addColumns(RegionForTest.F, A, 2000));
      TestServer.open(region);
      load(test, file(test, "x"));
      awaitBuilt(region);
      byte[] nullEntry = region.keys.entry(1, new byte[] {1}, row);
      for (java.util.List<Cell> cells : test.scan(IndexedTable.FAMILY)) {
        if (Arrays.equals(CellUtil.cloneRow(cells.get(0)), nullEntry))
          return !IndexedTable.isCertain(IndexedTable.valueOf(cells.get(0)));
      }
      throw new AssertionError("the row has no entry for NULL");
    }
  }

  @Test
  void entryOfARowWithALoadedHiddenVersionIsMarked() throws Exception {
    assertTrue(isMarkedBehindALoad());
    Fault.only(Fault.REBUILT_ENTRIES_LEFT_UNMARKED);
    assertFalse(isMarkedBehindALoad());
  }

  /** The included column in the entry of a row that was loaded with another value of it, and nothing else. */
  private String includedBehindALoad() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Schema schema =
        RegionForTest.schema().addIndexes(RegionForTest.including(RegionForTest.index(1, "by_s", true, 4), 1)).build();
    try (RegionForTest test = open(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      byte[] row = Bytes.toBytes("x");
      test.region.put(new Put(row)
                          .addColumn(RegionForTest.F, A, 1, Bytes.toBytes("before"))
                          .addColumn(RegionForTest.F, Bytes.toBytes("s"), 1, row));
      TestServer.open(region);
      load(test, file(test, "x"));
      awaitBuilt(region);
      for (java.util.List<Cell> cells : test.scan(IndexedTable.FAMILY)) {
        if (region.keys.kindOf(region.table.schema, CellUtil.cloneRow(cells.get(0))) != EntryKeys.Kind.ENTRY) continue;
        tamis.table.Value[] values = new tamis.table.Value[region.table.schema.columns.length];
        Codec.decodeRow(region.table.schema, IndexedTable.valueOf(cells.get(0)), values);
        return Bytes.toString(values[1].bytes());
      }
      throw new AssertionError("the row has no entry");
    }
  }

  @Test
  void includedColumnsFollowALoad() throws Exception {
    assertEquals("loaded", includedBehindALoad());
    Fault.only(Fault.REBUILT_COLUMNS_LEFT);
    assertEquals("before", includedBehindALoad());
  }

  /** A major compaction took the tombstone of a row before a file with the row came, and ends after the building. */
  private long missedBehindACompaction() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("x1", "before"));
      test.region.delete(new Delete(Bytes.toBytes("x1")));
      test.region.flush(true);
      TestServer.open(region);
      HStore store = test.region.getStore(RegionForTest.F);
      store.triggerMajorCompaction();
      CompactionContext compaction = store.requestCompaction().get();
      load(test, file(test, "x1"));
      awaitBuilt(region);
      assertTrue(test.region.get(new Get(Bytes.toBytes("x1"))).isEmpty());
      assertTrue(test.region.compact(compaction, store, NoLimitThroughputController.INSTANCE));
      assertFalse(test.region.get(new Get(Bytes.toBytes("x1"))).isEmpty());
      return missed(test);
    }
  }

  @Test
  void versionLoadedBehindATombstoneIsIndexed() throws Exception {
    assertEquals(0, missedBehindACompaction());
    Fault.only(Fault.HIDDEN_ROWS_NOT_VISITED);
    assertEquals(1, missedBehindACompaction());
  }

  @Test
  void filesAreNotLoadedIntoTheIndexFamily() throws Exception {
    try (RegionForTest test = open(descriptor())) {
      assertThrows(DoNotRetryIOException.class,
          ()
              -> test.region.getCoprocessorHost().preBulkLoadHFile(
                  Collections.singletonList(new Pair<>(IndexedTable.FAMILY, "/nowhere"))));
    }
  }

  /** The number of rows looked at after a load into a region of 300 rows whose index was complete. */
  private long looksAtAfterALoad(boolean known, String... loaded) throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      for (int i = 100; i < 400; ++i) test.region.put(put("r" + i, "v" + i % 7));
      TestServer.open(region);
      awaitBuilt(region);
      region.rowsVisited = 0;
      if (known) {
        load(test, file(test, loaded));
      } else {
        test.region.getCoprocessorHost().preBulkLoadHFile(pairs(file(test, loaded)));
        test.region.getCoprocessorHost().postBulkLoadHFile(pairs(file(test, loaded)), null);
      }
      awaitBuilt(region);
      assertEquals(0, missed(test));
      Cluster.RegionCheck check = Checker.check(region, rows -> true);
      assertEquals(0, check.getMissingEntries() + check.getForeignEntries() + check.getMissingInFilter());
      return region.rowsVisited;
    }
  }

  @Test
  void onlyTheRowsBetweenTheFirstAndTheLastOfAFileAreLookedAt() throws Exception {
    // Behind all rows: each is visited, none has an entry before.
    assertEquals(3, looksAtAfterALoad(true, "s1", "s2", "s3"));
    // Rows that are there, and those between: by their entries, and by their rows.
    assertEquals(2 * 5, looksAtAfterALoad(true, "r200", "r202", "r204"));
    assertEquals(300 + 300, looksAtAfterALoad(false, "r200"));
  }

  /** Rows that are missed after two loads at a time. */
  private long missedAfterTwoLoads() throws Exception {
    TestServer.start(new FeedOptions());
    try (RegionForTest test = open(descriptor())) {
      IndexedRegion region = test.indexed();
      test.region.put(put("m", "before"));
      TestServer.open(region);
      awaitBuilt(region);
      List<Pair<byte[], String>> first = pairs(file(test, "a", "b"));
      List<Pair<byte[], String>> second = pairs(file(test, "x", "y"));
      test.region.getCoprocessorHost().preBulkLoadHFile(first);
      test.region.getCoprocessorHost().preBulkLoadHFile(second);
      java.util.Map<byte[], List<Path>> a = ((HRegion) test.region).bulkLoadHFiles(first, true, null);
      test.region.getCoprocessorHost().postBulkLoadHFile(first, a);
      java.util.Map<byte[], List<Path>> b = ((HRegion) test.region).bulkLoadHFiles(second, true, null);
      test.region.getCoprocessorHost().postBulkLoadHFile(second, b);
      awaitBuilt(region);
      return missed(test);
    }
  }

  @Test
  void theRowsOfAllLoadsAreLookedAt() throws Exception {
    assertEquals(0, missedAfterTwoLoads());
    Fault.only(Fault.LOADS_BEFORE_FORGOTTEN);
    assertEquals(2, missedAfterTwoLoads());
  }
}
