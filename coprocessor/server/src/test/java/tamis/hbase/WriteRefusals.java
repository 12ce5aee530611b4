package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import tamis.base.Fault;

/** A region with one row, and a check that a write to it is refused and does nothing. */
abstract class WriteRefusals {
  static final byte[] ROW = Bytes.toBytes("r");
  static final byte[] A = Bytes.toBytes("a");
  static final byte[] N = Bytes.toBytes("n");
  static final byte[] S = Bytes.toBytes("s");

  RegionForTest test;

  /** A write of one row. */
  interface Write {
    void into(RegionForTest test) throws Exception;
  }

  @BeforeEach
  void openRegion() throws Exception {
    test = RegionForTest.of(1, RegionForTest.index(1, "by_a", true, 1));
    test.region.put(new Put(ROW).addColumn(RegionForTest.F, A, Bytes.toBytes("before")));
  }

  @AfterEach
  void closeRegion() throws Exception {
    Fault.only();
    Fault.only();
    test.close();
  }

  void refused(String why, Write write) throws Exception {
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
}
