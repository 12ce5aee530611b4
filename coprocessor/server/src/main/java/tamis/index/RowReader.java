package tamis.index;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.util.Bytes;
import tamis.base.Fault;
import tamis.region.IndexedTable;

/** Reads rows of a region with one scanner that seeks from one to the next. */
public final class RowReader {
  private RowReader() {}

  /** The newest version of what indexes need of the rows, or of the whole rows. */
  static Map<byte[], RowImage> readSeen(Source source, IndexedTable table, SortedMap<byte[], ?> rows, boolean whole)
      throws IOException {
    Scan scan = new Scan();
    if (whole || table.indexesNull) { // whether the row exists, by any cell
      for (byte[] family : table.families) scan.addFamily(family);
    } else {
      for (Map.Entry<byte[], TreeMap<byte[], Integer>> family : table.indexed().entrySet()) {
        for (byte[] qualifier : family.getValue().keySet()) scan.addColumn(family.getKey(), qualifier);
      }
    }
    Map<byte[], RowImage> images = images(table, rows, false);
    read(source, rows, scan.readVersions(1), images);
    return images;
  }

  /** Adds all versions and tombstones from the time stamp on: mostly there are none, and no file need be looked at. */
  static void addSince(Source source, IndexedTable table, SortedMap<byte[], ?> rows, long timestamp,
      Map<byte[], RowImage> images) throws IOException {
    Scan scan = new Scan().setRaw(true).readAllVersions().setTimeRange(timestamp, Long.MAX_VALUE);
    for (byte[] family : table.families) scan.addFamily(family);
    read(source, rows, scan, images);
  }

  /** All versions and tombstones that there are. */
  static Map<byte[], RowImage> readRaw(Source source, IndexedTable table, SortedMap<byte[], ?> rows)
      throws IOException {
    Scan scan = new Scan().setRaw(true).readAllVersions();
    for (byte[] family : table.families) scan.addFamily(family);
    Map<byte[], RowImage> images = images(table, rows, true);
    read(source, rows, scan, images);
    return images;
  }

  private static Map<byte[], RowImage> images(IndexedTable table, SortedMap<byte[], ?> rows, boolean raw) {
    Map<byte[], RowImage> images = new TreeMap<>(Bytes.BYTES_COMPARATOR);
    for (byte[] row : rows.keySet()) images.put(row, new RowImage(table, row, raw));
    return images;
  }

  private static void read(Source source, SortedMap<byte[], ?> rows, Scan scan, Map<byte[], RowImage> images)
      throws IOException {
    if (rows.isEmpty() || !scan.hasFamilies()) return;
    seek(source, scan, rows, (row, cells) -> images.get(row).addStored(cells));
  }

  /** Hears of the rows that are there. */
  public interface OnRow {
    void row(byte[] row, List<Cell> cells) throws IOException;
  }

  /** Opens scanners. */
  public interface Source {
    RegionScanner open(Scan scan) throws IOException;
  }

  /** REQUIRES: rows is not empty. */
  public static void seek(Source source, Scan scan, SortedMap<byte[], ?> rows, OnRow onRow) throws IOException {
    Fault.STREAM_CLOSED_IN_READ.happen();
    scan.withStartRow(rows.firstKey()).withStopRow(rows.lastKey(), true);
    try (RegionScanner scanner = source.open(scan)) {
      List<Cell> cells = new ArrayList<>();
      boolean first = true;
      boolean more = true;
      byte[] at = null; // the row that `cells` hold
      for (byte[] row : rows.keySet()) {
        if (at == null || Bytes.compareTo(at, row) < 0) {
          if (!more) break;
          if (!first) scanner.reseek(row);
          first = false;
          cells.clear();
          more = scanner.nextRaw(cells);
          if (cells.isEmpty()) {
            at = null;
            if (!more) break;
            continue;
          }
          at = CellUtil.cloneRow(cells.get(0));
        }
        if (Arrays.equals(at, row)) onRow.row(row, cells);
      }
    }
  }
}
