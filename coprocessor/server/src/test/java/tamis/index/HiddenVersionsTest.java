package tamis.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.region.IndexedRegion;

/** Rows with versions that a delete marker hides: an entry that may be there is not taken for one that is. */
class HiddenVersionsTest {
  private static final byte[] ROW = Bytes.toBytes("r");
  private static final byte[] A = Bytes.toBytes("a");

  private RegionForTest test;
  private IndexedRegion region;

  @BeforeEach
  void openRegion() throws Exception {
    test = RegionForTest.of(5, RegionForTest.index(1, "by_a", true, 1));
    region = test.indexed();
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    test.close();
  }

  private void put(String value, long timestamp) throws Exception {
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, timestamp, Bytes.toBytes(value)));
  }

  private long missing() throws Exception {
    return Checker.check(region, rows -> true).getMissingEntries();
  }

  /** The value of a version that was overwritten has no entry any more, and comes to show again. */
  private void writeTheValueOfAHiddenVersion() throws Exception {
    put("x", 10);
    put("y", 20);
    test.region.delete(new Delete(ROW).addColumn(RegionForTest.F, A, 30));
    put("z", 30);
    put("x", 40);
    assertArrayEquals(Bytes.toBytes("x"), test.region.get(new Get(ROW)).getValue(RegionForTest.F, A));
  }

  @Test
  void valueOfAHiddenVersionHasAnEntryWhenItIsWrittenAgain() throws Exception {
    writeTheValueOfAHiddenVersion();
    assertEquals(0, missing());
  }

  @Test
  void faultUncertainEntriesTakenForThereLosesTheEntry() throws Exception {
    Fault.only(Fault.UNCERTAIN_ENTRIES_TAKEN_FOR_THERE);
    writeTheValueOfAHiddenVersion();
    assertNotEquals(0, missing());
  }
}
