package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import tamis.filter.BitLayers;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.Schema;
import tamis.table.Value;

/** The bounds at which a filter wants to be counted again, and the size of the next one. */
class IndexFilterSizesTest {
  private static final double FPR = 0.02;
  private static final FilterRoom NONE = new FilterRoom(1 << 20, 5 << 18); // not even for bits
  private static final FilterRoom FOR_BITS = new FilterRoom(1 << 20, (1 << 20) + 1); // and not for counters

  private final FilterFeed feed =
      new FilterFeed("test", 7, new FeedOptions(), System::nanoTime, (column, bytes) -> null);
  private Schema.Index index;
  private IndexFilter filter;

  private void make(long expectedValues, double fpr) throws Exception {
    index = Schema
                .parse(RegionForTest.schema()
                           .addIndexes(RegionForTest.index(1, "by_a", true, 1)
                                           .toBuilder()
                                           .setFpr(fpr)
                                           .setExpectedValues(expectedValues))
                           .build()
                           .toByteArray())
                .index(1);
    filter = new IndexFilter(feed, index, 1, 1);
  }

  private List<IndexEntry> one(int value) {
    return values(value, 1);
  }

  private List<IndexEntry> values(int from, int count) {
    List<IndexEntry> entries = new ArrayList<>();
    for (int value = from; value < from + count; ++value) {
      ByteWriter out = new ByteWriter();
      Codec.appendIndexed(Value.text("v" + value), out);
      entries.add(new IndexEntry(index, out.toBytes(), new byte[][] {out.toBytes()}, 1, true));
    }
    return entries;
  }

  private void count(FilterRoom room, List<IndexEntry> entries) {
    do {
      assertTrue(filter.beginGeneration(() -> true, room));
    } while (!filter.countExisting(entries)); // the next one is larger
    filter.publish();
  }

  private Cluster.Projection bits() {
    return filter.project(Cluster.ColumnId.getDefaultInstance(), 1 << 20);
  }

  private void assertSized(long capacity) {
    SplitGeometry expected = SplitGeometry.of(index.fpr, capacity);
    assertEquals(expected.slicePositions, bits().getGeometry().getSlicePositions(), "for " + capacity);
    assertEquals(expected.slices, bits().getGeometry().getSlices());
  }

  private long layerBytes(long capacity) {
    return ScalableSplitCountingBloomFilter.layerBytes(SplitGeometry.of(index.fpr, capacity));
  }

  private boolean wantsRebuild() {
    return filter.wantsRebuild(1 << 20, FilterRoom.ENDLESS);
  }

  @Test
  void sizesGoInStepsOfTheSquareRootOfTwo() throws Exception {
    make(1000, FPR);
    int[][] sizes = {{10, 64}, {80, 91}, {105, 128}, {150, 182}, {220, 256}, {900, 1024}};
    for (int[] size : sizes) {
      // Each has the size that the one before needed.
      for (int i = 0; i < 3; ++i) count(FilterRoom.ENDLESS, values(0, size[0]));
      assertSized(size[1]);
    }
    make(10, FPR); // the least is what the index expects
    for (int i = 0; i < 2; ++i) count(FilterRoom.ENDLESS, values(0, 3));
    assertSized(10);
  }

  @Test
  void valuesOfSeveralLayersAreCountedOnce() throws Exception {
    for (double fpr : new double[] {0.02, 0.1}) {
      make(64, fpr);
      count(FilterRoom.ENDLESS, values(0, 10));
      filter.add(values(10, 850));
      assertTrue(bits().getLayerCount() > 5);
      assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
      assertTrue(filter.countExisting(values(0, 860)));
      filter.publish();
      assertSized(1024);
    }
  }

  @Test
  void filterWithThreeLayersIsTooSmall() throws Exception {
    make(64, FPR);
    count(FilterRoom.ENDLESS, values(0, 10));
    int value = 10;
    for (; bits().getLayerCount() < 3; ++value) {
      assertFalse(wantsRebuild(), value + " values");
      filter.add(one(value));
    }
    assertTrue(wantsRebuild());
  }

  @Test
  void filterThatIsNearlyEmptyIsTooLarge() throws Exception {
    make(1000, FPR);
    count(FilterRoom.ENDLESS, values(0, 600)); // more than a quarter is full
    assertFalse(wantsRebuild());
    make(1000, FPR);
    count(FilterRoom.ENDLESS, values(0, 10));
    assertTrue(wantsRebuild());
    assertFalse(filter.wantsRebuild(1 << 20, NONE) && filter.isOfBits());
    make(64, FPR);
    count(FilterRoom.ENDLESS, values(0, 10)); // but there is no smaller one
    assertFalse(wantsRebuild());
  }

  /** Its entries are on their way. */
  @Test
  void inheritedFilterIsTooLargeOnlyOnceAsMuchWasAddedAsItHolds() throws Exception {
    make(1000, FPR);
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    filter.publish();
    filter.add(values(0, 10));
    filter = filter.inheritedBy(feed, index, 2, 1);
    filter.publish();
    assertEquals(1, bits().getGeneration());
    long capacity = SplitGeometry.of(FPR, 1000).capacity();
    for (long added = 10; added < capacity; ++added) {
      assertFalse(wantsRebuild(), added + " added");
      filter.add(one(3));
    }
    assertTrue(wantsRebuild());
  }

