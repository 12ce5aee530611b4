package tamis.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.region.IndexedRegion;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Codec;
import tamis.table.Value;

/** Rows in which other clients left a cell or a delete marker at the last time stamps that there are. */
class LastTimestampsTest {
  private static final byte[] ROW = Bytes.toBytes("r");
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] N = Bytes.toBytes("n");
  private static final long LAST = Long.MAX_VALUE - 1;

  private RegionForTest test;
  private IndexedRegion region;

  @BeforeEach
  void openRegion() throws Exception {
    test = RegionForTest.of(1, RegionForTest.index(1, "by_a", true, 1), RegionForTest.index(2, "by_n", false, 2));
    region = test.indexed();
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    test.close();
  }

  private Cluster.Mutation mutation(Cluster.Mutation.Kind kind, String a) {
    Cluster.Mutation.Builder mutation = Cluster.Mutation.newBuilder().setKind(kind).setKey(ByteString.copyFrom(ROW));
    if (kind == Cluster.Mutation.Kind.DELETE) return mutation.build();
    if (kind == Cluster.Mutation.Kind.UPDATE) mutation.addColumns(2);
    return mutation.setRow(ByteString.copyFrom(row(a))).build();
  }

  private byte[] row(String a) {
    Value[] values = new Value[5];
    values[0] = Value.bytes(ROW);
    if (a != null) values[1] = Value.text(a);
    return Codec.encodeRow(region.table.schema, values, null);
  }

  private Cluster.Error write(Cluster.Mutation... mutations) {
    Cluster.RegionMutations.Builder request = Cluster.RegionMutations.newBuilder().setRegionId(region.id);
    for (Cluster.Mutation mutation : mutations) request.addMutations(mutation);
    Cluster.RegionMutateResult result = Mutator.mutate(region, request.build(), 1);
    assertEquals(Cluster.Error.Code.OK, result.getError().getCode(), result.getError().getMessage());
    return result.getResults(mutations.length - 1);
  }

  private void written(Cluster.Mutation... mutations) {
    Cluster.Error outcome = write(mutations);
    assertEquals(Cluster.Error.Code.OK, outcome.getCode(), outcome.getMessage());
  }

  private void refused(String place, Cluster.Mutation... mutations) {
    Cluster.Error outcome = write(mutations);
    assertEquals(Cluster.Error.Code.INVALID_ARGUMENT, outcome.getCode(), outcome.getMessage());
    String why = outcome.getMessage();
    assertTrue(why.contains("row \"r\"") && why.contains(place) && why.contains("" + LAST), why);
  }

  private byte[] a() throws IOException {
    return test.region.get(new Get(ROW)).getValue(RegionForTest.F, A);
  }

  private void agree() throws Exception {
    Cluster.RegionCheck check = Checker.check(region, rows -> true);
    assertEquals(0, check.getMissingEntries() + check.getForeignEntries(), check.toString());
  }

  private void putAt(long timestamp) throws IOException {
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, timestamp, Bytes.toBytes("old")));
  }

  @Test
  void aCellAtTheLastTimeStampHasEveryWriteOverItRefused() throws Exception {
    putAt(LAST);
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, N, Bytes.toBytes(5L)));
    String place = "a cell in column \"f:a\"";
    refused(place, mutation(Cluster.Mutation.Kind.PUT, "new"));
    refused(place, mutation(Cluster.Mutation.Kind.UPDATE, "new"));
    refused(place, mutation(Cluster.Mutation.Kind.UPDATE, null));
    assertArrayEquals(Bytes.toBytes("old"), a());
    agree();
  }

  @Test
  void aDeleteOverItIsSeenAndTheInsertBehindItIsRefused() throws Exception {
    putAt(LAST);
    written(mutation(Cluster.Mutation.Kind.DELETE, null));
    assertNull(a());
    agree();
    refused("a delete marker in family \"f\"", mutation(Cluster.Mutation.Kind.INSERT_IF_ABSENT, "new"));
    refused("a delete marker in family \"f\"", mutation(Cluster.Mutation.Kind.PUT, "new"));
    written(mutation(Cluster.Mutation.Kind.DELETE, null));
    agree();
    Fault.only(Fault.LAST_TIMESTAMPS_TAKEN);
    written(mutation(Cluster.Mutation.Kind.INSERT_IF_ABSENT, "new")); // acknowledged, and lost
    assertNull(a());
  }

  @Test
  void aCellBelowItLeavesRoomForADeleteAndAnInsert() throws Exception {
    putAt(LAST - 1);
    written(mutation(Cluster.Mutation.Kind.DELETE, null));
    assertNull(a());
    written(mutation(Cluster.Mutation.Kind.INSERT_IF_ABSENT, "new"));
    assertArrayEquals(Bytes.toBytes("new"), a());
    refused("a cell in column \"f:a\"", mutation(Cluster.Mutation.Kind.PUT, "newer"));
    agree();
  }

  @Test
  void theWritesOfOneBatchAreRefusedOneByOne() throws Exception {
    putAt(LAST - 1);
    refused("a cell in column \"f:a\"", mutation(Cluster.Mutation.Kind.PUT, "one"),
        mutation(Cluster.Mutation.Kind.PUT, "two"));
    assertArrayEquals(Bytes.toBytes("one"), a());
    refused("a delete marker in family \"f\"", mutation(Cluster.Mutation.Kind.DELETE, null),
        mutation(Cluster.Mutation.Kind.PUT, "three"));
    assertNull(a());
    agree();
  }

  @Test
  void aDeleteMarkerOfAnyKindIsSeen() throws Exception {
    Delete[] deletes = {new Delete(ROW).addFamily(RegionForTest.F, LAST),
        new Delete(ROW).addColumns(RegionForTest.F, A, LAST), new Delete(ROW).addColumn(RegionForTest.F, A, LAST),
        new Delete(ROW).addFamilyVersion(RegionForTest.F, LAST),
        new Delete(ROW).addColumns(RegionForTest.F, Bytes.toBytes("unmapped"), LAST)};
    for (Delete delete : deletes) {
      test.region.delete(delete);
      for (int flushed = 0; flushed < 2; ++flushed) {
        refused("a delete marker in", mutation(Cluster.Mutation.Kind.INSERT_IF_ABSENT, "new"));
        test.region.flush(true);
      }
      test.reopen();
      region = test.indexed();
      refused("a delete marker in", mutation(Cluster.Mutation.Kind.PUT, "new"));
      test.region.compact(true);
      written(mutation(Cluster.Mutation.Kind.PUT, "new"));
      assertArrayEquals(Bytes.toBytes("new"), a());
      written(mutation(Cluster.Mutation.Kind.DELETE, null));
      test.region.flush(true);
      test.region.compact(true);
      agree();
    }
  }

  private interface Write {
    void into(RegionForTest test) throws Exception;
  }

  private void clientRefused(Write write) throws Exception {
    String before = test.raw(ROW);
    DoNotRetryIOException e = assertThrows(DoNotRetryIOException.class, () -> write.into(test));
    assertTrue(
        e.getMessage().contains("row \"r\"") && e.getMessage().contains("\"f:") && e.getMessage().contains("" + LAST),
        e.toString());
    assertEquals(before, test.raw(ROW));
    agree();
  }

  @Test
  void aClientsWriteBehindALastDeleteMarkerIsRefused() throws Exception {
    test.region.delete(new Delete(ROW).addFamily(RegionForTest.F, LAST));
    clientRefused(t -> t.region.put(new Put(ROW).addColumn(RegionForTest.F, A, A)));
    clientRefused(t -> t.region.put(new Put(ROW).addColumn(RegionForTest.F, A, LAST, A)));
    clientRefused(t -> t.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1)));
    clientRefused(t -> t.region.append(new Append(ROW).addColumn(RegionForTest.F, A, A)));
    clientRefused(t
        -> t.region.checkAndMutate(CheckAndMutate.newBuilder(ROW)
                                       .ifNotExists(RegionForTest.F, A)
                                       .build(new Put(ROW).addColumn(RegionForTest.F, A, A))));
    clientRefused(t
        -> t.region.mutateRow(new RowMutations(ROW)
                                  .add((Mutation) new Put(ROW).addColumn(RegionForTest.F, A, A))
                                  .add((Mutation) new Put(ROW).addColumn(RegionForTest.G, A, A))));
    clientRefused(t -> t.region.batchMutate(new Mutation[] {new Put(ROW).addColumn(RegionForTest.F, A, A)}));
    // Other rows, families and single versions are not masked.
    test.region.put(new Put(ROW).addColumn(RegionForTest.G, Bytes.toBytes("b"), A));
    test.region.put(new Put(Bytes.toBytes("r2")).addColumn(RegionForTest.F, A, A));
    test.region.delete(new Delete(Bytes.toBytes("r2")).addColumn(RegionForTest.F, A, LAST));
    test.region.put(new Put(Bytes.toBytes("r2")).addColumn(RegionForTest.F, A, LAST - 1, A));
    Fault.only(Fault.LAST_TIMESTAMPS_TAKEN);
    test.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1)); // acknowledged, and lost
    assertFalse(test.region.get(new Get(ROW)).containsColumn(RegionForTest.F, N));
  }

  /** A client's own order of versions is HBase's affair. */
  @Test
  void aClientsOlderVersionIsNotRefused() throws Exception {
    putAt(LAST);
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, 1, A));
    test.region.delete(new Delete(ROW).addFamily(RegionForTest.F, 1000));
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, 500, A));
    assertArrayEquals(Bytes.toBytes("old"), a());
    agree();
  }

  @Test
  void incrementBeyondTheLastTimeStampIsRefused() throws Exception {
    test.region.put(
        new Put(ROW).addColumn(RegionForTest.F, A, LAST, A).addColumn(RegionForTest.F, N, LAST, Bytes.toBytes(5L)));
    for (int i = 0; i < 3; ++i) {
      clientRefused(t -> t.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1)));
      clientRefused(t -> t.region.append(new Append(ROW).addColumn(RegionForTest.F, A, A)));
    }
    assertEquals(5, Bytes.toLong(test.region.get(new Get(ROW)).getValue(RegionForTest.F, N)));
  }

  @Test
  void aConditionalWriteOfAClientMayDeleteTheRow() throws Exception {
    putAt(LAST);
    assertTrue(test.region
                   .checkAndMutate(CheckAndMutate.newBuilder(ROW)
                                       .ifMatches(RegionForTest.F, A, CompareOperator.EQUAL, Bytes.toBytes("old"))
                                       .build(new Delete(ROW).addFamily(RegionForTest.F, LAST)))
                   .isSuccess());
    assertNull(a());
    agree();
  }
}
