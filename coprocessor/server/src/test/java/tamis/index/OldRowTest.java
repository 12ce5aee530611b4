package tamis.index;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Collections;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.regionserver.FlushLifeCycleTracker;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.pb.Table;

/** The old row as a write finds it: each rule with it and without it, where the row lacks an entry. */
class OldRowTest {
  private static final byte[] ROW = Bytes.toBytes("r");
  private static final byte[] A = Bytes.toBytes("a");
  private static final byte[] N = Bytes.toBytes("n");
  private static final byte[] B = Bytes.toBytes("b");

  @AfterEach
  void reset() {
    Fault.only();
  }

  private static RegionForTest open(Table.Index index) throws Exception {
    return RegionForTest.of(1, index);
  }

  private static Put putA(long timestamp, String value) {
    return new Put(ROW).addColumn(RegionForTest.F, A, timestamp, Bytes.toBytes(value));
  }

  private static long missed(RegionForTest test) throws Exception {
    return Checker.check(test.indexed(), rows -> true).getMissingEntries();
  }

  /** A row is deleted, and comes back as it was. */
  private static long missedBehindADeletedRow() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_a", true, 1))) {
      test.region.put(putA(1000, "v"));
      test.region.delete(new Delete(ROW).addFamily(RegionForTest.F, 2000));
      test.region.put(putA(3000, "v"));
      return missed(test);
    }
  }

  @Test
  void aRowWithATombstoneIsReadByAScan() throws Exception {
    assertEquals(0, missedBehindADeletedRow());
    Fault.only(Fault.FAMILY_TOMBSTONES_OVERLOOKED);
    assertEquals(1, missedBehindADeletedRow());
  }

  private static Put put(String row, long timestamp, String value) {
    return new Put(Bytes.toBytes(row)).addColumn(RegionForTest.F, A, timestamp, Bytes.toBytes(value));
  }

  /** Counts missing and foreign entries of a batch that names its rows in no order, and some of them several times. */
  private static long wrongBehindABatchOfSeveralWritesOfARow() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_a", true, 1))) {
      test.region.batchMutate(new Mutation[] {put("s", 1000, "old"), put("r", 1000, "old")});
      test.region.batchMutate(new Mutation[] {put("s", 2000, "v1"), put("r", 3000, "w1"), put("q", 2000, "u"),
          put("s", 2000, "v2"), put("r", 2000, "w2"), put("s", 2000, "v3")});
      Cluster.RegionCheck check = Checker.check(test.indexed(), rows -> true);
      return check.getMissingEntries() + check.getForeignEntries();
    }
  }

  @Test
  void writesOfARowCountInTheOrderOfTheBatch() throws Exception {
    assertEquals(0, wrongBehindABatchOfSeveralWritesOfARow());
    Fault.only(Fault.LATER_WRITES_OF_A_ROW_FIRST);
    assertEquals(2, wrongBehindABatchOfSeveralWritesOfARow());
  }

  /** One column of an index stands in a file that is older than the other. */
  private static long missedWithAColumnInAFile() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_an", true, 1, 2))) {
      test.region.put(putA(1000, "v").addColumn(RegionForTest.F, N, 1000, Bytes.toBytes(5L)));
      test.region.flush(true);
      test.region.put(putA(2000, "w"));
      test.region.put(putA(3000, "x"));
      return missed(test);
    }
  }

  @Test
  void filesAreReadForColumnsThatMemoryLacks() throws Exception {
    assertEquals(0, missedWithAColumnInAFile());
    Fault.only(Fault.OLDER_FILES_NOT_READ);
    assertEquals(1, missedWithAColumnInAFile());
  }

  /** A version shows again, and a compaction meets it with the one above it and without that one's tombstone. */
  private static long missedBehindADeletedVersion() throws Exception {
    try (RegionForTest test = open(RegionForTest.index(1, "by_ba", false, 3, 1))) {
      test.region.put(putA(1000, "v").addColumn(RegionForTest.G, B, 1000, Bytes.toBytes("stays")));
      test.region.flush(true);
      test.region.put(putA(2000, "w"));
      test.region.flushcache(Collections.singletonList(RegionForTest.F), false, FlushLifeCycleTracker.DUMMY);
      test.region.delete(new Delete(ROW).addColumn(RegionForTest.F, A, 2000));
      assertEquals(0, missed(test));
      test.region.compact(false);
      return missed(test);
    }
  }

  @Test
  void aVersionThatShowsAgainIsPutAgain() throws Exception {
    assertEquals(0, missedBehindADeletedVersion());
    Fault.only(Fault.UNCOVERED_LEFT_ALONE);
    assertEquals(1, missedBehindADeletedVersion());
  }
}
