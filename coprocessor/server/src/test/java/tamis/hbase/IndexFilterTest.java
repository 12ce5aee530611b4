package tamis.hbase;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/** When a filter is counted anew: seldom where many rows share a value, and before it says yes to too much. */
class IndexFilterTest {
  private static final int ENTRIES = 2000;

  private final Schema.Index index;
  private final IndexFilter filter;
  private final List<IndexEntry> standing = new ArrayList<>();
  private long counted;

  IndexFilterTest() throws DamagedBytesException {
    Schema schema = Schema.parse(RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build()
        .toByteArray());
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
    assertTrue(filter.beginGeneration(() -> true));
    filter.countExisting(standing);
    filter.publish();
    counted += standing.size();
  }

  /** As the region does, now and then. */
  private void lookAt(int update) {
    if (update % 50 == 0 && filter.wantsRebuild(100)) countAnew();
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
      filter.add(Collections.singletonList(now));
      filter.remove(Collections.singletonList(standing.set(row, now)));
      lookAt(i);
    }
    assertTrue(counted <= updates / 4, counted + " entries were counted for " + updates + " updates");
    for (IndexEntry entry : standing) assertTrue(filter.mayContain(entry));
  }

  /**
   * Twenty rows of a value come and go: more than a counter holds, so each leaves its bits until they are counted anew.
   * They are too few to fill the filter, which would have it counted, too.
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
      filter.add(Collections.singletonList(now));
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
}
