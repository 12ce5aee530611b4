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
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.BaseRowProcessor;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.wal.WALEdit;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.index.Checker;
import tamis.region.IndexedTable;

/** Row processors, which HBase 3 does not have any more, cannot write to an indexed table. */
class RowProcessorsTest extends WriteRefusals {
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
        TableDescriptorBuilder.newBuilder(descriptor).setColumnFamily(ColumnFamilyDescriptorBuilder.of(other)).build());
    test.region.processRowsWithLocks(new RowPut(other, A));
    assertArrayEquals(Bytes.toBytes("processed"), test.region.get(new Get(ROW)).getValue(other, A));
  }

  /** The opening checks it: otherwise every write would fail halfway. */
  @Test
  void rowProcessorsAreRefusedWhereHBaseLacksAMethod() throws Exception {
    Fault.only(Fault.HBASE_LACKS_A_METHOD);
    test.reopen();
    DoNotRetryIOException e = assertThrows(
        DoNotRetryIOException.class, () -> test.region.processRowsWithLocks(new RowPut(RegionForTest.F, A)));
    assertTrue(e.getMessage().contains("Gone.method()void"), e.toString());
  }
}
