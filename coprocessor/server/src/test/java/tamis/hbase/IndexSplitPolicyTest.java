package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.RegionSplitPolicy;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.region.IndexedTable;

/** Where a region splits whose entries are more than its rows. */
class IndexSplitPolicyTest {
  private static final byte[] START = Bytes.toBytes("k");

  @AfterEach
  void reset() {
    Fault.only();
  }

  /** Small blocks: a file has a middle. */
  private static TableDescriptor descriptor() throws Exception {
    TableDescriptor made = RegionForTest.descriptor(RegionForTest.schema()
                                                        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                                        .addIndexes(RegionForTest.index(2, "by_s", true, 4))
                                                        .build(),
        1);
    TableDescriptorBuilder descriptor =
        TableDescriptorBuilder.newBuilder(made).setRegionSplitPolicyClassName(IndexSplitPolicy.class.getName());
    for (ColumnFamilyDescriptor family : made.getColumnFamilies()) {
      descriptor.modifyColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(family).setBlocksize(1024).build());
    }
    return descriptor.build();
  }

  /** Rows in random order, so that the values of entries are not in the order of the rows. */
  private static void fill(RegionForTest test) throws Exception {
    Random random = new Random(1);
    List<Mutation> puts = new ArrayList<>();
    for (int i = 0; i < 300; ++i) {
      byte[] value = Bytes.toBytes(String.format("%06d", random.nextInt(1_000_000)));
      puts.add(new Put(Bytes.toBytes(String.format("row%04d", i)))
                   .addColumn(RegionForTest.F, Bytes.toBytes("a"), value)
                   .addColumn(RegionForTest.F, Bytes.toBytes("s"), value));
    }
    test.region.batchMutate(puts.toArray(new Mutation[0]));
    test.region.flush(true);
  }

  private static byte[] splitPoint() throws Exception {
    try (RegionForTest test = new RegionForTest(descriptor(), START, new byte[0])) {
      fill(test);
      HStore entries = test.region.getStore(IndexedTable.FAMILY);
      assertTrue(entries.getSplitPoint().isPresent());
      assertTrue(entries.getSize() > test.region.getStore(RegionForTest.F).getSize());
      return ((IndexSplitPolicy) RegionSplitPolicy.create(test.region, test.conf)).getSplitPoint();
    }
  }

  @Test
  void aRegionSplitsAtARow() throws Exception {
    byte[] point = splitPoint();
    assertTrue(Bytes.toString(point).matches("row0[12]\\d\\d"), Bytes.toStringBinary(point));
    Fault.only(Fault.SPLITS_AT_ENTRIES);
    assertEquals("k", Bytes.toString(Arrays.copyOf(splitPoint(), 1)));
  }
}
