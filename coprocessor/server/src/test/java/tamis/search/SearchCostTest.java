package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Mutation;
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
import tamis.region.IndexedTable;
import tamis.server.TestServer;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Value;

/**
 * In a region the index leads that has the fewest entries; others are joined where that pays. The table is skewed and
 * correlated: half of the rows are of one country `a`, a quarter of the next; a city `b` lies in one country; `n` is a
 * day, and `s` the day of shipping, some days later.
 */
class SearchCostTest {
  private static final int A = 1;
  private static final int N = 2;
  private static final int B = 3;
  private static final int S = 4;
  private static final int ROWS = 6000;
  private static final int DAYS = 1000;
  private static final long FEW = 60; // entries that may be read too many

  private final List<Value[]> rows = new ArrayList<>();
  private RegionForTest test;
  private IndexedRegion region;

  /** A condition on one column: the values from low to high, which is one more; and how an index finds it. */
  private static final class Condition {
    final int column;
    final Value low;
    final Value high; // null: low alone

    Condition(int column, Value low, Value high) {
      this.column = column;
      this.low = low;
      this.high = high;
    }

    boolean matches(Value[] row) {
      return high == null ? row[column].equals(low)
                          : row[column].compareTo(low) >= 0 && row[column].compareTo(high) < 0;
    }

    Table.Predicate predicate() {
      if (high == null) return SearchTest.compare(column, Table.Predicate.Op.EQ, low);
      return Table.Predicate.newBuilder()
          .setKind(Table.Predicate.Kind.AND)
          .addChildren(SearchTest.compare(column, Table.Predicate.Op.GE, low))
          .addChildren(SearchTest.compare(column, Table.Predicate.Op.LT, high))
          .build();
    }

    Cluster.IndexStream stream() {
      if (high == null) return SearchTest.stream(column, SearchTest.equal(low));
      return Cluster.IndexStream.newBuilder()
          .setIndexId(column)
          .addRanges(Cluster.IndexRange.newBuilder()
                         .setLow(ByteString.copyFrom(SearchTest.encoded(low)))
                         .setHigh(ByteString.copyFrom(SearchTest.encoded(high))))
          .build();
    }
  }

  private static Value day(int day) {
    return Value.text(String.format("%05d", day));
  }

  private static Condition country(int country) {
    return new Condition(A, Value.text("c" + country), null);
  }

  private static Condition city(int country, int city) {
    return new Condition(B, Value.text("c" + country + "-" + city), null);
  }

  private static Condition days(int from, int to) {
    return new Condition(N, Value.int64(from), Value.int64(to));
  }

  private static Condition shipped(int from, int to) {
    return new Condition(S, day(from), day(to));
  }

