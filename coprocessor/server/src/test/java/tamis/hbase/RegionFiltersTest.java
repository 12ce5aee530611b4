package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.pb.Table;

/** The filters of three regions, for which there is no room together. */
class RegionFiltersTest {
  private static final byte[] A = Bytes.toBytes("a");
  private static final long COUNTERS = ScalableSplitCountingBloomFilter.layerBytes(SplitGeometry.of(0.001, 64));

  private final List<RegionForTest> tests = new ArrayList<>();
  private final List<IndexedRegion> open = new ArrayList<>();
  private final ArrayDeque<Runnable> work = new ArrayDeque<>();
  private final RegionFilters filters = new RegionFilters(() -> open, work::add, COUNTERS + 16);

  @BeforeEach
  void openRegions() throws Exception {
    RegionServerState.INSTANCE.startForTest(new FeedOptions());
    Table.Index index = RegionForTest.index(1, "by_a", true, 1).toBuilder().setExpectedValues(64).build();
    for (String start : new String[] {"a", "b", "c"}) {
      RegionForTest test = new RegionForTest(RegionForTest.descriptor(RegionForTest.schema().addIndexes(index).build(), 1),
          Bytes.toBytes(start), Bytes.toBytes(start + "z"));
      tests.add(test);
      test.region.put(new Put(Bytes.toBytes(start)).addColumn(RegionForTest.F, A, A));
      IndexedRegion region = test.observer().indexed();
      RegionServerState.INSTANCE.tellForTest(region);
      open.add(region);
      filters.count(region, region.table.schema.index(1));
    }
  }

  @AfterEach
  void closeRegions() throws Exception {
    for (RegionForTest test : tests) {
      RegionServerState.INSTANCE.closeForTest(test.observer().indexed());
      test.close();
    }
    RegionServerState.INSTANCE.startForTest(null);
  }

  private static IndexFilter filter(IndexedRegion region) {
    return region.filters.get(1);
  }

  private void giveRoom() {
    filters.giveRoom();
    work();
  }

  private void lookAt(IndexedRegion region) {
    filters.lookAt(region);
    work();
  }

  private void work() {
    while (!work.isEmpty()) work.poll().run();
  }

  @Test
  void whatFindsNoRoomIsCountedOnceThereIsSome() throws Exception {
    assertTrue(filter(open.get(0)).isCounted() && !filter(open.get(0)).isOfBits());
    assertTrue(filter(open.get(1)).isCounted() && filter(open.get(1)).isOfBits());
    IndexedRegion last = open.get(2);
    assertTrue(filter(last).isMissing());
    giveRoom();
    assertTrue(filter(last).isMissing());
    open.remove(0); // it closes
    giveRoom();
    assertFalse(filter(last).isMissing());
    assertTrue(filter(last).isCounted() && filter(last).isOfBits());
    assertEquals(1, filter(last).entries());
  }

  @Test
  void bitsAloneGetCountersAgain() throws Exception {
    IndexedRegion region = open.get(1);
    lookAt(region);
    assertTrue(filter(region).isOfBits());
    filters.limitForTest(4 * COUNTERS);
    lookAt(region);
    assertFalse(filter(region).isOfBits());
    assertEquals(1, filter(region).entries());
    assertTrue(filter(open.get(2)).isCounted()); // on the way
    filters.limitForTest(COUNTERS + 16); // and memory is short again
    for (IndexedRegion each : open) lookAt(each);
    assertTrue(filters.bytes() <= COUNTERS + 16);
  }
}
