package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.OperationStatus;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.EnvironmentEdge;
import org.apache.hadoop.hbase.util.EnvironmentEdgeManager;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.feed.FeedOptions;
import tamis.feed.IndexFilter;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.search.Searcher;
import tamis.server.TestServer;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.CellMapForTest;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.KeyFormat;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Random writes of every kind into a real region, with time stamps that collide, flushes, compactions and reopenings:
 * what HBase then shows of the rows is what the entries say. A failure names its seed: -Dproperty.seed=N runs it again,
 * -Dproperty.seeds=N runs so many.
 */
class IndexPropertyTest {
  private static final int OPERATIONS = 120;

  private static final class Clock implements EnvironmentEdge {
    long now = 1_700_000_000_000L;

    @Override
    public long currentTime() {
      return now;
    }
  }

  private final Clock clock = new Clock();
  private long rowsFromEntries;
  private long cellsCleared;

  @AfterEach
  void reset() {
    Fault.only();
    EnvironmentEdgeManager.reset();
    TestServer.stop();
  }

  /** The actions that a run may take. */
  private static final class Mode {
    boolean clientTimestamps;
    boolean sameMillisecond; // several writes may carry one time stamp of the server's
    boolean nulls;
    boolean include; // indexes have included columns
    boolean indexesB = true; // an index is on a column that is computed from b
    boolean where; // there are partial indexes
    boolean cells; // indexes have cell maps, and the filters are cleared now and then
  }

  private static int seeds() {
    String text = System.getProperty("property.seeds", "");
    return text.isEmpty() ? 8 : Integer.parseInt(text);
  }

  private interface Run {
    void run(long seed) throws Exception;
  }

  private static void forSeeds(Run run) throws Exception {
    String one = System.getProperty("property.seed", "");
    if (!one.isEmpty()) {
      run.run(Long.parseLong(one));
      return;
    }
    for (long seed = 1; seed <= seeds(); ++seed) run.run(seed);
  }

  @Test
  void serverTimestampsLeaveNothingMissingAndNothingOver() throws Exception {
    forSeeds(seed -> {
      Mode mode = new Mode();
      mode.nulls = seed % 2 == 0;
      mode.include = seed % 4 < 2;
      mode.where = seed % 3 == 0;
      assertEquals(0, play(seed, mode));
    });
  }

  @Test
  void collidingTimestampsLeaveNothingMissing() throws Exception {
    int[] over = new int[1];
    forSeeds(seed -> {
      Mode mode = new Mode();
      mode.nulls = seed % 2 == 0;
      mode.include = seed % 4 < 2;
      mode.where = seed % 3 == 0;
      mode.clientTimestamps = true;
      mode.sameMillisecond = true;
      over[0] += play(seed, mode);
    });
    // Entries of puts at or below a tombstone, which may become visible once the tombstone is forgotten.
    System.out.println("entries without a row that shows, at the ends of all runs: " + over[0]);
  }

  @Test
  void clearedFiltersExcludeNoRow() throws Exception {
    forSeeds(seed -> {
      Mode mode = new Mode();
      mode.cells = true;
      mode.clientTimestamps = seed % 2 == 0;
      mode.sameMillisecond = mode.clientTimestamps;
      play(seed, mode);
    });
    assertTrue(cellsCleared > 20, cellsCleared + " cells were cleared");
  }

  /** Each rule has an owner: without it an entry stands for a state that its row does not show. */
  private void entriesWouldGiveOtherRows(Fault fault, boolean include) throws Exception {
    Mode mode = new Mode();
    mode.nulls = fault != Fault.INCLUDED_COLUMNS_NOT_USED; // else every write concerns the indexes
    mode.indexesB = mode.nulls;
    mode.include = include;
    isNoticed(fault, mode, "rows of entries");
  }

  private void isNoticed(Fault fault, Mode mode, String message) throws Exception {
    Fault.only(fault);
    mode.clientTimestamps = true;
    mode.sameMillisecond = true;
    for (long seed = 1; seed <= 50; ++seed) {
      try {
        play(seed, mode);
      } catch (AssertionError e) {
        assertTrue(e.getMessage().contains(message), e.getMessage());
        return;
      }
      TestServer.stop();
    }
    fail("nothing was wrong with " + fault);
  }

