package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.hbase.RegionForTest;
import tamis.pb.Cluster;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/** When a filter is counted again: seldom where many rows share a value, and before it says yes to too much. */
class IndexFilterTest {
  private static final int ENTRIES = 2000;

  private final Schema.Index index;
  private final IndexFilter filter;
  private final List<IndexEntry> standing = new ArrayList<>();
  private FilterRoom room = FilterRoom.ENDLESS;
  private long counted;

  IndexFilterTest() throws DamagedBytesException {
    Schema schema =
        Schema.parse(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build().toByteArray());
    index = schema.index(1);
    FilterFeed feed = new FilterFeed("test", 7, new FeedOptions(), System::nanoTime, (column, bytes) -> null);
    filter = new IndexFilter(feed, index, 1, 1);
  }

  private IndexEntry entry(int value, int row) {
    ByteWriter out = new ByteWriter();
    Codec.appendIndexed(Value.text("v" + value), out);
    byte[] values = out.toBytes();
    return new IndexEntry(index, Key.concat(values, Bytes.toBytes(row)), new byte[][] {values}, 1, true);
  }

  private void countAnew() {
    assertTrue(filter.beginGeneration(() -> true, room));
    filter.countExisting(standing);
    filter.publish();
    counted += standing.size();
  }

  /** Checks now and then whether to recount, like the region. */
  private void lookAt(int update) {
    if (update % 50 == 0 && filter.wantsRebuild(100, room)) countAnew();
  }

  @Test
  void rowsThatShareAValueAreUpdatedWithoutCountingThemAllTheTime() {
    Random random = new Random(5);
    for (int row = 0; row < ENTRIES; ++row) standing.add(entry(row % 10, row));
    for (int i = 0; i < 3; ++i) countAnew(); // the size fits
    counted = 0;
    int updates = 20_000;
    for (int i = 0; i < updates; ++i) {
      int row = random.nextInt(ENTRIES);
      IndexEntry now = entry(random.nextInt(10), row);
      filter.leave(filter.add(Collections.singletonList(now)));
      filter.remove(Collections.singletonList(standing.set(row, now)));
      lookAt(i);
    }
    assertTrue(counted <= updates / 4, counted + " entries were counted for " + updates + " updates");
    for (IndexEntry entry : standing) assertTrue(filter.mayContain(entry));
  }

  /** Removals are held while a filter is counted, up to a bound. */
  @Test
  void removalsBeyondTheBoundStayUntilTheNextRecount() {
    int gone = HeldRemovals.MOST + 1000;
    IndexEntry stays = entry(-1, -1);
    standing.add(stays);
    for (int row = 0; row < gone; ++row) standing.add(entry(row, row));
    do {
      assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    } while (!filter.countExisting(standing)); // the size fits
    filter.publish();
    assertTrue(filter.beginGeneration(() -> true, FilterRoom.ENDLESS));
    for (IndexEntry entry : standing.subList(1, standing.size())) filter.remove(Collections.singletonList(entry));
    assertEquals(HeldRemovals.MOST, filter.heldRemovals());
    filter.countExisting(standing);
    filter.publish();
    assertTrue(filter.mayContain(stays));
    assertEquals(1, filter.entries());
    assertTrue(filter.wantsRebuild(100, FilterRoom.ENDLESS));
  }

  /** While a filter is counted: a new value, and one whose old entry the scan has not reached. */
  private void comeAndGo(int times) {
    IndexEntry fresh = entry(1000, 0);
    IndexEntry old = standing.get(3);
    assertTrue(filter.beginGeneration(() -> true, room));
    for (int i = 0; i < times; ++i) {
      filter.leave(filter.add(Collections.singletonList(fresh)));
      filter.remove(Collections.singletonList(fresh));
      filter.remove(Collections.singletonList(old));
      filter.leave(filter.add(Collections.singletonList(old)));
    }
    filter.remove(Collections.singletonList(standing.get(7)));
    filter.countExisting(standing);
    filter.publish();
  }

  @Test
  void aValueThatComesAndGoesDuringARecountLeavesNothing() {
    for (int row = 0; row < 20; ++row) standing.add(entry(row, row));
    comeAndGo(HeldRemovals.MOST + 1000);
    assertFalse(filter.mayContain(entry(1000, 0)));
    assertFalse(filter.mayContain(standing.get(7)), "its removal found no room to be held");
    assertTrue(filter.mayContain(standing.get(3)));
    assertEquals(19, filter.entries());
    filter.remove(Collections.singletonList(standing.get(3)));
    assertFalse(filter.mayContain(standing.get(3)), "its counters were full");
  }

