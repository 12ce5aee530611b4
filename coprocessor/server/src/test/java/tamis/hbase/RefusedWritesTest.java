package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.apache.hadoop.hbase.ArrayBackedTag;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TagType;
import org.apache.hadoop.hbase.client.Append;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.security.visibility.CellVisibility;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.Pair;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.index.Checker;
import tamis.region.IndexedTable;

/**
 * Writes that a client may not send to an indexed table: they are refused with an error that is not retried, and
 * nothing is done.
 */
class RefusedWritesTest extends WriteRefusals {
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

  /** The opening checks it: otherwise every write would fail halfway. */
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
  void cellsDoNotExpireByTags() throws Exception {
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
}