  @Test
  void bitsAreCountedAnewOnceAsManyWentAsAreLeftAndNotBefore() throws Exception {
    make(64, FPR);
    List<IndexEntry> entries = values(0, 8);
    count(FOR_BITS, entries);
    for (int i = 0; i < 5; ++i) {
      assertFalse(filter.wantsRebuild(5, FOR_BITS), i + " went");
      filter.remove(entries.subList(i, i + 1));
    }
    assertTrue(filter.wantsRebuild(5, FOR_BITS)); // because of the least number
    assertFalse(filter.wantsRebuild(6, FOR_BITS));
    make(64, FPR);
    entries = values(0, 20);
    count(FOR_BITS, entries);
    for (int i = 0; i < 10; ++i) {
      assertFalse(filter.wantsRebuild(1, FOR_BITS), i + " went");
      filter.remove(entries.subList(i, i + 1));
    }
    assertTrue(filter.wantsRebuild(1, FOR_BITS)); // because of those that are left
  }

  // ---- While one is counted

  @Test
  void generationIsTooLargeWhereNeitherTheLastOneNorTheRoomIsAsLarge() throws Exception {
    make(64, FPR);
    assertFalse(filter.isTooLarge(NONE));
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    long bytes = layerBytes(64);
    assertEquals(bytes, filter.sizeBytes());
    assertFalse(filter.isTooLarge(new FilterRoom(1 << 20, (1 << 20) - bytes)));
    assertTrue(filter.isTooLarge(new FilterRoom(1 << 20, (1 << 20) - bytes + 1)));
    filter.publish();
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    assertFalse(filter.isTooLarge(NONE)); // it is no larger than the published one
    assertTrue(filter.outgrow());
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    assertEquals(bytes + layerBytes(256), filter.sizeBytes());
    assertTrue(filter.isTooLarge(NONE));
    assertFalse(filter.isTooLarge(FilterRoom.ENDLESS));
    make(64, FPR);
    assertTrue(filter.beginGeneration(() -> true, FOR_BITS));
    long bits = BitLayers.layerBytes(SplitGeometry.of(FPR, 64));
    assertEquals(bits, filter.sizeBytes());
    assertFalse(filter.isTooLarge(new FilterRoom(1 << 20, (5 << 18) - bits)));
    assertTrue(filter.isTooLarge(new FilterRoom(1 << 20, (5 << 18) - bits + 1)));
  }

  @Test
  void generationThatGetsAThirdLayerIsOutgrown() throws Exception {
    make(64, FPR);
    assertFalse(filter.outgrow());
    assertTrue(filter.countExisting(values(0, 1)), "none is counted");
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    int value = 0;
    long before = 0;
    for (boolean goesOn = true; goesOn; ++value) {
      before = filter.sizeBytes();
      goesOn = filter.countExisting(one(value));
    }
    assertEquals(2 * layerBytes(64), before);
    assertEquals(0, filter.sizeBytes());
    count(FilterRoom.ENDLESS, values(0, value));
    assertSized(256);
  }

  @Test
  void bitsThatSaveMemoryNeedNoRoom() throws Exception {
    make(64, FPR);
    assertFalse(filter.beginGeneration(() -> true, NONE));
    count(FilterRoom.ENDLESS, values(0, 10));
    count(NONE, values(0, 10));
    assertTrue(filter.isOfBits());
    count(NONE, values(0, 10)); // the size is the same
    assertTrue(filter.beginGeneration(() -> true, NONE));
    assertTrue(filter.outgrow());
    assertFalse(filter.beginGeneration(() -> true, NONE)); // larger
    assertTrue(filter.isPublished());
  }

  /** Each takes the room of a held removal, unless it is seen that it was added meanwhile. */
  @Test
  void valuesThatComeAndGoWhileOneIsCountedTakeNoRoom() throws Exception {
    make(64, FPR);
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    int times = HeldRemovals.MOST + 50;
    for (int value = 0; value < times; ++value) {
      filter.add(one(value));
      filter.remove(one(value));
    }
    assertEquals(0, filter.heldRemovals());
    filter.add(one(-1)); // so that the range covers all
    filter.add(one(99_999));
    filter.publish();
    assertEquals(2, filter.entries());
    int stay = 0;
    for (int value = times - 50; value < times; ++value) stay += filter.mayContain(one(value).get(0)) ? 1 : 0;
    assertTrue(stay < 10, stay + " stay");
  }

  // ---- Events

  @Test
  void entryThatChangesNothingMakesNoEvent() throws Exception {
    make(64, FPR);
    count(FilterRoom.ENDLESS, values(0, 10));
    long before = feed.last();
    filter.add(one(5));
    assertEquals(before, feed.last());
    filter.remove(one(5)); // one of two entries
    assertEquals(before, feed.last());
  }

  @Test
  void secondDropNamesTheEventOfTheFirst() throws Exception {
    make(64, FPR);
    assertEquals(0, filter.drop());
    count(FilterRoom.ENDLESS, values(0, 10));
    long dropped = filter.drop();
    assertEquals(feed.last(), dropped);
    feed.append(Cluster.Event.newBuilder().setKind(Cluster.Event.Kind.REGION_CLOSED).setRegionId(9));
    assertEquals(dropped, filter.drop());
    assertEquals(Collections.emptySet(), feed.openRegions());
  }
}
