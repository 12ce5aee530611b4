package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
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
import tamis.pb.Table;
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

  @AfterEach
  void reset() {
    EnvironmentEdgeManager.reset();
    RegionServerState.INSTANCE.startForTest(null);
  }

  /** What a run may do. */
  private static final class Mode {
    boolean clientTimestamps;
    boolean sameMillisecond; // several writes may carry one time stamp of the server's
    boolean nulls;
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
      assertEquals(0, play(seed, mode));
    });
  }

  @Test
  void collidingTimestampsLeaveNothingMissing() throws Exception {
    int[] over = new int[1];
    forSeeds(seed -> {
      Mode mode = new Mode();
      mode.nulls = seed % 2 == 0;
      mode.clientTimestamps = true;
      mode.sameMillisecond = true;
      over[0] += play(seed, mode);
    });
    // Of puts at or below a tombstone, which may show once the tombstone is forgotten.
    System.out.println("entries without a row that shows, at the ends of all runs: " + over[0]);
  }

  /** Entries at the end that no row wants. */
  private int play(long seed, Mode mode) throws Exception {
    EnvironmentEdgeManager.injectEdge(clock);
    RegionServerState.INSTANCE.startForTest(new FeedOptions());
    Random random = new Random(seed);
    Table.Schema.Builder schema = RegionForTest.schema()
        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
        .addIndexes(RegionForTest.index(2, "by_s", true, 4))
        .addIndexes(RegionForTest.index(3, "by_n", true, 2));
    if (mode.nulls) {
      schema.addIndexes(RegionForTest.index(4, "by_nb", false, 2, 3))
          .addIndexes(RegionForTest.index(5, "by_ba", false, 3, 1))
          .addIndexes(RegionForTest.index(6, "by_ab", true, 1, 3));
    }
    int versions = new int[] {1, 1, 2, 5}[random.nextInt(4)];
    List<String> history = new ArrayList<>();
    int over = 0;
    try (RegionForTest test =
        new RegionForTest(RegionForTest.descriptor(schema.build(), versions), new byte[0], new byte[0])) {
      RegionServerState.INSTANCE.openForTest(test.observer().indexed());
      for (int i = 0; i < OPERATIONS; ++i) {
        if (!mode.sameMillisecond || random.nextInt(3) == 0) clock.now += 1 + random.nextInt(3);
        history.add(step(test, random, mode));
        over = check(test, seed, history);
        if (i % 12 == 0 || i == OPERATIONS - 1) agreesWithTheChecker(test, seed, mode, history);
      }
    }
    return over;
  }

  private static byte[] row(Random random) {
    return Bytes.toBytes("r" + random.nextInt(4));
  }

  private long timestamp(Random random, Mode mode) {
    if (!mode.clientTimestamps || random.nextInt(3) == 0) return HConstants.LATEST_TIMESTAMP;
    return random.nextInt(4) == 0 ? clock.now + random.nextInt(3) : 1_700_000_000_000L + random.nextInt(6);
  }

  private Mutation mutation(byte[] row, Random random, Mode mode) {
    long timestamp = timestamp(random, mode);
    Mutation mutation;
    if (random.nextInt(5) < 3) {
      Put put = new Put(row);
      if (random.nextInt(2) == 0) put.addColumn(RegionForTest.F, Bytes.toBytes("a"), timestamp, value(random));
      if (random.nextInt(3) == 0) put.addColumn(RegionForTest.G, Bytes.toBytes("b"), timestamp, value(random));
      if (random.nextInt(3) == 0) {
        put.addColumn(RegionForTest.F, Bytes.toBytes("n"), timestamp(random, mode), Bytes.toBytes((long) random.nextInt(3)));
      }
      if (random.nextInt(6) == 0) put.addColumn(RegionForTest.F, Bytes.toBytes("s"), timestamp, value(random));
      if (put.isEmpty()) put.addColumn(RegionForTest.F, Bytes.toBytes("other"), timestamp, value(random));
      mutation = put;
    } else {
      Delete delete = new Delete(row);
      byte[] qualifier = Bytes.toBytes(new String[] {"a", "n", "s"}[random.nextInt(3)]);
      switch (random.nextInt(7)) {
        case 0:
          break; // the whole row
        case 1:
          delete.addColumn(RegionForTest.F, qualifier, timestamp);
          break;
        case 2:
          delete.addColumns(RegionForTest.F, qualifier, timestamp);
          break;
        case 3:
          delete.addFamily(RegionForTest.F, timestamp);
          break;
        case 4:
          delete.addFamilyVersion(RegionForTest.F,
              timestamp == HConstants.LATEST_TIMESTAMP ? clock.now - random.nextInt(3) : timestamp);
          break;
        case 5:
          delete.addColumn(RegionForTest.F, qualifier); // the newest version
          break;
        default:
          delete.addColumns(RegionForTest.G, Bytes.toBytes("b"), timestamp);
      }
      mutation = delete;
    }
    if (random.nextInt(8) == 0) mutation.setDurability(Durability.SKIP_WAL);
    return mutation;
  }

  private static String text(Mutation mutation) {
    StringBuilder out = new StringBuilder(Bytes.toString(mutation.getRow()));
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
    switch (random.nextInt(20)) {
      case 0:
        test.region.flush(true);
        return "flush";
      case 1:
        for (HStore store : test.region.getStores()) {
          if (random.nextInt(2) == 0) test.region.flushcache(Arrays.asList(store.getColumnFamilyDescriptor().getName()),
              false, org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker.DUMMY);
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
        RegionServerState.INSTANCE.closeForTest(test.observer().indexed());
        test.reopen();
        RegionServerState.INSTANCE.openForTest(test.observer().indexed());
        return "reopen";
      case 5: {
        Increment increment = new Increment(row).addColumn(RegionForTest.F, Bytes.toBytes("n"), 1 + random.nextInt(2));
        try {
          test.region.increment(increment);
        } catch (org.apache.hadoop.hbase.DoNotRetryIOException e) {
          return "an increment of what is no number";
        }
        return "increment " + Bytes.toString(row);
      }
      case 6:
        test.region.append(new Append(row).addColumn(RegionForTest.F, Bytes.toBytes("s"), value(random)));
        return "append " + Bytes.toString(row);
      case 7: {
        RowMutations all = new RowMutations(row);
        List<String> said = new ArrayList<>();
        for (int i = 0; i <= random.nextInt(3); ++i) all.add(mutation(row, random, mode));
        test.region.mutateRow(all);
        for (Mutation mutation : all.getMutations()) said.add(text(mutation));
        return "row mutations " + said;
      }
      case 8: {
        Mutation mutation = mutation(row, random, mode);
        CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row).ifMatches(RegionForTest.F, Bytes.toBytes("a"),
            CompareOperator.EQUAL, value(random));
        test.region.checkAndMutate(mutation instanceof Put ? check.build((Put) mutation) : check.build((Delete) mutation));
        return "check and " + text(mutation);
      }
      default: {
        Mutation[] batch = new Mutation[1 + random.nextInt(4)];
        List<String> said = new ArrayList<>();
        for (int i = 0; i < batch.length; ++i) {
          batch[i] = mutation(random.nextInt(3) == 0 ? row(random) : row, random, mode);
        }
        for (OperationStatus status : test.region.batchMutate(batch)) {
          assertEquals(HConstants.OperationStatusCode.SUCCESS, status.getOperationStatusCode(), status.getExceptionMsg());
        }
        for (Mutation mutation : batch) said.add(text(mutation));
        return "batch " + said;
      }
    }
  }

  /**
   * It says the same of what is right, and knows which entries too many are harmless. The filters have counted what stands;
   * an entry that became nobody's without a write, and somebody's again, twice.
   */
  private static void agreesWithTheChecker(RegionForTest test, long seed, Mode mode, List<String> history)
      throws Exception {
    IndexedRegion region = test.observer().indexed();
    tamis.pb.Cluster.RegionCheck report = Checker.check(region, rows -> true);
    String said = "seed " + seed + ": " + report + "\n" + String.join("\n", history);
    assertEquals(0, report.getMissingEntries() + report.getForeignEntries() + report.getMissingInFilter(), said);
    long counted = 0;
    for (IndexFilter filter : region.filters.values()) counted += filter.entries();
    assertTrue(mode.clientTimestamps ? counted >= report.getEntries() : counted == report.getEntries(),
        counted + " are counted, " + said);
  }

  /** Entries that no row wants. What a row wants is computed from what HBase shows of it, and from nothing else. */
  private int check(RegionForTest test, long seed, List<String> history) throws IOException {
    IndexedRegion indexed = test.observer().indexed();
    Schema schema = indexed.table.schema;
    Set<Key> wanted = new LinkedHashSet<>();
    for (List<Cell> cells : test.scan(RegionForTest.F, RegionForTest.G)) {
      byte[] key = CellUtil.cloneRow(cells.get(0));
      Value[] row = new Value[schema.columns.length];
      assertTrue(KeyFormat.decode(schema, key, row));
      for (Cell cell : cells) {
        int column = indexed.table.columnOf(CellUtil.cloneFamily(cell), CellUtil.cloneQualifier(cell));
        if (column < 0) continue;
        row[column] = schema.columns[column].encoding.decode(schema.columns[column].type, CellUtil.cloneValue(cell));
      }
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
