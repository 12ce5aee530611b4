package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.StatusException;
import tamis.feed.FeedOptions;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.server.RegionIndexes;
import tamis.server.TestServer;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Key;
import tamis.table.Value;

/**
 * Rows whose keys and values are long: each entry is within what HBase takes for a row, but one's value with another's
 * key is not.
 */
class LongKeysTest {
  private static final int A = 1;
  private static final int B = 3;
  private static final int LONG_KEY = 32_000; // it has an entry with a short value
  private static final int LONG_VALUE = 2_000; // and with none that is as long as entries hold
  private static final byte[] NAME_A = Bytes.toBytes("a");
  private static final byte[] NAME_B = Bytes.toBytes("b");

  private RegionForTest test;
  private IndexedRegion region;

  private static Table.Schema schema() {
    return RegionForTest.schema()
        .addIndexes(RegionForTest.index(1, "by_a", true, A))
        .addIndexes(RegionForTest.index(3, "by_b", true, B))
        .build();
  }

  private static String padded(String text, int size) {
    char[] chars = new char[size];
    Arrays.fill(chars, '.');
    text.getChars(0, text.length(), chars, 0);
    return new String(chars);
  }

  private void open(byte[] start) throws Exception {
    test = new RegionForTest(RegionForTest.descriptor(schema(), 1), start, new byte[0]);
    region = test.indexed();
  }

  @BeforeEach
  void start() {
    TestServer.start(new FeedOptions());
  }

  @AfterEach
  void close() throws Exception {
    TestServer.close(region);
    test.close();
    TestServer.stop();
  }

  private void put(String key, String a, String b) throws Exception {
    Put put = new Put(Bytes.toBytes(key));
    if (a != null) put.addColumn(RegionForTest.F, NAME_A, Bytes.toBytes(a));
    if (b != null) put.addColumn(RegionForTest.G, NAME_B, Bytes.toBytes(b));
    test.region.put(put);
  }