  @Test
  void conditionColumnsThatAreNotUsedWouldLoseEntries() throws Exception {
    Mode mode = new Mode();
    mode.where = true;
    isNoticed(Fault.CONDITION_COLUMNS_NOT_USED, mode, "entr"); // one is missing, or wrong
  }

  @Test
  void hiddenConditionsThatAreOverlookedWouldLoseEntries() throws Exception {
    Mode mode = new Mode();
    mode.where = true;
    isNoticed(Fault.HIDDEN_CONDITIONS_OVERLOOKED, mode, "is missing");
  }

  @Test
  void markedEntriesWouldGiveOtherRows() throws Exception {
    entriesWouldGiveOtherRows(Fault.MARKED_ENTRIES_TAKEN, false);
  }

  @Test
  void includedColumnsThatAreNotUsedWouldBeStale() throws Exception {
    entriesWouldGiveOtherRows(Fault.INCLUDED_COLUMNS_NOT_USED, true);
  }

  @Test
  void includedColumnsThatAreNotComparedWouldBeStale() throws Exception {
    entriesWouldGiveOtherRows(Fault.INCLUDED_COLUMNS_LEFT, true);
  }

  @Test
  void includedColumnsAtTheirTimestampsWouldBeStale() throws Exception {
    entriesWouldGiveOtherRows(Fault.INCLUDED_AT_THEIR_TIMESTAMPS, true);
  }

  @Test
  void includedColumnsOfDoubtfulRowsWouldBeStale() throws Exception {
    entriesWouldGiveOtherRows(Fault.DOUBTFUL_COLUMNS_INCLUDED, true);
  }

  /** The rule has an owner: a write of the column that an indexed one is computed from changes its entries. */
  @Test
  void writesOfSourcesWouldLeaveEntriesAsTheyWere() {
    Fault.only(Fault.SOURCES_NOT_INDEXED);
    String found = assertThrows(AssertionError.class, () -> play(1, new Mode())).getMessage();
    assertTrue(found.contains("is missing") || found.contains("rows of entries of index by_b1"), found);
  }

