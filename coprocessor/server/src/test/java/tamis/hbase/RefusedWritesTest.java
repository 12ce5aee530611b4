package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.protobuf.Message;
import java.io.IOException;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.BaseRowProcessor;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.security.visibility.CellVisibility;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.index.Checker;
import tamis.region.IndexedTable;

/**
 * Writes that a client may not send to an indexed table: they are refused with an error that is not retried, and
 * nothing is done.
 */
class RefusedWritesTest {
  private static final byte[] ROW = Bytes.toBytes("r");
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] N = Bytes.toBytes("n");
  private static final byte[] S = Bytes.toBytes("s");

  private RegionForTest test;

  /** A write of one row. */
  private interface Write {
    void into(RegionForTest test) throws Exception;
  }

  @BeforeEach
  void openRegion() throws Exception {
    test = new RegionForTest(
        RegionForTest.descriptor(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1),
        new byte[0], new byte[0]);
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, Bytes.toBytes("before")));
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    Fault.only();
    test.close();
  }

  private void refused(String why, Write write) throws Exception {
    String before = test.raw(ROW);
    int entries = test.entries().size();
    DoNotRetryIOException e = assertThrows(DoNotRetryIOException.class, () -> write.into(test));
    assertTrue(e.getMessage().contains(why), e.toString());
    assertEquals(before, test.raw(ROW));
    assertEquals(entries, test.entries().size());
    // The next write finds no lock.
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, S, Bytes.toBytes("next")));
    assertArrayEquals(Bytes.toBytes("before"), test.region.get(new Get(ROW)).getValue(RegionForTest.F, A));
  }

  private static <M extends Mutation> M labelled(M mutation) {
    mutation.setCellVisibility(new CellVisibility("secret"));
    return mutation;
  }

  @Test
  void cellsHaveNoVisibilityLabels() throws Exception {
    String why = "visibility labels";
    refused(why, t -> t.region.put(labelled(new Put(ROW).addColumn(RegionForTest.F, A, A))));
    refused(why, t -> t.region.put(labelled(new Put(ROW).addColumn(RegionForTest.F, Bytes.toBytes("unmapped"), A))));
    refused(why, t -> t.region.delete(labelled(new Delete(ROW))));
    refused(why, t -> t.region.delete(labelled(new Delete(ROW).addColumns(RegionForTest.F, A))));
    refused(why, t -> t.region.increment(labelled(new Increment(ROW).addColumn(RegionForTest.F, N, 1))));
    refused(why, t -> t.region.append(labelled(new Append(ROW).addColumn(RegionForTest.F, A, A))));
    refused(why, t -> t.region.batchMutate(new Mutation[] {labelled(new Put(ROW).addColumn(RegionForTest.F, A, A))}));
  }

  @Test
  void cellsDoNotExpireOneByOne() throws Exception {
    String why = "expire one by one";
    refused(why, t -> t.region.put(new Put(ROW).addColumn(RegionForTest.F, A, A).setTTL(1000)));
    refused(why, t -> t.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1).setTTL(1000)));
    refused(why, t -> t.region.append(new Append(ROW).addColumn(RegionForTest.F, A, A).setTTL(1000)));
  }

  /** Models a jar that is older than the table: rows that come in would have no entries under the next one. */
  @Test
  void nothingComesIntoATableWhoseSchemaCannotBeRead() throws Exception {
    TableDescriptor good = test.region.getTableDescriptor();
    test.reopen(TableDescriptorBuilder.newBuilder(good).setValue(IndexedTable.SCHEMA, new byte[] {1, 2, 3}).build());
    Write[] writes = {
        t
        -> t.region.put(new Put(ROW).addColumn(RegionForTest.F, A, A)),
        t
        -> t.region.delete(new Delete(ROW)),
        t
        -> t.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1)),
        t
        -> t.region.getCoprocessorHost().preBulkLoadHFile(
            Collections.singletonList(new Pair<>(RegionForTest.F, "/somewhere"))),
    };
    for (Write write : writes) {
      DoNotRetryIOException e = assertThrows(DoNotRetryIOException.class, () -> write.into(test));
      assertTrue(e.getMessage().contains("cannot be read"), e.toString());
    }
    test.reopen(good);
    assertArrayEquals(Bytes.toBytes("before"), test.region.get(new Get(ROW)).getValue(RegionForTest.F, A));
  }

  /** Else the first write would find out, in its midst, and so would every one behind it. */
  @Test
  void nothingComesIntoATableWhereHBaseLacksAMethod() throws Exception {
    Fault.only(Fault.HBASE_LACKS_A_METHOD);
    test.reopen();
    Write[] writes = {
        t
        -> t.region.put(new Put(ROW).addColumn(RegionForTest.F, A, A)),
        t
        -> t.region.delete(new Delete(ROW)),
        t
        -> t.region.increment(new Increment(ROW).addColumn(RegionForTest.F, N, 1)),
        t
        -> t.region.append(new Append(ROW).addColumn(RegionForTest.F, A, A)),
        t
        -> t.region.getCoprocessorHost().preBulkLoadHFile(
            Collections.singletonList(new Pair<>(RegionForTest.F, "/somewhere"))),
        t
        -> t.region.processRowsWithLocks(new RowPut(RegionForTest.F, A)),
        t -> SchemaGuard.check(t.region.getTableDescriptor()),
    };
    for (Write write : writes) {
      DoNotRetryIOException e = assertThrows(DoNotRetryIOException.class, () -> write.into(test));
      assertTrue(e.getMessage().contains("Gone.method()void"), e.toString());
    }
    test.region.flush(true);
    Fault.only();
    test.reopen();
    assertArrayEquals(Bytes.toBytes("before"), test.region.get(new Get(ROW)).getValue(RegionForTest.F, A));
    assertEquals(0, Checker.check(test.indexed(), rows -> true).getMissingEntries());
  }

  private static Cell expiring(byte[] qualifier, byte[] value) {
    byte[] ttl = Bytes.toBytes(1000L);
    return new KeyValue(ROW, RegionForTest.F, qualifier, System.currentTimeMillis(), KeyValue.Type.Put, value,
        Collections.singletonList(new ArrayBackedTag(TagType.TTL_TAG_TYPE, ttl)));
  }

  /** Tags as replication brings them. */
  @Test
  void norByTagsOfTheirOwn() throws Exception {
    String why = "expire one by one";
    refused(why, t -> t.region.put(new Put(ROW).add(expiring(A, A))));
    refused(why, t -> t.region.increment(new Increment(ROW).add(expiring(N, Bytes.toBytes(1L)))));
    refused(why, t -> t.region.append(new Append(ROW).add(expiring(A, A))));
    test.region.put(new Put(ROW).add(new KeyValue(ROW, RegionForTest.F, S, System.currentTimeMillis(),
        KeyValue.Type.Put, A, Collections.singletonList(new ArrayBackedTag(TagType.ACL_TAG_TYPE, A)))));
  }

  @Test
  void entriesAreNotWrittenByClients() throws Exception {
    String why = "holds the entries";
    byte[] entry = test.entries().get(0);
    refused(why, t -> t.region.put(new Put(ROW).addColumn(IndexedTable.FAMILY, A, A)));
    refused(why, t -> t.region.delete(new Delete(entry).addFamily(IndexedTable.FAMILY)));
  }

  /** Puts a cell as endpoints do that bring a row processor: no hook of batches hears of it. */
  private static final class RowPut extends BaseRowProcessor<Message, Message> {
    private final byte[] family;
    private final byte[] qualifier;

    RowPut(byte[] family, byte[] qualifier) {
      this.family = family;
      this.qualifier = qualifier;
    }

    @Override
    public Collection<byte[]> getRowsToLock() {
      return Collections.singletonList(ROW);
    }

    @Override
    public boolean readOnly() {
      return false;
    }

    @Override
    public void process(long now, HRegion region, List<Mutation> mutations, WALEdit edit) throws IOException {
      Put put = new Put(ROW).addColumn(family, qualifier, now, Bytes.toBytes("processed"));
      mutations.add(put);
      edit.add(put.getFamilyCellMap());
    }

    @Override
    public Message getResult() {
      return null;
    }

    @Override
    public Message getRequestData() {
      return null;
    }

    @Override
    public void initialize(Message request) {}
  }

  @Test
  void rowsAreNotWrittenByRowProcessors() throws Exception {
    refused("row processor", t -> t.region.processRowsWithLocks(new RowPut(RegionForTest.F, A)));
    refused("row processor", t -> t.region.processRowsWithLocks(new RowPut(RegionForTest.G, A)));
    refused("row processor", t -> t.region.processRowsWithLocks(new RowPut(IndexedTable.FAMILY, A)));
    Fault.only(Fault.ROW_PROCESSORS_TAKEN);
    test.region.processRowsWithLocks(new RowPut(RegionForTest.F, A));
    assertEquals(1, Checker.check(test.indexed(), rows -> true).getMissingEntries());
  }

  @Test
  void aRowProcessorMayWriteWhatTheTableDoesNotHave() throws Exception {
    test.close();
    TableDescriptor descriptor =
        RegionForTest.descriptor(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1);
    byte[] other = Bytes.toBytes("other");
    test = new RegionForTest(
        TableDescriptorBuilder.newBuilder(descriptor).setColumnFamily(ColumnFamilyDescriptorBuilder.of(other)).build(),
        new byte[0], new byte[0]);
    test.region.processRowsWithLocks(new RowPut(other, A));
    assertArrayEquals(Bytes.toBytes("processed"), test.region.get(new Get(ROW)).getValue(other, A));
  }
}