  private static Table.Predicate in(int column, List<String> values) {
    Table.Predicate.Builder any = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.OR);
    for (String value : values) {
      any.addChildren(SearchTest.compare(column, Table.Predicate.Op.EQ, Value.text(value)));
    }
    return any.build();
  }

  private static Cluster.IndexStream stream(int index, List<String> values) {
    return SearchTest.stream(
        index, values.stream().map(value -> SearchTest.equal(Value.text(value))).toArray(Cluster.IndexRange[] ::new));
  }

  /** The first letters of the keys, and what was read of the indexes. */
  private static final class Found {
    final TreeSet<String> keys = new TreeSet<>();
    long joined;
    long ofJoined; // entries read of it
    final Map<Integer, Long> read = new HashMap<>(); // most entries of an index in one page
  }

  private Found search(Cluster.Branch branch, Cluster.SearchRange.Builder range, long maxRows) throws StatusException {
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .setTableId(region.table.tableId)
                                        .setSchemaVersion(1)
                                        .addBranches(branch)
                                        .build();
    Found found = new Found();
    ByteString resume = ByteString.EMPTY;
    for (int page = 0; page == 0 || !resume.isEmpty(); ++page) {
      assertTrue(page < 1000, "a search does not come to its end");
      Cluster.RangeResult result = new Searcher(request, region.table, "here")
                                       .search(region, range.setRegionId(region.id).setResume(resume).build(), maxRows,
                                           System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
      assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
      for (Cluster.FoundRow row : result.getRowsList()) {
        assertTrue(found.keys.add(row.getKey().toStringUtf8().substring(0, 4)), "a row came twice");
      }
      for (Cluster.IndexUse use : result.getCounters().getUsesList()) {
        found.joined += use.getJoined();
        if (use.getJoined() > 0) found.ofJoined += use.getEntriesRead();
        found.read.merge(use.getIndexId(), use.getEntriesRead(), Math::max);
      }
      resume = result.getResume();
    }
    return found;
  }

  /**
   * The driving index has the long keys, the joined index skips along the long values, and the counters know the size
   * of both. Between two of the keys lie several entries of one value.
   */
  @Test
  void aStreamIsSoughtByAKeyThatItsValueLeavesNoRoomFor() throws Exception {
    open(new byte[0]);
    List<String> as = new ArrayList<>();
    List<String> bs = new ArrayList<>();
    for (int i = 0; i < 10; ++i) {
      as.add("x" + i);
      bs.add(padded("y" + i, LONG_VALUE));
    }
    for (int i = 0; i < 100; ++i) put(padded(String.format("k%04d", 50 * i), LONG_KEY), as.get(i % 10), null);
    for (int i = 0; i < 130; ++i) put(String.format("k%04d", 2001 + 50 * (i / 13) + i % 13), null, bs.get(i / 13));
    put("z000", as.get(3), bs.get(4));
    TestServer.open(region);
    Cluster.Branch branch = Cluster.Branch.newBuilder()
                                .addStreams(stream(1, as))
                                .addStreams(stream(3, bs))
                                .setPredicate(Table.Predicate.newBuilder()
                                                  .setKind(Table.Predicate.Kind.AND)
                                                  .addChildren(in(A, as))
                                                  .addChildren(in(B, bs))
                                                  .build()
                                                  .toByteString())
                                .build();
    Found found = search(branch, Cluster.SearchRange.newBuilder(), 100);
    assertEquals(1, found.joined);
    assertTrue(found.ofJoined < 60, found.ofJoined + " entries were read");
    assertEquals(new TreeSet<>(Arrays.asList("z000")), found.keys);
  }

  /** Entries begin with the region's start key, and streams are sought from it, too. */
  @Test
  void aRegionBeginsAtALongKey() throws Exception {
    byte[] start = Bytes.toBytes(padded("k", 17_000));
    open(start);
    for (String key : new String[] {"l000", "l001", "m000"}) put(key, "x", "y");
    TestServer.open(region);
    List<String> x = Arrays.asList("x");
    Cluster.Branch branch =
        Cluster.Branch.newBuilder().addStreams(stream(1, x)).setPredicate(in(A, x).toByteString()).build();
    assertEquals(new TreeSet<>(Arrays.asList("l000", "l001", "m000")),
        search(branch, Cluster.SearchRange.newBuilder(), 100).keys);
  }

  /** Rows after the longest key are read as well when an index is made of existing rows. */
  @Test
  void anIndexIsMadeBehindTheLongestKey() throws Exception {
    test = new RegionForTest(RegionForTest.descriptor(schema().toBuilder().clearIndexes().build(), 1));
    byte[] s = Bytes.toBytes("s");
    for (int i = 0; i < 200; ++i) {
      byte[] key = Bytes.toBytes(padded(String.format("k%03d", i), HConstants.MAX_ROW_LENGTH));
      test.region.put(new Put(key).addColumn(RegionForTest.F, s, s));
    }
    put("z000", "x", null);
    test.reopen(RegionForTest.descriptor(schema(), 1));
    region = test.indexed();
    assertEquals(2, region.complete().size());
    assertEquals(3, test.entries().size()); // two are markers
  }

  /** A row from before there were indexes that leaves no room for its entry: it can be put right, or deleted. */
  @Test
  void aRowWithoutRoomForItsEntryCanGo() throws Exception {
    test = new RegionForTest(RegionForTest.descriptor(schema().toBuilder().clearIndexes().build(), 1));
    String[] keys = {padded("k000", LONG_KEY), padded("k001", LONG_KEY), "k002"};
    for (String key : keys) put(key, padded("x", LONG_VALUE), null);
    assertThrows(DoNotRetryIOException.class, () -> test.reopen(RegionForTest.descriptor(schema(), 1)));
    region = test.indexed();
    assertTrue(region.complete().isEmpty());
    put(keys[0], "x", null);
    test.region.delete(new Delete(Bytes.toBytes(keys[1])));
    RegionIndexes.complete(region);
    assertEquals(2, region.complete().size());
    assertEquals(2 + 2, test.entries().size()); // two are markers
  }

  /** Values, keys and ends of ranges that no entry and no row can have. */
  @Test
  void requestedKeyMayBeLongerThanARow() throws Exception {
    open(new byte[0]);
    String longest = padded("k001", HConstants.MAX_ROW_LENGTH);
    for (String key : new String[] {"k000", longest, "k002"}) {
      test.region.put(new Put(Bytes.toBytes(key)).addColumn(RegionForTest.F, Bytes.toBytes("s"), Bytes.toBytes("s")));
    }
    put("k003", "x", "y");
    TestServer.open(region);
    TreeSet<String> none = new TreeSet<>();
    List<String> beyond = Arrays.asList(padded("x", 40_000));
    Cluster.Branch equal =
        Cluster.Branch.newBuilder().addStreams(stream(1, beyond)).setPredicate(in(A, beyond).toByteString()).build();
    assertEquals(none, search(equal, Cluster.SearchRange.newBuilder(), 100).keys);
    Value least = Value.text(beyond.get(0));
    Table.Predicate from = SearchTest.compare(A, Table.Predicate.Op.GE, least);
    Cluster.Branch behind =
        Cluster.Branch.newBuilder()
            .setPredicate(from.toByteString())
            .addStreams(Cluster.IndexStream.newBuilder().setIndexId(1).addRanges(
                Cluster.IndexRange.newBuilder().setLow(ByteString.copyFrom(SearchTest.encoded(least)))))
            .build();
    assertEquals(none, search(behind, Cluster.SearchRange.newBuilder(), 100).keys);
    Table.Predicate to = SearchTest.compare(A, Table.Predicate.Op.LT, Value.text(padded("x.", 40_000)));
    Cluster.Branch before =
        Cluster.Branch.newBuilder()
            .setPredicate(to.toByteString())
            .addStreams(Cluster.IndexStream.newBuilder().setIndexId(1).addRanges(
                Cluster.IndexRange.newBuilder()
                    .setHigh(ByteString.copyFrom(SearchTest.encoded(Value.text(padded("x.", 40_000)))))
                    .setLow(ByteString.copyFrom(SearchTest.encoded(Value.text(""))))))
            .build();
    assertEquals(new TreeSet<>(Arrays.asList("k003")), search(before, Cluster.SearchRange.newBuilder(), 100).keys);
    // All rows, one by one: a page begins after the longest key.
    Cluster.Branch all =
        Cluster.Branch.newBuilder()
            .setPredicate(
                Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.IS_NULL).setColumn(B).build().toByteString())
            .build();
    assertEquals(
        new TreeSet<>(Arrays.asList("k000", "k001", "k002")), search(all, Cluster.SearchRange.newBuilder(), 1).keys);
    byte[] behindLongest = Key.after(Bytes.toBytes(longest));
    assertEquals(new TreeSet<>(Arrays.asList("k000", "k001")),
        search(all, Cluster.SearchRange.newBuilder().setEnd(ByteString.copyFrom(behindLongest)), 100).keys);
    assertEquals(new TreeSet<>(Arrays.asList("k002")),
        search(all, Cluster.SearchRange.newBuilder().setStart(ByteString.copyFrom(behindLongest)), 100).keys);
  }

  // ---- What is read before it is needed

  private static final int AHEAD = 400; // rows, whose entries are three times what may be held of them

  private static Table.Predicate from(int column) {
    return SearchTest.compare(column, Table.Predicate.Op.GE, Value.text("v"));
  }

  private static Cluster.IndexStream streamFrom(int index) {
    return Cluster.IndexStream.newBuilder()
        .setIndexId(index)
        .addRanges(Cluster.IndexRange.newBuilder().setLow(ByteString.copyFrom(SearchTest.encoded(Value.text("v")))))
        .build();
  }

  private static Cluster.Branch both(Table.Predicate isA, Table.Predicate isB, Cluster.IndexStream... streams) {
    return Cluster.Branch.newBuilder()
        .addAllStreams(Arrays.asList(streams))
        .setPredicate(Table.Predicate.newBuilder()
                          .setKind(Table.Predicate.Kind.AND)
                          .addChildren(isA)
                          .addChildren(isB)
                          .build()
                          .toByteString())
        .build();
  }

  private static void assertFewAhead(Found found, int index) {
    long bytes = found.read.getOrDefault(index, 0L) * LONG_KEY;
    assertTrue(bytes > 0 && bytes < EntryQueue.MAX_BYTES + 40L * LONG_KEY, bytes + " bytes of index " + index);
  }

  /** Two streams are read side by side to see which has fewer entries: not all of what costs less than the rows. */
  @Test
  void littleIsHeldOfStreamsThatAreCompared() throws Exception {
    open(new byte[0]);
    for (int i = 0; i < AHEAD; ++i) put(padded(String.format("k%03d", i), LONG_KEY), "va", "vb");
    TestServer.open(region);
    Found found = search(both(from(A), from(B), streamFrom(1), streamFrom(3)), Cluster.SearchRange.newBuilder(), 100);
    assertEquals(AHEAD, found.keys.size());
    assertFewAhead(found, 1);
    assertFewAhead(found, 3);
    List<String> va = Arrays.asList("va");
    List<String> vb = Arrays.asList("vb");
    found = search(both(in(A, va), in(B, vb), stream(1, va), stream(3, vb)), Cluster.SearchRange.newBuilder(), 100);
    assertEquals(AHEAD, found.keys.size());
    assertFewAhead(found, 1);
    assertFewAhead(found, 3);
  }

  /** All row keys of a stream that is joined are held. */
  @Test
  void aStreamWithTooMuchToHoldIsNotJoined() throws Exception {
    open(new byte[0]);
    List<String> as = new ArrayList<>();
    for (int i = 0; i < 10; ++i) as.add("x" + i);
    for (int i = 0; i < 100; ++i) put(String.format("k%03d", i), as.get(i % 10), i == 50 ? "v" : null);
    for (int i = 0; i < 250; ++i) put(padded(String.format("m%03d", i), LONG_KEY), null, "v");
    TestServer.open(region);
    Found found = search(both(in(A, as), from(B), stream(1, as), streamFrom(3)), Cluster.SearchRange.newBuilder(), 100);
    assertEquals(new TreeSet<>(Arrays.asList("k050")), found.keys);
    assertFewAhead(found, 3);
  }

  /** The index is lost between two pages, and rows are put into its order: no more of them than may be held. */
  @Test
  void fewRowsAreSortedAtATime() throws Exception {
    open(new byte[0]);
    for (int i = 0; i < AHEAD; ++i) put(padded(String.format("k%03d", i), LONG_KEY), "v" + i, i == 1 ? "v" : null);
    put("l000", "vz", "v");
    Cluster.Branch branch = both(from(A), from(B), streamFrom(1));
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .setTableId(region.table.tableId)
                                        .setSchemaVersion(1)
                                        .addBranches(branch)
                                        .build();
    Cluster.SearchRange.Builder range = Cluster.SearchRange.newBuilder().setRegionId(region.id);
    ByteString resume = ByteString.EMPTY;
    List<String> keys = new ArrayList<>();
    for (int page = 0; page == 0 || !resume.isEmpty(); ++page) {
      assertTrue(page < 10, "a search does not come to its end");
      Cluster.RangeResult result =
          new Searcher(request, region.table, "here")
              .search(region, range.setResume(resume).build(), 1, System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
      assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
      for (Cluster.FoundRow row : result.getRowsList()) keys.add(row.getKey().toStringUtf8().substring(0, 4));
      resume = result.getResume();
      if (page > 0) { // which begins with reading them all
        long looked = result.getCounters().getRowsRead() - AHEAD - 1;
        assertTrue(looked * LONG_KEY < EntryQueue.MAX_BYTES + 40L * LONG_KEY, looked + " rows were held");
      }
      region.setComplete(Collections.emptySet());
    }
    assertEquals(Arrays.asList("k001", "l000"), keys);
  }
}
