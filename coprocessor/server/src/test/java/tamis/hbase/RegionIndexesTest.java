package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Regions whose indexes are made complete and counted: in which order, and what comes of those that fail. */
@Timeout(60) // a test that would wait for ever
class RegionIndexesTest {
  private static final byte[] A = Bytes.toBytes("a");

  private final RegionServerState state = RegionServerState.INSTANCE;
  private final List<RegionForTest> tests = new ArrayList<>();
  private FilterFeed feed;

  @BeforeEach
  void startFeed() {
    feed = state.startForTest(new FeedOptions());
  }

  @AfterEach
  void closeRegions() throws Exception {
    for (IndexedRegion region : state.regions()) state.closed(region, false);
    for (RegionForTest test : tests) test.close();
    state.startForTest(null);
  }

  /** One row; as a server that opens it has it. Its index is complete. */
  private IndexedRegion region(String start, String end) throws Exception {
    RegionForTest test = new RegionForTest(RegionForTest.descriptor(
        RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build(), 1), Bytes.toBytes(start),
        Bytes.toBytes(end));
    tests.add(test);
    test.region.put(new Put(Bytes.toBytes(start)).addColumn(RegionForTest.F, A, A));
    return new IndexedRegion(test.region, test.observer().indexed().table, "s,1,2", () -> true);
  }

  private static void await(BooleanSupplier done) throws InterruptedException {
    while (!done.getAsBoolean()) {
      if (Thread.interrupted()) throw new InterruptedException();
      Thread.yield();
    }
  }

  private static boolean isPublished(IndexedRegion region) {
    IndexFilter filter = region.filters.get(1);
    return filter != null && filter.isPublished();
  }

  @Test
  void aRegionIsToldAndCountedWhileOthersAreBuilt() throws Exception {
    IndexedRegion[] built = {region("a", "b"), region("b", "c"), region("c", "d")};
    for (IndexedRegion region : built) region.building.lock(); // as who builds
    try {
      for (IndexedRegion region : built) state.opened(region);
      await(() -> built[0].building.getQueueLength() + built[1].building.getQueueLength()
          + built[2].building.getQueueLength() >= 2);
      IndexedRegion later = region("d", "e");
      state.opened(later);
      await(() -> isPublished(later));
      assertEquals(1, later.filters.get(1).entries());
      await(() -> built[2].told);
      assertTrue(feed.openRegions().contains(later.id) && feed.openRegions().contains(built[2].id));
    } finally {
      for (IndexedRegion region : built) region.building.unlock();
    }
    for (IndexedRegion region : built) await(() -> isPublished(region));
  }
}