  /** Entries at the end that no row wants. */
  private int play(long seed, Mode mode) throws Exception {
    EnvironmentEdgeManager.injectEdge(clock);
    TestServer.start(new FeedOptions());
    Random random = new Random(seed);
    Table.Schema.Builder schema = schema(mode);
    int versions = new int[] {1, 1, 2, 5}[random.nextInt(4)];
    List<String> history = new ArrayList<>();
    int over = 0;
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema.build(), versions))) {
      TestServer.open(test.indexed());
      for (int i = 0; i < OPERATIONS; ++i) {
        if (!mode.sameMillisecond || random.nextInt(3) == 0) clock.now += 1 + random.nextInt(3);
        history.add(step(test, random, mode));
        if (mode.cells && random.nextInt(3) == 0) clear(test, seed, mode, history);
        over = check(test, seed, history);
        rowsFromEntries += agreesWithTheEntries(test, "seed " + seed + ": " + String.join("\n", history));
        if (i % 12 == 0 || i == OPERATIONS - 1) agreesWithTheChecker(test, seed, mode, history);
      }
    }
    return over;
  }

  private void clear(RegionForTest test, long seed, Mode mode, List<String> history) throws Exception {
    int before = occupiedCells(test);
    TestServer.clear(test.indexed());
    cellsCleared += before - occupiedCells(test);
    history.add("clear");
    agreesWithTheChecker(test, seed, mode, history);
  }

  private static int occupiedCells(RegionForTest test) {
    return test.indexed().filters.values().stream().mapToInt(IndexFilter::occupiedCells).sum();
  }

  private static Table.Index withCells(Mode mode, Table.Index index) throws Exception {
    if (!mode.cells) return index;
    byte[][] knots = new byte[5][];
    for (int i = 0; i < knots.length; ++i) {
      ByteWriter out = new ByteWriter();
      Codec.appendIndexed(Value.text("v" + i / 2 + (i % 2 == 0 ? "" : "v")), out);
      knots[i] = out.toBytes();
    }
    return RegionForTest.withCells(index, CellMapForTest.of(6, 1, knots));
  }

  private static Table.Schema.Builder schema(Mode mode) throws Exception {
    Table.Schema.Builder schema = RegionForTest.schema()
                                      .addColumns(RegionForTest.computed(6, "b1", 3))
                                      .addIndexes(including(mode, RegionForTest.index(1, "by_a", true, 1), 3, 4))
                                      .addIndexes(withCells(mode, RegionForTest.index(2, "by_s", true, 4)))
                                      .addIndexes(including(mode, RegionForTest.index(3, "by_n", true, 2), 1));
    // Without it b is used by conditions and as an included column only.
    if (mode.indexesB && !mode.where) schema.addIndexes(withCells(mode, RegionForTest.index(7, "by_b1", true, 5)));
    if (mode.cells) schema.addIndexes(withCells(mode, RegionForTest.index(11, "a_in_cells", true, 1)));
    if (mode.where) {
      schema.addIndexes(RegionForTest.where(RegionForTest.index(9, "a_of_b", true, 1), RegionForTest.equal(3, "v1")))
          .addIndexes(RegionForTest.where(RegionForTest.index(10, "n_of_b", true, 2), RegionForTest.isNull(3)));
    }
    if (!mode.nulls) return schema;
    return schema.addIndexes(including(mode, RegionForTest.index(4, "by_nb", false, 2, 3), 4))
        .addIndexes(RegionForTest.index(5, "by_ba", false, 3, 1))
        .addIndexes(including(mode, RegionForTest.index(6, "by_ab", true, 1, 3), 2, 4))
        .addIndexes(including(mode, RegionForTest.index(8, "by_b1n", false, 5, 2), 1));
  }

  private static Table.Index including(Mode mode, Table.Index index, Integer... columns) {
    return mode.include ? RegionForTest.including(index, columns) : index;
  }

  private static byte[] row(Random random) {
    return Bytes.toBytes("r" + random.nextInt(4));
  }

  private long timestamp(Random random, Mode mode) {
    if (!mode.clientTimestamps || random.nextInt(3) == 0) return HConstants.LATEST_TIMESTAMP;
    return random.nextInt(4) == 0 ? clock.now + random.nextInt(3) : 1_700_000_000_000L + random.nextInt(6);
  }

  private Mutation mutation(byte[] row, Random random, Mode mode) {
    int kind = random.nextInt(12);
    Mutation mutation = kind < 6 ? put(row, random, mode)
        : kind < 10              ? delete(row, random, mode)
        : kind < 11              ? increment(row, random)
                                 : append(row, random);
    int durability = random.nextInt(8);
    if (durability == 0) mutation.setDurability(Durability.SKIP_WAL);
    if (durability == 1) mutation.setDurability(Durability.ASYNC_WAL);
    return mutation;
  }

  private Put put(byte[] row, Random random, Mode mode) {
    long timestamp = timestamp(random, mode);
    Put put = new Put(row);
    if (random.nextInt(2) == 0) put.addColumn(RegionForTest.F, Bytes.toBytes("a"), timestamp, value(random));
    if (random.nextInt(3) == 0) put.addColumn(RegionForTest.G, Bytes.toBytes("b"), timestamp, value(random));
    if (random.nextInt(3) == 0) {
      put.addColumn(
          RegionForTest.F, Bytes.toBytes("n"), timestamp(random, mode), Bytes.toBytes((long) random.nextInt(3)));
    }
    if (random.nextInt(6) == 0) put.addColumn(RegionForTest.F, Bytes.toBytes("s"), timestamp, value(random));
    if (put.isEmpty()) put.addColumn(RegionForTest.F, Bytes.toBytes("other"), timestamp, value(random));
    return put;
  }

  private Delete delete(byte[] row, Random random, Mode mode) {
    long timestamp = timestamp(random, mode);
    Delete delete = new Delete(row);
    byte[] qualifier = Bytes.toBytes(new String[] {"a", "n", "s"}[random.nextInt(3)]);
    switch (random.nextInt(7)) {
      case 0:
        return delete; // the whole row
      case 1:
        return delete.addColumn(RegionForTest.F, qualifier, timestamp);
      case 2:
        return delete.addColumns(RegionForTest.F, qualifier, timestamp);
      case 3:
        return delete.addFamily(RegionForTest.F, timestamp);
      case 4:
        return delete.addFamilyVersion(
            RegionForTest.F, timestamp == HConstants.LATEST_TIMESTAMP ? clock.now - random.nextInt(3) : timestamp);
      case 5:
        return delete.addColumn(RegionForTest.F, qualifier); // the newest version
      default:
        return delete.addColumns(RegionForTest.G, Bytes.toBytes("b"), timestamp);
    }
  }

  private static Increment increment(byte[] row, Random random) {
    return new Increment(row).addColumn(RegionForTest.F, Bytes.toBytes("n"), 1 + random.nextInt(2));
  }

  /** Behind a number it leaves what is none, now and then. */
  private static Append append(byte[] row, Random random) {
    byte[] qualifier = Bytes.toBytes(random.nextInt(12) == 0 ? "n" : random.nextBoolean() ? "s" : "a");
    return new Append(row).addColumn(RegionForTest.F, qualifier, value(random));
  }

  private static String text(Mutation mutation) {
    StringBuilder out =
        new StringBuilder(mutation.getClass().getSimpleName() + " " + Bytes.toString(mutation.getRow()));
    for (List<Cell> cells : mutation.getFamilyCellMap().values()) {
      for (Cell cell : cells) out.append(' ').append(RegionForTest.text(cell));
    }
    return out.toString();
  }

  private static byte[] value(Random random) {
    return Bytes.toBytes("v" + random.nextInt(3));
  }

  private String step(RegionForTest test, Random random, Mode mode) throws IOException, InterruptedException {
    byte[] row = row(random);
    switch (random.nextInt(22)) {
      case 0:
        test.region.flush(true);
        return "flush";
      case 1:
        for (HStore store : test.region.getStores()) {
          if (random.nextInt(2) == 0)
            test.region.flushcache(Arrays.asList(store.getColumnFamilyDescriptor().getName()), false,
                org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker.DUMMY);
        }
        return "flush of some families";
      case 2:
        test.region.compact(true);
        return "major compaction";
      case 3:
        test.region.compact(false);
        return "compaction";
      case 4:
        if (random.nextInt(4) != 0) return "nothing";
        TestServer.close(test.indexed());
        test.reopen();
        TestServer.open(test.indexed());
        return "reopen";
      case 5: {
        Increment increment = increment(row, random);
        return said(text(increment), () -> test.region.increment(increment));
      }
      case 6: {
        Append append = append(row, random);
        return said(text(append), () -> test.region.append(append));
      }
      case 7: {
        RowMutations all = rowMutations(row, random, mode);
        return said("row mutations " + texts(all.getMutations()), () -> test.region.mutateRow(all));
      }
      case 8: {
        Mutation mutation = mutation(row, random, mode);
        CheckAndMutate check = check(row, random, mutation);
        return said("check and " + text(mutation), () -> test.region.checkAndMutate(check));
      }
      case 9: {
        RowMutations all = rowMutations(row, random, mode);
        CheckAndMutate check = condition(row, random).build(all);
        return said("check and row mutations " + texts(all.getMutations()), () -> test.region.checkAndMutate(check));
      }
      case 10: {
        List<Mutation> all = mutations(row, random, mode);
        TreeSet<byte[]> rows = new TreeSet<>(Bytes.BYTES_COMPARATOR);
        for (Mutation mutation : all) rows.add(mutation.getRow());
        return said("rows at once " + texts(all),
            () -> test.region.mutateRowsWithLocks(all, rows, HConstants.NO_NONCE, HConstants.NO_NONCE));
      }
      default: {
        List<Mutation> all = mutations(row, random, mode);
        return said("batch " + texts(all), () -> {
          for (OperationStatus status : test.region.batchMutate(all.toArray(new Mutation[0]))) {
            assertEquals(
                HConstants.OperationStatusCode.SUCCESS, status.getOperationStatusCode(), status.getExceptionMsg());
          }
        });
      }
    }
  }

  private interface Write {
    void write() throws IOException;
  }

  /** A description of the write. An increment of a value that is no number fails: HBase ends the batch there. */
  private static String said(String what, Write write) throws IOException {
    try {
      write.write();
      return what;
    } catch (DoNotRetryIOException e) {
      if (!e.getMessage().contains("Field is not a long")) throw e;
      return what + ": refused";
    }
  }

  private static CheckAndMutate.Builder condition(byte[] row, Random random) {
    return CheckAndMutate.newBuilder(row).ifMatches(RegionForTest.F, Bytes.toBytes("a"),
        random.nextBoolean() ? CompareOperator.EQUAL : CompareOperator.NOT_EQUAL, value(random));
  }

  private static CheckAndMutate check(byte[] row, Random random, Mutation mutation) {
    CheckAndMutate.Builder check = condition(row, random);
    if (mutation instanceof Put) return check.build((Put) mutation);
    if (mutation instanceof Delete) return check.build((Delete) mutation);
    return mutation instanceof Increment ? check.build((Increment) mutation) : check.build((Append) mutation);
  }

  private RowMutations rowMutations(byte[] row, Random random, Mode mode) throws IOException {
    RowMutations all = new RowMutations(row);
    for (int i = random.nextInt(4); i >= 0; --i) all.add(mutation(row, random, mode));
    return all;
  }

  /** Mostly of one row. */
  private List<Mutation> mutations(byte[] row, Random random, Mode mode) {
    List<Mutation> all = new ArrayList<>();
    for (int i = random.nextInt(4); i >= 0; --i) {
      all.add(mutation(random.nextInt(3) == 0 ? row(random) : row, random, mode));
    }
    return all;
  }

  private static List<String> texts(List<Mutation> mutations) {
    List<String> texts = new ArrayList<>();
    for (Mutation mutation : mutations) texts.add(text(mutation));
    return texts;
  }

  /**
   * It says the same of what is right, and knows which entries too many are harmless. The filters have counted what
   * stands; an entry that no row gave any more without a write, and then a row again, twice.
   */
  private static void agreesWithTheChecker(RegionForTest test, long seed, Mode mode, List<String> history)
      throws Exception {
    IndexedRegion region = test.indexed();
    tamis.pb.Cluster.RegionCheck report = Checker.check(region, rows -> true);
    String said = "seed " + seed + ": " + report + "\n" + String.join("\n", history);
    assertEquals(0, report.getMissingEntries() + report.getForeignEntries() + report.getMissingInFilter(), said);
    long counted = 0;
    for (IndexFilter filter : region.filters.values()) counted += filter.entries();
    assertTrue(mode.clientTimestamps ? counted >= report.getEntries() : counted == report.getEntries(),
        counted + " are counted, " + said);
  }

  /** Searches that read no row where an entry proves it find what HBase shows. Returns how many rows came so. */
  private static long agreesWithTheEntries(RegionForTest test, String said) throws Exception {
    IndexedRegion indexed = test.indexed();
    Schema schema = indexed.table.schema;
    List<Value[]> shown = shown(test);
    long made = 0;
    for (Schema.Index index : schema.indexes) {
      List<byte[]> values = new ArrayList<>();
      values.add(null); // the whole index
      for (Value[] row : shown) {
        if (values.size() > 1 || Codec.isSkipped(index, row)) continue;
        byte[][] prefixes = Codec.indexPrefixes(index, row);
        values.add(prefixes[prefixes.length - 1]);
      }
      for (byte[] value : values) made += agreesWithTheEntries(indexed, index, value, shown, said);
    }
    return made;
  }

  private static long agreesWithTheEntries(
      IndexedRegion indexed, Schema.Index index, byte[] value, List<Value[]> shown, String said) throws Exception {
    Schema schema = indexed.table.schema;
    Cluster.IndexStream.Builder stream = Cluster.IndexStream.newBuilder().setIndexId(index.id);
    Cluster.IndexRange.Builder range = Cluster.IndexRange.newBuilder();
    if (value != null) {
      stream.setEquality(true);
      range.setLow(ByteString.copyFrom(value)).setHigh(ByteString.copyFrom(Key.prefixEnd(value)));
    }
    stream.addRanges(range);
    Table.Predicate.Builder all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.TRUE);
    Cluster.SearchRequest.Builder request = Cluster.SearchRequest.newBuilder().addBranches(
        Cluster.Branch.newBuilder().addStreams(stream).setPredicate(all.build().toByteString()));
    boolean[] wanted = new boolean[schema.columns.length];
    for (int column : index.columns) wanted[column] = true;
    for (int column : index.include) wanted[column] = true;
    for (int i = 0; i < wanted.length; ++i) {
      if (wanted[i]) request.addColumns((int) schema.columns[i].id);
    }
    Set<String> expected = new TreeSet<>();
    for (Value[] row : shown) {
      byte[] key = KeyFormat.encode(schema, row);
      if (Codec.isSkipped(index, row)) continue;
      byte[][] prefixes = Codec.indexPrefixes(index, row);
      if (value != null && !Arrays.equals(value, prefixes[prefixes.length - 1])) continue;
      expected.add(Bytes.toStringBinary(key) + "=" + Bytes.toStringBinary(Codec.encodeRow(schema, row, wanted)));
    }
    Cluster.RangeResult page =
        new Searcher(request.build(), indexed.table, "here")
            .search(indexed, Cluster.SearchRange.newBuilder().setRegionId(indexed.id).build(), 1000, Long.MAX_VALUE);
    assertEquals("", page.getError().getMessage());
    List<String> found = new ArrayList<>();
    for (Cluster.FoundRow row : page.getRowsList()) {
      String text =
          Bytes.toStringBinary(row.getKey().toByteArray()) + "=" + Bytes.toStringBinary(row.getRow().toByteArray());
      // An entry of another state of a row leads to the row, whatever that has: no condition leaves it out here.
      boolean other = value != null && !expected.contains(text) && page.getCounters().getRowsRead() > 0;
      if (!other) found.add(text);
    }
    found.sort(null);
    assertEquals(new ArrayList<>(expected), found, "rows of entries of index " + index.name + ", " + said);
    return page.getCounters().getRowsFromEntries();
  }

  private static List<Value[]> shown(RegionForTest test) throws IOException {
    IndexedRegion indexed = test.indexed();
    Schema schema = indexed.table.schema;
    List<Value[]> rows = new ArrayList<>();
    for (List<Cell> cells : test.scan(RegionForTest.F, RegionForTest.G)) {
      Value[] row = new Value[schema.columns.length];
      assertTrue(KeyFormat.decode(schema, CellUtil.cloneRow(cells.get(0)), row));
      for (Cell cell : cells) {
        int column = indexed.table.columnOf(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
        if (column < 0) continue;
        row[column] = schema.columns[column].encoding.decode(schema.columns[column].type, CellUtil.cloneValue(cell));
      }
      schema.setComputed(row);
      rows.add(row);
    }
    return rows;
  }

  /**
   * Entries that no row wants. The wanted entries of a row are computed from the cells that HBase shows, and from
   * nothing else.
   */
  private int check(RegionForTest test, long seed, List<String> history) throws IOException {
    IndexedRegion indexed = test.indexed();
    Schema schema = indexed.table.schema;
    Set<Key> wanted = new LinkedHashSet<>();
    for (Value[] row : shown(test)) {
      byte[] key = row[schema.key[0]].bytes();
      for (Schema.Index index : schema.indexes) {
        if (Codec.isSkipped(index, row)) continue;
        byte[][] prefixes = Codec.indexPrefixes(index, row);
        wanted.add(new Key(indexed.keys.entry(index.id, prefixes[prefixes.length - 1], key)));
      }
    }
    Set<Key> there = new TreeSet<>();
    for (byte[] key : test.entries()) {
      if (indexed.keys.kindOf(schema, key) != EntryKeys.Kind.MARKER) there.add(new Key(key));
    }
    for (Key key : wanted) {
      if (there.contains(key)) continue;
      String row = Bytes.toString(key.bytes(), key.bytes().length - 2, 2);
      StringBuilder text = new StringBuilder();
      for (String line : history) {
        if (line.contains(row) || !line.contains(" r")) text.append("\n  ").append(line);
      }
      fail("seed " + seed + ": entry " + Bytes.toStringBinary(key.bytes()) + " is missing after" + text + "\n  now "
          + test.raw(Bytes.toBytes(row)));
    }
    there.removeAll(wanted);
    return there.size();
  }
}