  private static Cluster.Branch branch(List<Condition> conditions, Cluster.IndexStream... streams) {
    Table.Predicate.Builder all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.AND);
    for (Condition condition : conditions) all.addChildren(condition.predicate());
    return Cluster.Branch.newBuilder()
        .setPredicate(all.build().toByteString())
        .addAllStreams(Arrays.asList(streams))
        .build();
  }

  private static Cluster.Branch branch(Condition... conditions) {
    return branch(Arrays.asList(conditions),
        Arrays.stream(conditions).map(Condition::stream).toArray(Cluster.IndexStream[] ::new));
  }

  private static final class Work {
    final TreeSet<String> keys = new TreeSet<>();
    int found;
    long entries;
    long seeks;
    long rowsRead;
    long scanned;
    long expected;
    final Map<Integer, Long> led = new HashMap<>();
    final Map<Integer, Long> joined = new HashMap<>();

    /** In entries: to begin a range costs eight, a row eight when it is looked up, two when all are read in turn. */
    long cost() {
      return entries + 8 * seeks + 8 * (rowsRead - scanned) + 2 * scanned;
    }
  }

  private Work ask(BranchStreams.Choice choice, long maxRows, Cluster.Branch... branches) throws StatusException {
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .setTableId(region.table.tableId)
                                        .setSchemaVersion(1)
                                        .addAllBranches(Arrays.asList(branches))
                                        .addColumns(5) // in no index
                                        .build();
    Work work = new Work();
    ByteString resume = ByteString.EMPTY;
    for (boolean first = true; first || !resume.isEmpty(); first = false) {
      Cluster.RangeResult result =
          new Searcher(request, region.table, "here", choice)
              .search(region, Cluster.SearchRange.newBuilder().setRegionId(region.id).setResume(resume).build(),
                  maxRows, System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
      assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
      for (Cluster.FoundRow row : result.getRowsList()) work.keys.add(row.getKey().toStringUtf8());
      work.found += result.getRowsCount();
      work.entries += result.getCounters().getEntriesRead();
      work.seeks += result.getCounters().getIndexSeeks();
      work.rowsRead += result.getCounters().getRowsRead();
      for (Cluster.IndexUse use : result.getCounters().getUsesList()) {
        work.expected += use.getEntriesExpected();
        if (use.getIndexId() == 0) work.scanned += result.getCounters().getRowsRead();
        if (first) work.led.merge(use.getIndexId(), use.getLed(), Long::sum);
        work.joined.merge(use.getIndexId(), use.getJoined(), Long::sum);
      }
      resume = result.getResume();
    }
    return work;
  }

  private Work ask(Condition... conditions) throws StatusException {
    return ask(new BranchStreams.Choice(), SearchPage.MAX_ROWS, branch(conditions));
  }

  /** The cheapest way to find the rows by one index alone. */
  private long leastCost(Condition... conditions) throws StatusException {
    long least = Long.MAX_VALUE;
    for (Condition condition : conditions) {
      Cluster.Branch one = branch(Arrays.asList(conditions), condition.stream());
      least = Math.min(least, ask(new BranchStreams.Choice(), SearchPage.MAX_ROWS, one).cost());
    }
    return least;
  }

  private long matching(Condition... conditions) {
    return rows.stream().filter(row -> Arrays.stream(conditions).allMatch(c -> c.matches(row))).count();
  }

  private static List<Condition[]> questions() {
    List<Condition[]> all = new ArrayList<>();
    all.add(new Condition[] {country(0), days(500, 505)});
    all.add(new Condition[] {country(0), days(100, 600)});
    all.add(new Condition[] {country(7), days(100, 600)});
    all.add(new Condition[] {city(0, 1), days(0, 10)});
    all.add(new Condition[] {country(0), city(0, 3)}); // which says it all
    all.add(new Condition[] {country(1), city(0, 3)}); // never
    all.add(new Condition[] {country(0), days(77, 78)});
    all.add(new Condition[] {days(100, 200), shipped(100, 220)}); // nearly the same
    all.add(new Condition[] {days(100, 200), shipped(600, 700)}); // never
    all.add(new Condition[] {country(0), days(0, 400), shipped(380, 500)});
    all.add(new Condition[] {country(5), city(5, 2), days(0, 900)});
    all.add(new Condition[] {days(100, 1000)}); // most rows
    return all;
  }

  @BeforeEach
  void fill() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Schema schema = RegionForTest.schema()
                              .addIndexes(RegionForTest.index(A, "by_a", true, A))
                              .addIndexes(RegionForTest.index(N, "by_n", false, N))
                              .addIndexes(RegionForTest.index(B, "by_b", true, B))
                              .addIndexes(RegionForTest.index(S, "by_s", true, S))
                              .build();
    test = new RegionForTest(RegionForTest.descriptor(schema, 1));
    region = test.indexed();
    Random random = new Random(5);
    List<Mutation> puts = new ArrayList<>();
    for (int i = 0; i < ROWS; ++i) {
      int country = 0;
      while (country < 9 && random.nextBoolean()) ++country;
      int day = random.nextInt(DAYS);
      Value[] row = {Value.bytes(Bytes.toBytes(String.format("r%06d", i))), Value.text("c" + country), Value.int64(day),
          Value.text("c" + country + "-" + random.nextInt(10)), day(day + 1 + random.nextInt(20))};
      rows.add(row);
      puts.add(new Put(row[0].bytes())
                   .addColumn(RegionForTest.F, Bytes.toBytes("a"), row[A].bytes())
                   .addColumn(RegionForTest.F, Bytes.toBytes("n"), Bytes.toBytes((long) day))
                   .addColumn(RegionForTest.G, Bytes.toBytes("b"), row[B].bytes())
                   .addColumn(RegionForTest.F, Bytes.toBytes("s"), row[S].bytes()));
    }
    for (int i = 0; i < ROWS; i += 1000) {
      test.region.batchMutate(puts.subList(i, i + 1000).toArray(new Mutation[0]));
    }
    TestServer.open(region);
    assertTrue(region.filters.get(N).isPublished());
  }

  @AfterEach
  void close() throws Exception {
    TestServer.close(region);
    test.close();
    TestServer.stop();
  }

  private int tooDear(BranchStreams.Choice choice) throws StatusException {
    int tooDear = 0;
    for (Condition[] question : questions()) {
      Work work = ask(choice, SearchPage.MAX_ROWS, branch(question));
      assertEquals(matching(question), work.found);
      assertEquals(work.found, work.keys.size());
      long least = leastCost(question);
      if (work.cost() <= 2 * least + FEW) continue;
      ++tooDear;
      if (choice.byCost) assertEquals(least, work.cost(), "costs too much: question " + questions().indexOf(question));
    }
    return tooDear;
  }

  @Test
  void noPlanCostsTwiceWhatTheBestIndexDoes() throws Exception {
    BranchStreams.Choice first = new BranchStreams.Choice();
    first.byCost = false;
    first.join = false;
    assertEquals(0, tooDear(new BranchStreams.Choice())); // all in memory: files say nothing
    assertTrue(tooDear(first) >= 3);
    test.region.flush(true);
    assertEquals(0, tooDear(new BranchStreams.Choice()));
    BranchStreams.Choice early = new BranchStreams.Choice();
    early.probeEntries = 16; // the files' estimate decides more often
    assertEquals(0, tooDear(early));
  }

  @Test
  void shortRangeDrivesBeforeALongEqualityAndIsExplained() throws Exception {
    Work work = ask(country(0), days(500, 505));
    long few = matching(days(500, 505));
    assertEquals(1, work.led.get(N));
    assertEquals(few, work.expected);
    assertEquals(few, work.rowsRead);
    assertTrue(work.entries <= 2 * few + 8, few + " entries would do, " + work.entries + " were read");
  }

  @Test
  void equalityWithFewCountedEntriesDrivesWithoutAProbe() throws Exception {
    Condition rare = city(9, 3);
    long few = matching(rare);
    assertTrue(few < 15, "" + few);
    Work work = ask(country(0), rare, days(0, 900), shipped(0, 900));
    assertEquals(1, work.led.get(B));
    assertEquals(few, work.rowsRead);
    assertEquals(few, work.expected);
    assertTrue(work.entries <= 4 * (few + 4) && work.seeks <= 4, work.entries + " entries, " + work.seeks + " seeks");
    // Without counters all are read side by side.
    region.filters = new HashMap<>();
    work = ask(country(0), rare, days(0, 900));
    assertEquals(1, work.led.get(B));
    assertEquals(few, work.rowsRead);
    assertTrue(work.entries <= 3 * (few + 8), "" + work.entries);
  }

  @Test
  void aStreamIsJoinedWhereItSparesMoreThanItCosts() throws Exception {
    long ofDay = matching(days(100, 200));
    for (boolean join : new boolean[] {true, false}) {
      BranchStreams.Choice choice = new BranchStreams.Choice();
      choice.join = join;
      Work work = ask(choice, SearchPage.MAX_ROWS, branch(days(100, 200), shipped(600, 700)));
      assertEquals(0, work.found);
      assertEquals(join, work.rowsRead < ofDay / 2);
      work = ask(choice, SearchPage.MAX_ROWS, branch(days(100, 200), shipped(90, 230)));
      assertEquals(ofDay, work.found);
      assertEquals(0, work.joined.getOrDefault(S, 0L));
      // Two equalities: by leaping from one to the other.
      work = ask(choice, SearchPage.MAX_ROWS, branch(country(4), city(1, 3)));
      assertEquals(0, work.found);
      assertEquals(join, work.rowsRead < 64);
      assertEquals(join, work.joined.getOrDefault(A, 0L) > 0);
    }
  }

  @Test
  void continuationKeepsTheDrivingIndex() throws Exception {
    for (long probe : new long[] {0, 8, 256}) {
      BranchStreams.Choice choice = new BranchStreams.Choice();
      choice.probeEntries = probe;
      for (Condition[] question : questions()) {
        Work work = ask(choice, probe == 8 ? 300 : 17, branch(question));
        assertEquals(matching(question), work.found);
        assertEquals(work.found, work.keys.size());
      }
    }
  }

  @Test
  void mostRowsOfARegionAreScannedAndNotLookedUp() throws Exception {
    Work work = ask(days(100, 1000));
    assertEquals(matching(days(100, 1000)), work.found);
    assertEquals(1, work.led.get(0));
    assertTrue(work.rowsRead <= ROWS);
    assertTrue(ask(days(0, 100)).led.containsKey(N));
    BranchStreams.Choice first = new BranchStreams.Choice();
    first.byCost = false;
    assertFalse(ask(first, SearchPage.MAX_ROWS, branch(days(100, 1000))).led.containsKey(0));
  }

  @Test
  void aContinuationOfAnotherSearchIsRefused() throws Exception {
    Cluster.SearchRequest.Builder request = Cluster.SearchRequest.newBuilder()
                                                .setTableId(region.table.tableId)
                                                .setSchemaVersion(1)
                                                .addBranches(branch(days(0, 60)));
    Cluster.SearchRange.Builder range = Cluster.SearchRange.newBuilder().setRegionId(region.id);
    long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
    ByteString resume =
        new Searcher(request.build(), region.table, "here").search(region, range.build(), 1, deadline).getResume();
    assertFalse(resume.isEmpty());
    for (Condition other : new Condition[] {shipped(0, 60), country(0)}) {
      request.setBranches(0, branch(other));
      assertEquals(Cluster.Error.Code.INVALID_ARGUMENT,
          new Searcher(request.build(), region.table, "here")
              .search(region, range.setResume(resume).build(), 1, deadline)
              .getError()
              .getCode());
    }
  }

  @Test
  void estimateCoversFilesAndMemory() throws Exception {
    byte[] prefix = region.keys.index(N);
    CellEstimate.Rows all = new CellEstimate.Rows(prefix, tamis.table.Key.prefixEnd(prefix));
    List<CellEstimate.Rows> ranges = java.util.Collections.singletonList(all);
    CellEstimate memory = CellEstimate.of(test.region, IndexedTable.FAMILY, ranges);
    assertTrue(memory.least == 0 && memory.most >= ROWS, memory.least + ".." + memory.most);
    test.region.flush(true);
    CellEstimate files = CellEstimate.of(test.region, IndexedTable.FAMILY, ranges);
    assertTrue(files.least <= ROWS && ROWS <= files.most, files.least + ".." + files.most);
    assertTrue(files.least > ROWS / 3 && files.most < 2 * ROWS, files.least + ".." + files.most);
    assertTrue(Math.abs(files.likely - ROWS) < ROWS / 3, "" + files.likely);
  }
}