  @Test
  void aValueThatComesAndGoesStaysWithoutPairing() {
    Fault.only(Fault.REMOVALS_NOT_PAIRED);
    try {
      for (int row = 0; row < 20; ++row) standing.add(entry(row, row));
      comeAndGo(100);
      assertTrue(filter.mayContain(entry(1000, 0)));
    } finally {
      Fault.only();
    }
  }

  /** Random order, counters and bits in turn; a failure names its seed. */
  @Test
  void standingValuesStayAndRemovedValuesGoDuringARecount() {
    long lastSeed = 60;
    for (long seed = 1; seed <= lastSeed; ++seed) {
      Random random = new Random(seed);
      List<IndexEntry> now = new ArrayList<>(standing);
      while (now.size() < 60) {
        IndexEntry entry = entry(random.nextInt(30), random.nextInt());
        now.add(entry);
        filter.leave(filter.add(Collections.singletonList(entry)));
      }
      List<IndexEntry> then = new ArrayList<>(now);
      boolean bits = seed % 2 == 0;
      assertTrue(filter.beginGeneration(() -> true, bits ? new FilterRoom(1 << 12, 1 << 12) : FilterRoom.ENDLESS));
      int scanned = 0;
      while (scanned < then.size()) {
        if (random.nextInt(6) == 0) {
          filter.countExisting(Collections.singletonList(then.get(scanned++)));
        } else if (now.isEmpty() || random.nextBoolean()) {
          IndexEntry entry = entry(random.nextInt(40), random.nextInt());
          now.add(entry);
          filter.leave(filter.add(Collections.singletonList(entry)));
        } else {
          filter.remove(Collections.singletonList(now.remove(random.nextInt(now.size()))));
        }
      }
      filter.publish();
      assertEquals(bits, filter.isOfBits());
      assertEquals(now.size(), filter.entries(), "seed " + seed);
      for (IndexEntry entry : now) assertTrue(filter.mayContain(entry), "seed " + seed);
      int stay = 0;
      for (int value = 0; value < 40; ++value) {
        int v = value;
        boolean stands = now.stream().anyMatch(entry -> java.util.Arrays.equals(entry.first(), entry(v, 0).first()));
        if (!stands && filter.mayContain(entry(value, 0))) ++stay;
      }
      assertTrue(bits || stay <= 3, stay + " are gone and stay, seed " + seed); // false positives
      standing.clear();
      standing.addAll(now);
    }
  }

  /**
   * Twenty rows of a value come and go: more than a counter holds, so each leaves its bits until they are counted
   * again. They are too few to fill the filter, which would have it counted, too.
   */
  @Test
  void valuesThatAreGoneAreForgotten() {
    int rows = 200;
    int values = 90;
    ArrayDeque<IndexEntry> oldest = new ArrayDeque<>();
    int row = 0;
    for (; row < rows; ++row) oldest.add(entry(row / 20, row));
    standing.addAll(oldest);
    for (int i = 0; i < 3; ++i) countAnew(); // the size fits
    for (int i = 0; row < 20 * values; ++i, ++row) {
      IndexEntry now = entry(row / 20, row);
      oldest.add(now);
      filter.leave(filter.add(Collections.singletonList(now)));
      filter.remove(Collections.singletonList(oldest.poll()));
      standing.clear();
      standing.addAll(oldest);
      lookAt(i);
    }
    int stay = 0;
    int gone = values - rows / 20;
    for (int value = 0; value < gone; ++value) {
      if (filter.mayContain(entry(value, 0))) ++stay;
    }
    assertTrue(stay <= 4 * rows / 15, stay + " of " + gone + " values that are gone stay");
    for (IndexEntry entry : standing) assertTrue(filter.mayContain(entry));
  }

  // ---- Where memory is short

  private static final FilterRoom SHORT = new FilterRoom(1 << 20, (1 << 20) + 1); // for bits, and not for counters

  /** One of two rows with a value is removed. */
  private boolean aRowStaysInBitsAlone() {
    room = SHORT;
    standing.add(entry(1, 1));
    standing.add(entry(1, 2));
    countAnew();
    assertTrue(filter.isOfBits());
    filter.remove(Collections.singletonList(standing.remove(0)));
    return filter.mayContain(standing.get(0));
  }

  @Test
  void inBitsAloneARowStaysThoughOthersGo() {
    assertTrue(aRowStaysInBitsAlone());
  }

  @Test
  void faultBitsClearedLosesTheRow() {
    Fault.only(Fault.BITS_CLEARED);
    try {
      assertFalse(aRowStaysInBitsAlone());
    } finally {
      Fault.only();
    }
  }

