package tamis.index;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import tamis.feed.IndexEntry;
import tamis.hbase.RegionForTest;
import tamis.pb.Table;
import tamis.region.IndexedRegion;
import tamis.table.Key;

/** A read without a scan gives the same as a scan, for random rows in memory and in files; a failure names its seed. */
class NewestCellsTest {
  private static final int ROWS = 12;
  private static final String[] QUALIFIERS = {"a", "s", "n", "other", ""};

  private long read;
  private long putAside;

  private static byte[] row(int i) {
    return Bytes.toBytes("r" + i);
  }

  private static void write(RegionForTest test, Random random) throws Exception {
    byte[] row = row(random.nextInt(ROWS - 1)); // the last row has nothing
    long timestamp = 1000 + random.nextInt(40);
    byte[] qualifier = Bytes.toBytes(QUALIFIERS[random.nextInt(QUALIFIERS.length)]);
    Delete delete = new Delete(row);
    switch (random.nextInt(30)) {
      case 0:
        test.region.delete(delete.addFamily(RegionForTest.F, timestamp));
        break;
      case 1:
        test.region.delete(delete.addColumns(RegionForTest.F, qualifier, timestamp));
        break;
      case 2:
        test.region.delete(delete.addColumn(RegionForTest.F, qualifier, timestamp));
        break;
      case 3:
        test.region.delete(delete.addFamilyVersion(RegionForTest.F, timestamp));
        break;
      case 4:
      case 5:
        test.region.flush(true);
        break;
      case 6:
        test.region.compact(random.nextInt(4) > 0);
        break;
      case 7:
        // A cell that expires by itself, as it may stand in a table from before it was indexed.
        BatchContext.next().writer = BatchContext.Writer.INDEX;
        test.region.put(new Put(row)
                            .addColumn(RegionForTest.F, qualifier, timestamp, Bytes.toBytes(7L))
                            .setTTL(random.nextBoolean() ? 1 : 1_000_000_000));
        BatchContext.next().writer = BatchContext.Writer.CLIENT;
        break;
      default: {
        Put put = new Put(row);
        for (int i = random.nextInt(4); i >= 0; --i) {
          byte[] name = Bytes.toBytes(QUALIFIERS[random.nextInt(QUALIFIERS.length)]);
          put.addColumn(RegionForTest.F, name, 1000 + random.nextInt(40), Bytes.toBytes((long) random.nextInt(100)));
        }
        if (random.nextInt(3) == 0)
          put.addColumn(RegionForTest.G, Bytes.toBytes("b"), timestamp, Bytes.toBytes("v" + random.nextInt(9)));
        test.region.put(put);
      }
    }
  }

  /** Images of the rows; those that a scan has to read are put aside. */
  private static void readAll(IndexedRegion region, TreeMap<byte[], Integer> rows, boolean whole,
      Map<byte[], RowImage> images, TreeMap<byte[], Integer> aside) throws Exception {
    try (NewestCells cells = NewestCells.open(region, rows.firstKey(), rows.lastKey(), whole)) {
      for (Map.Entry<byte[], Integer> row : rows.entrySet()) {
        RowImage image = cells.read(row.getKey());
        if (image == null) aside.put(row.getKey(), row.getValue());
        else images.put(row.getKey(), image);
      }
    }
  }

  private void compare(RegionForTest test, boolean whole, String what) throws Exception {
    IndexedRegion region = test.indexed();
    TreeMap<byte[], Integer> rows = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (int i = 0; i < ROWS; ++i) rows.put(row(i), i);
    Map<byte[], RowImage> images = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    TreeMap<byte[], Integer> aside = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    readAll(region, rows, whole, images, aside);
    assertEquals(ROWS, images.size() + aside.size());
    read += images.size();
    putAside += aside.size();
    Map<byte[], RowImage> scanned = RowReader.readSeen(region.region::getScanner, region.table, rows, whole);
    images.forEach((row, image) -> {
      RowImage other = scanned.get(row);
      String where = what + " row " + Bytes.toString(row);
      if (whole || region.table.indexesNull) assertEquals(other.newestSeen(), image.newestSeen(), where);
      if (whole) assertArrayEquals(other.values(), image.values(), where);
      Map<Key, IndexEntry> wanted = other.entries(region.keys);
      Map<Key, IndexEntry> entries = image.entries(region.keys);
      assertEquals(wanted.keySet(), entries.keySet(), where);
      wanted.forEach((key, entry) -> {
        assertEquals(entry.timestamp, entries.get(key).timestamp, where);
        assertEquals(entry.certain, entries.get(key).certain, where);
      });
    });
  }

  @Test
  void readEqualsAScan() throws Exception {
    for (long seed = 1; seed <= 8; ++seed) {
      Random random = new Random(seed);
      Table.Schema.Builder schema = RegionForTest.schema()
                                        .addIndexes(RegionForTest.index(1, "by_a", true, 1))
                                        .addIndexes(RegionForTest.index(2, "by_s", true, 4));
      if (seed % 3 == 0) schema.addIndexes(RegionForTest.index(3, "by_b", true, 3));
      if (seed % 4 == 0) schema.addIndexes(RegionForTest.index(4, "by_na", false, 2, 1));
      try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema.build(), 1 + random.nextInt(3)))) {
        for (int i = 0; i < 160; ++i) {
          write(test, random);
          if (i % 5 == 0) compare(test, random.nextInt(3) == 0, "seed " + seed + " step " + i);
        }
      }
    }
    assertTrue(read > putAside && putAside > 0, read + " rows were read, " + putAside + " put aside");
  }

  /** A file that is older than the row's cells in memory, or that lacks the row, is not read. */
  @Test
  void aRowThatNoFileHasIsReadInMemoryAlone() throws Exception {
    Table.Schema schema = RegionForTest.schema().addIndexes(RegionForTest.index(1, "by_a", true, 1)).build();
    try (RegionForTest test = new RegionForTest(RegionForTest.descriptor(schema, 1))) {
      IndexedRegion region = test.indexed();
      for (int i = 0; i < 100; i += 2) {
        test.region.put(new Put(Bytes.toBytes(String.format("%03d", i)))
                            .addColumn(RegionForTest.F, Bytes.toBytes("a"), 1000, Bytes.toBytes("v")));
      }
      test.region.flush(true);
      TreeMap<byte[], Integer> rows = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      for (int i = 1; i < 98; i += 2) rows.put(Bytes.toBytes(String.format("%03d", i)), i);
      long before = org.apache.hadoop.hbase.io.hfile.HFile.DATABLOCK_READ_COUNT.sum();
      Map<byte[], RowImage> images = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      TreeMap<byte[], Integer> aside = new TreeMap<>(Bytes.BYTES_COMPARATOR);
      readAll(region, rows, false, images, aside);
      assertEquals(rows.size(), images.size());
      assertEquals(before, org.apache.hadoop.hbase.io.hfile.HFile.DATABLOCK_READ_COUNT.sum());
      rows.put(Bytes.toBytes("050"), 50);
      images.clear();
      readAll(region, rows, false, images, aside);
      assertTrue(before < org.apache.hadoop.hbase.io.hfile.HFile.DATABLOCK_READ_COUNT.sum());
      assertEquals(1000, images.get(Bytes.toBytes("050")).newestSeen());
    }
  }
}
