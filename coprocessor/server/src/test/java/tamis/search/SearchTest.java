package tamis.search;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.hbase.RegionForTest;
import tamis.index.BatchContext;
import tamis.index.IndexBuilder;
import tamis.index.Mutator;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/** Our own writes and searches on a real region, against a map. */
public class SearchTest {
  private static final int A = 1;
  private static final int N = 2;
  private static final int B = 3;

  private static Table.Schema schema(boolean marker) {
    Table.Schema.Builder schema = RegionForTest.schema()
                                      .addIndexes(RegionForTest.index(1, "by_a", true, A))
                                      .addIndexes(RegionForTest.index(2, "by_n", false, N))
                                      .addIndexes(RegionForTest.index(3, "by_b", true, B));
    if (marker) schema.setMarker(Table.CellName.newBuilder().setFamily(ByteString.copyFrom(RegionForTest.F)));
    return schema.build();
  }

  static Table.Value value(Value value) {
    Table.Value.Builder out = Table.Value.newBuilder();
    if (value == null) return out.build();
    return value.type() == tamis.table.Type.INT64 ? out.setInt64(value.number()).build()
                                                  : out.setText(ByteString.copyFrom(value.bytes())).build();
  }

  public static Table.Predicate compare(int column, Table.Predicate.Op op, Value value) {
    return Table.Predicate.newBuilder()
        .setKind(Table.Predicate.Kind.COMPARE)
        .setOp(op)
        .setColumn(column)
        .addValues(value(value))
        .build();
  }

