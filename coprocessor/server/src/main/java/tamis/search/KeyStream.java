package tamis.search;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import tamis.base.Closing;
import tamis.pb.Cluster;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.table.Key;

/**
 * The row keys of the index entries with given values, in row-key order; several values are merged. Threads: exclusive
 * access.
 */
final class KeyStream implements Closeable {
  /** The entries of one value. */
  private final class Cursor {
    final byte[] value; // encoded
    final byte[] prefix;
    final EntryQueue ahead = new EntryQueue(); // keys read and not passed
    RegionScanner scanner;
    boolean ended; // there are none but those ahead, as a step beyond them has shown
    private boolean more = true; // false once the scanner has ended

    Cursor(byte[] indexPrefix, byte[] value) {
      this.value = value;
      prefix = Key.concat(indexPrefix, value);
    }

    void advance(byte[] target) throws IOException {
      while (!ahead.isEmpty() && Key.compare(ahead.peek().bytes, target) < 0) ahead.poll();
      if (!ahead.isEmpty() || ended) return;
      if (scanner == null) {
        open(target);
        return;
      }
      // The next entry is often the wanted one, and a step costs less than a seek.
      take();
      if (ahead.isEmpty() || Key.compare(ahead.peek().bytes, target) >= 0) return;
      ahead.poll();
      if (!more) {
        ended = true;
        return;
      }
      scanner.reseek(ReadView.firstRow(Key.concat(prefix, target)));
      ++counts.indexSeeks;
      take();
    }

    private void open(byte[] target) throws IOException {
      byte[] first = Key.concat(prefix, Key.compare(target, start) < 0 ? start : target);
      byte[] stop = end.length > 0 ? Key.concat(prefix, end) : Key.prefixEnd(prefix);
      if (stop.length > 0 && Key.compare(first, stop) >= 0) {
        ended = true;
        return;
      }
      scanner = view.open(ReadView.scanEntries(first, stop));
      ++counts.indexSeeks;
      take();
    }

    private void take() throws IOException {
      List<Cell> cells = new ArrayList<>();
      while (cells.isEmpty() && more) more = scanner.nextRaw(cells);
      ended = cells.isEmpty();
      if (ended) return;
      ++counts.entriesRead;
      byte[] row = CellUtil.cloneRow(cells.get(0));
      ahead.add(Arrays.copyOfRange(row, prefix.length, row.length), IndexedTable.valueOf(cells.get(0)));
    }
  }

  static final int LOOK_AT_CLOCK = 64; // entries

  private final ReadView view;
  private final byte[] start; // the row keys' start; an empty end is none
  private final byte[] end;
  private final SearchCounts counts;
  private final List<Cursor> cursors = new ArrayList<>();
  private byte[] value; // the value of the key found last
  private byte[] entryValue;

  /** Reads the entries of the row keys from `start` to `end`. */
  KeyStream(
      ReadView view, byte[] indexPrefix, Cluster.IndexStream stream, byte[] start, byte[] end, SearchCounts counts) {
    this.view = view;
    this.start = start;
    this.end = end;
    this.counts = counts;
    for (Cluster.IndexRange range : stream.getRangesList()) {
      cursors.add(new Cursor(indexPrefix, range.getLow().toByteArray()));
    }
  }

  /** The first row key at or after the target; null when there is none. Targets must not fall. */
  byte[] seek(byte[] target) throws IOException {
    EntryQueue.Item least = null;
    for (Cursor cursor : cursors) {
      cursor.advance(target);
      EntryQueue.Item at = cursor.ahead.peek();
      if (at == null) continue;
      int order = least == null ? -1 : Key.compare(at.bytes, least.bytes);
      if (order == 0) entryValue = IndexedTable.UNCERTAIN; // the row has entries for several states
      if (order >= 0) continue;
      least = at;
      entryValue = at.value;
      value = cursor.value;
    }
    return least == null ? null : least.bytes;
  }

  /** The encoded values of an entry with the key that `seek` returned last. */
  byte[] values() {
    return value;
  }

  /** The value of that entry, or a mark. */
  byte[] entryValue() {
    return entryValue;
  }

  /**
   * Holds the next n keys, or all that there are, which is true then; fewer where the time is over, or where they are
   * as many bytes as may be held. `seek` reads none of them again.
   */
  boolean readAhead(long n, BooleanSupplier timeIsOver) throws IOException {
    long held = ahead();
    long bytes = 0;
    for (Cursor cursor : cursors) bytes += cursor.ahead.bytes();
    boolean all = true;
    for (Cursor cursor : cursors) {
      while (!cursor.ended && held < n && bytes < EntryQueue.MAX_BYTES) {
        if (held % LOOK_AT_CLOCK == 0 && timeIsOver.getAsBoolean()) return false;
        int before = cursor.ahead.size();
        long bytesBefore = cursor.ahead.bytes();
        if (cursor.scanner == null) cursor.open(start);
        else cursor.take();
        held += cursor.ahead.size() - before;
        bytes += cursor.ahead.bytes() - bytesBefore;
      }
      all &= cursor.ended;
    }
    return all;
  }

  long ahead() {
    long sum = 0;
    for (Cursor cursor : cursors) sum += cursor.ahead.size();
    return sum;
  }

  @Override
  public void close() throws IOException {
    List<RegionScanner> opened = new ArrayList<>();
    for (Cursor cursor : cursors) opened.add(cursor.scanner);
    Closing.all(opened);
  }
}
