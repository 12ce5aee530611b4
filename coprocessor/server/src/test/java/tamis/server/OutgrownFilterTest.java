package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import org.apache.hadoop.hbase.client.Mutation;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.feed.FeedOptions;
import tamis.feed.FilterRoom;
import tamis.feed.IndexFilter;
import tamis.hbase.RegionForTest;
import tamis.index.Checker;
import tamis.pb.Cluster;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.table.Schema;

/** A region that holds many times as many values as its index was made for. */
class OutgrownFilterTest {
  private static final int ROWS = 5000;

  private RegionForTest test;
  private IndexedRegion region;
  private Schema.Index index;

  @BeforeEach
  void openRegion() throws Exception {
    TestServer.start(new FeedOptions());
    Table.Index expectsFew = RegionForTest.index(1, "by_a", true, 1).toBuilder().setExpectedValues(64).build();
    test = RegionForTest.of(1, expectsFew);
    Mutation[] puts = new Mutation[ROWS];
    for (int i = 0; i < ROWS; ++i) {
      puts[i] = new Put(Bytes.toBytes(i)).addColumn(RegionForTest.F, Bytes.toBytes("a"), Bytes.toBytes("v" + i));
    }
    test.region.batchMutate(puts);
    region = test.indexed();
    index = region.table.schema.index(1);
    TestServer.tell(region);
  }

  @AfterEach
  void closeRegion() throws Exception {
    TestServer.close(region);
    TestServer.stop();
    test.close();
  }

  private IndexFilter count(long maxBytes) throws Exception {
    new RegionFilters(() -> Collections.singletonList(region), Runnable::run, () -> maxBytes).count(region, index);
    return region.filters.get(1);
  }

  @Test
  void itsFilterGetsTheSizeThatItNeeds() throws Exception {
    IndexFilter filter = count(Long.MAX_VALUE / 8);
    Cluster.Projection projection = filter.project(Cluster.ColumnId.getDefaultInstance(), 1);
    assertTrue(projection.getLayerCount() < 3, projection.getLayerCount() + " layers");
    assertFalse(filter.wantsRebuild(100, FilterRoom.ENDLESS));
    assertEquals(ROWS, filter.entries());
    assertEquals(0, Checker.check(region, rows -> true).getMissingInFilter());
  }

  @Test
  void itsFilterTakesNoMoreMemoryThanThereIs() throws Exception {
    long needed = count(Long.MAX_VALUE / 8).sizeBytes();
    IndexFilter filter = region.filters.get(1);
    filter.drop();
    count(needed - 1);
    assertTrue(filter.isPublished() && filter.isOfBits());
    assertTrue(filter.sizeBytes() < needed, filter.sizeBytes() + " bytes of " + needed);
    assertEquals(0, Checker.check(region, rows -> true).getMissingInFilter());
    filter.drop();
    count(16);
    assertTrue(filter.isMissing());
    assertEquals(0, filter.sizeBytes());
    count(needed);
    assertTrue(filter.isPublished() && !filter.isOfBits());
  }
}
