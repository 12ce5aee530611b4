package tamis.search;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import tamis.base.StatusException;
import tamis.pb.Cluster;
import tamis.region.RowCursor;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;
import tamis.table.Value;

/**
 * Puts rows into the order of an index's entries in which a search counts, where the entries cannot be walked or cost
 * more than the rows. Threads: exclusive access.
 */
final class EntrySort {
  private static final int BATCH = 32; // rows read at once

  private final SearchedRows rows;
  private final SearchPage page;
  private final Schema schema;
  private final Cluster.IndexStream order;
  private final Schema.Index index;
  private final LeastEntries least;

  EntrySort(SearchedRows rows, SearchPage page, Schema schema, Cluster.IndexStream order) throws StatusException {
    this.rows = rows;
    this.page = page;
    this.schema = schema;
    this.order = order;
    index = schema.index(order.getIndexId());
    // A continuation in the order of an index is of no use without it.
    if (index == null) throw new StatusException(Cluster.Error.Code.UNAVAILABLE, "the index is not known here");
    least = new LeastEntries(page.position.isDescending(), Math.max(page.maxRows, SearchPage.MAX_CANDIDATES));
  }

  /** The entries of all rows; null when the time is over and the page has rows, which are of the whole range. */
  LeastEntries ofRows() throws IOException {
    try (RowCursor cursor = rows.scan(page.start, page.end)) {
      for (List<Cell> cells = cursor.next(); cells != null; cells = cursor.next()) {
        byte[] key = CellUtil.cloneRow(cells.get(0));
        if (page.isOutOfTime()) {
          if (page.rows() > 0) return null; // rows of earlier branches
          // The least entries are known only of the rows up to here: the answer is for those.
          page.end = key;
          break;
        }
        page.setCameSomeWay();
        ++page.counts.rowsRead;
        add(key, cells);
      }
    }
    return least;
  }

  /** The entries of the rows of an opened stream. */
  LeastEntries ofStream(BranchStreams.Stream stream) throws IOException, DamagedBytesException {
    List<byte[]> keys = new ArrayList<>();
    byte[] from = page.start;
    for (byte[] key = next(stream, from); key != null; key = next(stream, from)) {
      from = Key.after(key);
      keys.add(key);
      if (keys.size() >= BATCH) addAll(keys);
    }
    addAll(keys);
    page.setCameSomeWay();
    return least;
  }

  private byte[] next(BranchStreams.Stream stream, byte[] from) throws IOException, DamagedBytesException {
    if (stream.equality()) return stream.byKey.seek(from);
    byte[] entry = stream.byEntry.next();
    return entry == null ? null : Codec.rowKeyOf(schema, stream.index, entry);
  }

  private void addAll(List<byte[]> keys) throws IOException {
    if (keys.isEmpty()) return;
    Map<Key, List<Cell>> read = rows.read(keys);
    for (byte[] key : keys) {
      ++page.counts.rowsRead;
      List<Cell> cells = read.get(new Key(key));
      if (cells != null) add(key, cells);
    }
    keys.clear();
  }

  /** Adds the entry of the row if it is still to come. */
  private void add(byte[] key, List<Cell> cells) {
    Value[] row = page.isIn(key) ? rows.decode(key, cells, null) : null;
    byte[] entry = row == null ? null : Codec.entryOf(index, row, key);
    if (entry != null && BranchStreams.isIn(order, entry) && page.position.isToCome(entry)) least.add(entry, key);
  }
}
