package tamis.hbase;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import tamis.pb.Cluster;
import tamis.table.Key;

/**
 * The row keys of the index entries with given values, in row-key order; several values are merged. Threads: exclusive
 * access.
 */
final class KeyStream implements AutoCloseable {
  /** The entries of one value. */
  private final class Cursor {
    final byte[] prefix;
    RegionScanner scanner;
    byte[] at;
    boolean more = true;

    Cursor(byte[] prefix) {
      this.prefix = prefix;
    }

    void advance(byte[] target) throws IOException {
      byte[] wanted = Key.concat(prefix, target);
      if (scanner == null) {
        Scan scan = new Scan().addFamily(IndexedTable.FAMILY).withStartRow(wanted);
        byte[] end = Key.prefixEnd(prefix);
        if (end.length > 0) scan.withStopRow(end);
        scanner = view.open(scan);
        ++counts.indexSeeks;
        next();
        return;
      }
      if (!more) {
        at = null;
        return;
      }
      // The next entry is often the wanted one, and a step costs less than a seek.
      next();
      if (at == null || Key.compare(at, target) >= 0 || !more) {
        if (at != null && Key.compare(at, target) < 0) at = null;
        return;
      }
      scanner.reseek(wanted);
      ++counts.indexSeeks;
      next();
    }

    private void next() throws IOException {
      List<Cell> cells = new ArrayList<>();
      more = scanner.nextRaw(cells);
      ++counts.entriesRead;
      if (cells.isEmpty()) {
        more = false;
        at = null;
        return;
      }
      byte[] row = CellUtil.cloneRow(cells.get(0));
      at = Arrays.copyOfRange(row, prefix.length, row.length);
    }
  }

  private final ReadView view;
  private final SearchCounts counts;
  private final List<Cursor> cursors = new ArrayList<>();

  KeyStream(ReadView view, byte[] indexPrefix, Cluster.IndexStream stream, SearchCounts counts) {
    this.view = view;
    this.counts = counts;
    for (Cluster.IndexRange range : stream.getRangesList()) {
      cursors.add(new Cursor(Key.concat(indexPrefix, range.getLow().toByteArray())));
    }
  }

  /** The first row key at or behind the target; null when there is none. Targets must not fall. */
  byte[] seek(byte[] target) throws IOException {
    byte[] least = null;
    for (Cursor cursor : cursors) {
      boolean behind = cursor.at == null ? cursor.more : Key.compare(cursor.at, target) < 0;
      if (behind) cursor.advance(target);
      if (cursor.at != null && (least == null || Key.compare(cursor.at, least) < 0)) least = cursor.at;
    }
    return least;
  }

  @Override
  public void close() throws IOException {
    for (Cursor cursor : cursors) {
      if (cursor.scanner != null) cursor.scanner.close();
    }
  }
}