  @Test
  void bitsAloneSayWhatTheCountersSay() throws Exception {
    Random random = new Random(11);
    IndexFilter bits =
        new IndexFilter(new FilterFeed("test", 7, new FeedOptions(), System::nanoTime, (c, b) -> null), index, 1, 1);
    countAnew();
    assertTrue(bits.beginGeneration(() -> true, SHORT));
    bits.countExisting(standing);
    bits.publish();
    for (int row = 0; row < ENTRIES; ++row) { // several layers of them
      List<IndexEntry> one = Collections.singletonList(entry(random.nextInt(), row));
      filter.leave(filter.add(one));
      bits.leave(bits.add(one));
    }
    assertTrue(4 * bits.sizeBytes() <= filter.sizeBytes() + 256 && bits.isOfBits() && !filter.isOfBits());
    Cluster.ColumnId whole = Cluster.ColumnId.getDefaultInstance();
    assertTrue(filter.project(whole, 1 << 20).getLayersCount() > 1);
    assertEquals(filter.project(whole, 1 << 20).getLayersList(), bits.project(whole, 1 << 20).getLayersList());
    assertEquals(-1, bits.countBound(new byte[1]));
    List<IndexEntry> later = Collections.singletonList(entry(7, ENTRIES));
    Predicate<IndexEntry> before = bits.frozen();
    assertFalse(before.test(later.get(0)));
    bits.leave(bits.add(later));
    assertFalse(before.test(later.get(0)));
    IndexFilter heir =
        bits.inheritedBy(new FilterFeed("test", 7, new FeedOptions(), System::nanoTime, (c, b) -> null), index, 2, 1);
    heir.publish();
    assertTrue(heir.isOfBits() && heir.mayContain(later.get(0)));
  }

  /** Each row's value goes with it, and none is left: bits that stay are forgotten once as many went as there are. */
  @Test
  void valueThatStaysInBitsAloneIsForgotten() {
    room = SHORT;
    for (int row = 0; row < 200; ++row) standing.add(entry(row, row));
    countAnew();
    for (int row = 200; row < 1000; ++row) {
      filter.leave(filter.add(Collections.singletonList(entry(row, row))));
      filter.remove(Collections.singletonList(standing.remove(0)));
      standing.add(entry(row, row));
      lookAt(row);
    }
    int stay = 0;
    for (int row = 0; row < 600; ++row) stay += filter.mayContain(entry(row, row)) ? 1 : 0;
    assertTrue(stay <= 10, stay + " values that are gone stay");
    for (IndexEntry entry : standing) assertTrue(filter.mayContain(entry));
  }

  @Test
  void aFilterTakesTheFormThatThereIsRoomFor() {
    standing.add(entry(1, 1));
    for (int i = 0; i < 2; ++i) countAnew(); // the size fits
    assertFalse(filter.isOfBits() || filter.wantsRebuild(100, room));
    assertTrue(filter.wantsRebuild(100, SHORT));
    room = SHORT;
    countAnew();
    assertTrue(filter.isOfBits());
    assertFalse(filter.wantsRebuild(100, SHORT));
    // Not as long as it would be without room for them at once.
    assertFalse(filter.wantsRebuild(100, new FilterRoom(1 << 20, 3 << 18)));
    room = new FilterRoom(1 << 20, 1 << 19);
    assertTrue(filter.wantsRebuild(100, room));
    countAnew();
    assertFalse(filter.isOfBits());
  }

  @Test
  void filterWithoutMemoryForBitsIsMissingUntilThereIsMemory() {
    FilterRoom none = new FilterRoom(1 << 20, 5 << 18);
    assertFalse(filter.wantsRebuild(100, room)); // counting it was not tried yet
    assertFalse(filter.beginGeneration(() -> true, none));
    assertTrue(filter.isMissing() && filter.mayContain(entry(1, 1)));
    assertFalse(filter.wantsRebuild(100, none));
    assertTrue(filter.wantsRebuild(100, SHORT) && filter.wantsRebuild(100, room));
    countAnew();
    assertFalse(filter.isMissing() || filter.mayContain(entry(1, 1)));
  }

  @Test
  void filterIsMissingAfterAFailedCount() {
    assertTrue(filter.beginGeneration(() -> true, room));
    assertFalse(filter.isMissing() || filter.wantsRebuild(100, room)); // under way
    filter.abandonGeneration();
    assertTrue(filter.isMissing() && filter.wantsRebuild(100, room));
    countAnew();
    assertFalse(filter.isMissing());
  }
}