  static byte[] encoded(Value value) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(value, out);
    return out.toBytes();
  }

  public static Cluster.IndexRange equal(Value value) {
    return Cluster.IndexRange.newBuilder()
        .setLow(ByteString.copyFrom(encoded(value)))
        .setHigh(ByteString.copyFrom(Key.prefixEnd(encoded(value))))
        .build();
  }

  public static Cluster.IndexStream stream(int index, Cluster.IndexRange... ranges) {
    return Cluster.IndexStream.newBuilder()
        .setIndexId(index)
        .setEquality(true)
        .addAllRanges(Arrays.asList(ranges))
        .build();
  }

  private static Value textOf(Random random) {
    return Value.text("v" + random.nextInt(4));
  }

  private static Cluster.RegionMutateResult mutate(IndexedRegion region, Cluster.Mutation... mutations) {
    return Mutator.mutate(region,
        Cluster.RegionMutations.newBuilder().setRegionId(region.id).addAllMutations(Arrays.asList(mutations)).build(),
        1);
  }

  private static Cluster.Mutation.Builder put(Cluster.Mutation.Kind kind, byte[] key, Schema schema, Value... row) {
    return Cluster.Mutation.newBuilder()
        .setKind(kind)
        .setKey(ByteString.copyFrom(key))
        .setRow(ByteString.copyFrom(Codec.encodeRow(schema, row, null)));
  }

  /** All pages of one search: keys in the order they came, each once. */
  private static List<String> search(IndexedRegion region, Random random, Cluster.Branch... branches)
      throws StatusException {
    Cluster.SearchRequest request = Cluster.SearchRequest.newBuilder()
                                        .setTableId(region.table.tableId)
                                        .setSchemaVersion(1)
                                        .addAllBranches(Arrays.asList(branches))
                                        .addColumns(2)
                                        .build();
    List<String> keys = new ArrayList<>();
    ByteString resume = ByteString.EMPTY;
    for (int page = 0; page == 0 || !resume.isEmpty(); ++page) {
      assertTrue(page < 1000, "a search does not come to its end");
      BranchStreams.Choice choice = new BranchStreams.Choice(); // one page this way, the next one another
      choice.probeEntries = random.nextInt(3) * 8;
      choice.byCost = random.nextInt(4) > 0;
      choice.join = random.nextBoolean();
      Searcher searcher = new Searcher(request, region.table, "here", choice);
      Cluster.RangeResult result =
          searcher.search(region, Cluster.SearchRange.newBuilder().setRegionId(region.id).setResume(resume).build(),
              random.nextInt(8) == 0 ? 300 : 1 + random.nextInt(3),
              System.nanoTime() + (random.nextInt(4) == 0 ? -1 : TimeUnit.MINUTES.toNanos(1)));
      assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
      for (Cluster.FoundRow row : result.getRowsList()) keys.add(row.getKey().toStringUtf8());
      resume = result.getResume();
    }
    return keys;
  }

  /** Five rows r0, r1, ... in which n is 5, and 7 under a tombstone, which has an entry as well. */
  private static RegionForTest rowsWithTombstones() throws Exception {
    RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(false), 3));
    byte[] n = Bytes.toBytes("n");
    for (int i = 0; i < 5; ++i) {
      byte[] row = Bytes.toBytes("r" + i);
      test.region.put(new Put(row).addColumn(RegionForTest.F, n, 100, Bytes.toBytes(5L)));
      test.region.delete(new Delete(row).addColumn(RegionForTest.F, n, 150));
      test.region.put(new Put(row).addColumn(RegionForTest.F, n, 150, Bytes.toBytes(7L)));
    }
    return test;
  }

  private static List<String> searchBehindTombstones() throws Exception {
    try (RegionForTest test = rowsWithTombstones()) {
      Cluster.IndexStream range = Cluster.IndexStream.newBuilder()
                                      .setIndexId(2)
                                      .addRanges(Cluster.IndexRange.newBuilder()
                                                     .setLow(ByteString.copyFrom(encoded(Value.int64(0))))
                                                     .setHigh(ByteString.copyFrom(encoded(Value.int64(10)))))
                                      .build();
      Cluster.Branch branch = Cluster.Branch.newBuilder()
                                  .addStreams(range)
                                  .setPredicate(compare(N, Table.Predicate.Op.GE, Value.int64(0)).toByteString())
                                  .build();
      List<String> keys = search(test.indexed(), new Random(1), branch);
      Collections.sort(keys);
      return keys;
    }
  }

  @Test
  void aRowWithSeveralEntriesIsReturnedOnce() throws Exception {
    assertEquals(Arrays.asList("r0", "r1", "r2", "r3", "r4"), searchBehindTombstones());
    Fault.only(Fault.ANY_ENTRY_NAMES_ITS_ROW);
    try {
      assertTrue(searchBehindTombstones().size() > 5);
    } finally {
      Fault.only();
    }
  }

  /** The counts of the groups of rows with one n, of those that the entries of these values lead to. */
  private static List<Long> countsOfN(IndexedRegion region, long... values) throws Exception {
    Cluster.IndexRange[] ranges =
        Arrays.stream(values).mapToObj(value -> equal(Value.int64(value))).toArray(Cluster.IndexRange[] ::new);
    Table.Predicate all = compare(N, Table.Predicate.Op.GE, Value.int64(0));
    Cluster.SearchRequest request =
        Cluster.SearchRequest.newBuilder()
            .setGroups(true)
            .addColumns(region.table.schema.columns[N].id)
            .addBranches(Cluster.Branch.newBuilder().addStreams(stream(2, ranges)).setPredicate(all.toByteString()))
            .build();
    Cluster.RangeResult page = new Searcher(request, region.table, "here")
                                   .search(region, Cluster.SearchRange.newBuilder().setRegionId(region.id).build(), 100,
                                       System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
    assertEquals("", page.getError().getMessage());
    List<Long> counts = new ArrayList<>();
    for (Cluster.FoundRow group : page.getRowsList()) counts.add(group.getCount());
    return counts;
  }

  @Test
  void aRowWithSeveralEntriesIsCountedOnceAsItShows() throws Exception {
    try (RegionForTest test = rowsWithTombstones()) {
      assertEquals(Arrays.asList(5L), countsOfN(test.indexed(), 5, 7));
      assertEquals(Arrays.asList(5L), countsOfN(test.indexed(), 7));
    }
  }

  @Test
  void aRequestHasOneToSoManyBranches() throws Exception {
    try (RegionForTest test = rowsWithTombstones()) {
      Table.Predicate all = Table.Predicate.newBuilder().setKind(Table.Predicate.Kind.TRUE).build();
      Cluster.Branch branch = Cluster.Branch.newBuilder().setPredicate(all.toByteString()).build();
      for (int count : new int[] {0, 1, 1024, 1025}) {
        Cluster.SearchRequest request =
            Cluster.SearchRequest.newBuilder().addAllBranches(Collections.nCopies(count, branch)).build();
        boolean isRefused = false;
        try {
          new Searcher(request, test.indexed().table, "here");
        } catch (StatusException e) {
          isRefused = true;
        }
        assertEquals(count < 1 || count > 1024, isRefused, count + " branches");
      }
    }
  }

  /**
   * Requests of one to four writes, often of one row: each sees what those before it left. The first answer that is not
   * the model's; empty: all are.
   */
  private static String writeRandomly(RegionForTest test, Random random, TreeMap<String, Value[]> model)
      throws Exception {
    IndexedRegion region = test.indexed();
    Schema schema = region.table.schema;
    for (int i = 0; i < 100; ++i) {
      List<Cluster.Mutation> mutations = new ArrayList<>();
      List<Cluster.Error.Code> expected = new ArrayList<>();
      String key = null;
      do {
        if (key == null || random.nextInt(3) == 0) key = "r" + random.nextInt(60);
        mutations.add(randomWrite(key, schema, random, model, expected));
      } while (mutations.size() < 4 && random.nextInt(3) == 0);
      Cluster.RegionMutateResult result = mutate(region, mutations.toArray(new Cluster.Mutation[0]));
      if (result.hasError()) return result.getError().getMessage();
      for (int j = 0; j < expected.size(); ++j) {
        Cluster.Error answer = result.getResults(j);
        if (answer.getCode() != expected.get(j)) {
          return "write " + j + " of request " + i + " was answered with " + answer + ", not " + expected.get(j);
        }
      }
      if (random.nextInt(40) == 0) test.region.flush(true);
    }
    return "";
  }

  private static Cluster.Mutation randomWrite(
      String key, Schema schema, Random random, TreeMap<String, Value[]> model, List<Cluster.Error.Code> expected) {
    Value[] row = {null, random.nextInt(4) == 0 ? null : textOf(random),
        random.nextInt(4) == 0 ? null : Value.int64(random.nextInt(5)), random.nextInt(4) == 0 ? null : textOf(random),
        null};
    byte[] bytes = Bytes.toBytes(key);
    boolean there = model.containsKey(key);
    Cluster.Error.Code refused = Cluster.Error.Code.OK;
    Cluster.Mutation.Builder mutation;
    switch (random.nextInt(5)) {
      case 0:
        mutation = put(Cluster.Mutation.Kind.DELETE, bytes, schema, row).clearRow();
        model.remove(key);
        break;
      case 1:
        mutation = put(Cluster.Mutation.Kind.INSERT_IF_ABSENT, bytes, schema, row);
        if (there) refused = Cluster.Error.Code.ALREADY_EXISTS;
        else model.put(key, row);
        break;
      case 2:
        mutation = put(Cluster.Mutation.Kind.UPDATE, bytes, schema, row).addColumns(2);
        if (there) model.get(key)[A] = row[A];
        else refused = Cluster.Error.Code.NOT_FOUND;
        break;
      case 3: {
        Value n = Value.int64(random.nextInt(5));
        mutation = put(Cluster.Mutation.Kind.PUT, bytes, schema, row)
                       .setCondition(compare(N, Table.Predicate.Op.GE, n).toByteString());
        boolean holds = there && model.get(key)[N] != null && model.get(key)[N].compareTo(n) >= 0;
        if (holds) model.put(key, row);
        else refused = Cluster.Error.Code.FAILED_PRECONDITION;
        break;
      }
      default:
        mutation = put(Cluster.Mutation.Kind.PUT, bytes, schema, row);
        model.put(key, row);
    }
    expected.add(refused);
    return mutation.build();
  }

  @Test
  void writesOfARequestThatAreJudgedByTheFormerRowAreNoticed() throws Exception {
    Fault.only(Fault.FORMER_ROW_JUDGED);
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(true), 1))) {
      assertFalse(writeRandomly(test, new Random(1), new TreeMap<>()).isEmpty());
    } finally {
      Fault.only();
    }
  }

  @Test
  void everyPlanFindsWhatMatchesAndEachRowOnce() throws Exception {
    for (long seed = 1; seed <= 6; ++seed) {
      Random random = new Random(seed);
      try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(true), 1))) {
        IndexedRegion region = test.indexed();
        Schema schema = region.table.schema;
        TreeMap<String, Value[]> model = new TreeMap<>();
        assertEquals("", writeRandomly(test, random, model), "seed " + seed);
        for (int i = 0; i < 60; ++i) {
          if (random.nextInt(3) == 0) {
            region.setComplete(random.nextBoolean() ? region.indexIds() : Collections.singletonList(2));
          }
          Value a = textOf(random);
          Value b = textOf(random);
          Value low = Value.int64(random.nextInt(5));
          Table.Predicate isA = compare(A, Table.Predicate.Op.EQ, a);
          Table.Predicate isB = compare(B, Table.Predicate.Op.EQ, b);
          Cluster.Branch both = Cluster.Branch.newBuilder()
                                    .addStreams(stream(1, equal(a)))
                                    .addStreams(stream(3, equal(b)))
                                    .setPredicate(Table.Predicate.newBuilder()
                                                      .setKind(Table.Predicate.Kind.AND)
                                                      .addChildren(isA)
                                                      .addChildren(isB)
                                                      .build()
                                                      .toByteString())
                                    .build();
          Cluster.Branch one =
              Cluster.Branch.newBuilder().addStreams(stream(1, equal(a))).setPredicate(isA.toByteString()).build();
          Cluster.Branch range = Cluster.Branch.newBuilder()
                                     .addStreams(Cluster.IndexStream.newBuilder().setIndexId(2).addRanges(
                                         Cluster.IndexRange.newBuilder().setLow(ByteString.copyFrom(encoded(low)))))
                                     .setPredicate(compare(N, Table.Predicate.Op.GE, low).toByteString())
                                     .build();
          Cluster.Branch all = Cluster.Branch.newBuilder()
                                   .setPredicate(Table.Predicate.newBuilder()
                                                     .setKind(Table.Predicate.Kind.IS_NULL)
                                                     .setColumn(N)
                                                     .build()
                                                     .toByteString())
                                   .build();
          Cluster.Branch three = Cluster.Branch.newBuilder()
                                     .addAllStreams(range.getStreamsList())
                                     .addAllStreams(both.getStreamsList())
                                     .setPredicate(Table.Predicate.newBuilder()
                                                       .setKind(Table.Predicate.Kind.AND)
                                                       .addChildren(isA)
                                                       .addChildren(isB)
                                                       .addChildren(compare(N, Table.Predicate.Op.GE, low))
                                                       .build()
                                                       .toByteString())
                                     .build();
          TreeSet<String> expected = new TreeSet<>();
          List<String> found;
          int plan = random.nextInt(6);
          for (java.util.Map.Entry<String, Value[]> entry : model.entrySet()) {
            Value[] row = entry.getValue();
            boolean matchesA = a.equals(row[A]);
            boolean matchesRange = row[N] != null && row[N].compareTo(low) >= 0;
            boolean matchesBoth = matchesA && b.equals(row[B]);
            boolean matches = plan == 0 ? matchesBoth
                : plan == 1             ? matchesA
                : plan == 5             ? matchesBoth && matchesRange
                : plan == 2             ? matchesRange
                : plan == 3             ? row[N] == null
                                        : matchesA || matchesRange;
            if (matches) expected.add(entry.getKey());
          }
          switch (plan) {
            case 0:
              found = search(region, random, both);
              break;
            case 1:
              found = search(region, random, one);
              break;
            case 2:
              found = search(region, random, range);
              break;
            case 3:
              found = search(region, random, all);
              break;
            case 5:
              found = search(region, random, three);
              break;
            default:
              found = search(region, random, one, range);
          }
          assertEquals(
              found.size(), new TreeSet<>(found).size(), "seed " + seed + " plan " + plan + ": a row came twice");
          assertEquals(expected, new TreeSet<>(found), "seed " + seed + " plan " + plan);
        }
      }
    }
  }

  @Test
  void aRowWithoutValuesNeedsAMarker() throws Exception {
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(false), 1))) {
      IndexedRegion region = test.indexed();
      Schema schema = region.table.schema;
      Value[] empty = new Value[5];
      Value[] row = {null, Value.text("x"), null, null, null};
      byte[] key = Bytes.toBytes("r");
      assertEquals(Cluster.Error.Code.INVALID_ARGUMENT,
          mutate(region, put(Cluster.Mutation.Kind.PUT, key, schema, empty).build()).getResults(0).getCode());
      assertEquals(Cluster.Error.Code.OK,
          mutate(region, put(Cluster.Mutation.Kind.PUT, key, schema, row).build()).getResults(0).getCode());
      assertEquals(Cluster.Error.Code.INVALID_ARGUMENT,
          mutate(region, put(Cluster.Mutation.Kind.UPDATE, key, schema, empty).addColumns(2).build())
              .getResults(0)
              .getCode());
      // Several conditions in one request: each sees the effect of those before it.
      Cluster.RegionMutateResult result =
          mutate(region, put(Cluster.Mutation.Kind.DELETE, key, schema, row).clearRow().build(),
              put(Cluster.Mutation.Kind.INSERT_IF_ABSENT, key, schema, row).build(),
              put(Cluster.Mutation.Kind.INSERT_IF_ABSENT, key, schema, row).build());
      assertEquals(Cluster.Error.Code.OK, result.getResults(1).getCode(), result.getResults(1).getMessage());
      assertEquals(Cluster.Error.Code.ALREADY_EXISTS, result.getResults(2).getCode());
      assertEquals(Collections.singletonList("r"),
          search(region, new Random(1),
              Cluster.Branch.newBuilder()
                  .addStreams(stream(1, equal(Value.text("x"))))
                  .setPredicate(compare(A, Table.Predicate.Op.EQ, Value.text("x")).toByteString())
                  .build()));
    }
  }

  /** Entries come beside a write of their row, and not beside one that is refused. */
  @Test
  void aRefusedWriteTakesNothingOfTheOneBeforeIt() throws Exception {
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema(false), 1))) {
      IndexedRegion region = test.indexed();
      Schema schema = region.table.schema;
      byte[] key = Bytes.toBytes("r");
      Cluster.RegionMutateResult result = mutate(region,
          put(Cluster.Mutation.Kind.INSERT_IF_ABSENT, key, schema, null, Value.text("x"), null, null, null).build(),
          put(Cluster.Mutation.Kind.INSERT_IF_ABSENT, key, schema, null, Value.text("y"), null, null, null).build());
      assertEquals(Cluster.Error.Code.OK, result.getResults(0).getCode(), result.getResults(0).getMessage());
      assertEquals(Cluster.Error.Code.ALREADY_EXISTS, result.getResults(1).getCode());
      assertEquals(Collections.singletonList("r"),
          search(region, new Random(1),
              Cluster.Branch.newBuilder()
                  .addStreams(stream(1, equal(Value.text("x"))))
                  .setPredicate(compare(A, Table.Predicate.Op.EQ, Value.text("x")).toByteString())
                  .build()));
    }
  }

  /** The row exists by any of its cells. */
  @Test
  void anIndexOnTheKeyAloneHasEveryRow() throws Exception {
    Table.Schema schema =
        schema(false).toBuilder().clearIndexes().addIndexes(RegionForTest.index(1, "by_k", true, 0)).build();
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema, 1))) {
      test.region.put(new org.apache.hadoop.hbase.client.Put(Bytes.toBytes("r"))
                          .addColumn(RegionForTest.F, Bytes.toBytes("unmapped"), Bytes.toBytes("v")));
      assertEquals(2, test.entries().size()); // and the marker
      test.region.delete(new org.apache.hadoop.hbase.client.Delete(Bytes.toBytes("r")));
      assertEquals(1, test.entries().size());
    }
  }

  @Test
  void aTableWithRowsGetsItsEntriesAndKeepsThemThroughReopening() throws Exception {
    Table.Schema without = schema(false).toBuilder().clearIndexes().build();
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(without, 1))) {
      for (int i = 0; i < 250; ++i) {
        test.region.put(new org.apache.hadoop.hbase.client.Put(Bytes.toBytes("r" + i))
                            .addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("v" + i % 7)));
      }
      assertEquals(0, test.entries().size());
      test.reopen(RegionForTest.descriptor(schema(false), 1));
      assertEquals(3, test.indexed().complete().size());
      assertEquals(250 + 250 + 3, test.entries().size()); // by_a, by_n (NULL), markers
      assertEquals(3, IndexBuilder.markedComplete(test.indexed()).size());
      test.reopen();
      assertEquals(3, IndexBuilder.markedComplete(test.indexed()).size());
      assertFalse(test.indexed().complete().isEmpty());
    }
  }

  @Test
  void compactionsDropWhatIsNoEntryOfTheRegion() throws Exception {
    try (RegionForTest test =
             new RegionForTest(RegionForTest.descriptor(schema(false), 1), new byte[0], Bytes.toBytes("s"))) {
      IndexedRegion region = test.indexed();
      test.region.put(new org.apache.hadoop.hbase.client.Put(Bytes.toBytes("r1"))
                          .addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("v")));
      byte[] values = encoded(Value.text("v"));
      byte[][] garbage = {region.keys.entry(1, values, Bytes.toBytes("t")), // an entry of a row after the region's end
          region.keys.entry(9, values, Bytes.toBytes("r1")), // an entry of an index that is no more
          Key.concat(Bytes.toBytes("q"), region.keys.entry(1, values, Bytes.toBytes("r1")))}; // another region's
      List<byte[]> before = test.entries();
      BatchContext.next().writer = BatchContext.Writer.INDEX;
      for (byte[] key : garbage) {
        test.region.put(new org.apache.hadoop.hbase.client.Put(key).addColumn(
            IndexedTable.FAMILY, IndexedTable.QUALIFIER, new byte[0]));
      }
      BatchContext.next().writer = BatchContext.Writer.CLIENT;
      assertEquals(before.size() + garbage.length, test.entries().size());
      test.region.flush(true);
      test.region.compact(true);
      assertEquals(before.size(), test.entries().size());
      for (int i = 0; i < before.size(); ++i) assertTrue(Arrays.equals(before.get(i), test.entries().get(i)));
    }
  }
}
