package tamis.region;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.hbase.RegionForTest;
import tamis.hbase.SpoiltBuffers;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;

/** A long scan holds few of the blocks that it has read. */
class RowCursorTest {
  private static final int ROWS = 4000;
  private static final int ROW_BYTES = 4000; // some sixteen rows in a block
  private static final int BLOCKS = ROWS * ROW_BYTES / (64 << 10);

  private int most;

  private boolean look() {
    most = Math.max(most, SpoiltBuffers.use().held());
    return true;
  }

  private static RegionForTest filled() throws Exception {
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
    RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema, 1));
    for (int i = 0; i < ROWS; ++i) {
      test.region.put(new Put(Bytes.toBytes(String.format("r%06d", i)))
                          .addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("a" + i))
                          .addColumn(RegionForTest.F, Bytes.toBytes("z"), new byte[ROW_BYTES]));
    }
    test.region.flush(true);
    return test;
  }

  @Test
  void givesEachRowOnceAndTheBlocksOfThoseBeforeItBack() throws Exception {
    try (RegionForTest test = filled()) {
      List<String> keys = new ArrayList<>();
      Scan scan = new Scan().addFamily(RegionForTest.F).setCacheBlocks(false);
      try (RowCursor rows = new RowCursor(test.region.getScanner(scan))) {
        for (List<Cell> cells = rows.next(); cells != null; cells = rows.next()) {
          keys.add(Bytes.toString(CellUtil.cloneRow(cells.get(0))));
          assertEquals(2, cells.size());
          look();
        }
        assertTrue(rows.ended());
        assertNull(rows.next());
      }
      assertEquals(ROWS, keys.size());
      assertEquals("r000000", keys.get(0));
      assertEquals("r003999", keys.get(ROWS - 1));
      assertEquals(ROWS, keys.stream().distinct().count());
      assertTrue(most > 0 && most < BLOCKS / 4, "holds " + most + " blocks of " + BLOCKS);
    }
  }

  @Test
  void aCheckOfARegionHoldsFewBlocks() throws Exception {
    try (RegionForTest test = filled()) {
      Cluster.RegionCheck check = Checker.check(test.indexed(), rows -> look());
      assertEquals(ROWS, check.getRows());
      assertEquals(ROWS, check.getEntries());
      assertEquals(0, check.getProblemsCount());
      assertTrue(most > 0 && most < BLOCKS / 4, "holds " + most + " blocks of " + BLOCKS);
    }
  }
}
