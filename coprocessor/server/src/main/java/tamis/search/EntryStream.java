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
import tamis.pb.Cluster;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.table.Key;

/**
 * The entries of one index of one region that lie in given ranges, in their order or in the reverse order. Threads:
 * exclusive access.
 */
final class EntryStream implements Closeable {
  private final ReadView view;
  private final byte[] prefix;
  private final byte[] last;
  private final boolean descending;
  private final SearchCounts counts;
  private final byte[][] lows; // in the order in which the ranges are read
  private final byte[][] highs; // empty: to the end of the index
  private final EntryQueue ahead = new EntryQueue();
  private RegionScanner scanner; // over all ranges, with a seek to the next one; descending, over one
  private int range;
  private byte[] above; // descending: the entries of the range are below this; empty: no bound
  private boolean ended;
  private final List<Cell> cells = new ArrayList<>(); // the row that is read
  private byte[] readEntry; // null: there was none
  private byte[] readValue;
  private byte[] value; // the value of the entry returned last

  /** Reads the entries after `last` in that order; all entries when it is empty. */
  EntryStream(ReadView view, byte[] indexPrefix, Cluster.IndexStream stream, byte[] last, boolean descending,
      SearchCounts counts) {
    this.view = view;
    this.prefix = indexPrefix;
    this.last = last;
    this.descending = descending;
    this.counts = counts;
    lows = new byte[stream.getRangesCount()][];
    highs = new byte[stream.getRangesCount()][];
    for (int i = 0; i < lows.length; ++i) {
      Cluster.IndexRange next = stream.getRanges(descending ? lows.length - 1 - i : i);
      lows[i] = next.getLow().toByteArray();
      highs[i] = next.getHigh().toByteArray();
    }
    while (range < highs.length && last.length > 0 && isBehind(last)) ++range;
  }

  /** The values and row key lie after the range that is read now. */
  private boolean isBehind(byte[] entry) {
    if (descending) return Key.compare(entry, lows[range]) < 0;
    return highs[range].length > 0 && Key.compare(entry, highs[range]) >= 0;
  }

  /** Encoded values, then row key; null when there are no more. */
  byte[] next() throws IOException {
    EntryQueue.Item held = ahead.poll();
    if (held == null) read();
    value = held == null ? readValue : held.value;
    return held == null ? readEntry : held.bytes;
  }

  /** The value of the entry that `next` returned last. */
  byte[] value() {
    return value;
  }

  /**
   * Holds the next n entries, or all that there are, which is true then; fewer where the time is over, or where they
   * are as many bytes as may be held. `next` reads none of them again.
   */
  boolean readAhead(long n, BooleanSupplier timeIsOver) throws IOException {
    while (ahead.size() < n) {
      if (ahead.bytes() >= EntryQueue.MAX_BYTES) return false;
      if (ahead.size() % KeyStream.LOOK_AT_CLOCK == 0 && timeIsOver.getAsBoolean()) return false;
      read();
      if (readEntry == null) return true;
      ahead.add(readEntry, readValue);
    }
    return false;
  }

  long ahead() {
    return ahead.size();
  }

  /** Sets readEntry and readValue. */
  private void read() throws IOException {
    readEntry = null;
    readValue = null;
    if (descending) readDown();
    else readUp();
  }

  private void readUp() throws IOException {
    while (!ended && range < lows.length) {
      if (scanner == null && !open()) return;
      cells.clear();
      ended = !scanner.nextRaw(cells);
      if (cells.isEmpty()) continue;
      byte[] row = CellUtil.cloneRow(cells.get(0));
      byte[] next = Arrays.copyOfRange(row, prefix.length, row.length);
      while (range < lows.length && isBehind(next)) ++range;
      if (range == lows.length) return;
      if (Key.compare(next, lows[range]) >= 0) {
        found(next, IndexedTable.valueOf(cells.get(0)));
        return;
      }
      if (ended) return;
      scanner.reseek(ReadView.firstRow(Key.concat(prefix, lows[range])));
      ++counts.indexSeeks;
    }
  }

  private void found(byte[] next, byte[] valueOfNext) {
    ++counts.entriesRead;
    readEntry = next;
    readValue = valueOfNext;
  }

  /** HBase's reversed scanners cannot seek down: each range has its own. */
  private void readDown() throws IOException {
    for (; range < lows.length; ++range) {
      if (scanner == null && !openDown()) continue;
      cells.clear();
      while (scanner.nextRaw(cells) || !cells.isEmpty()) {
        if (cells.isEmpty()) continue;
        byte[] row = CellUtil.cloneRow(cells.get(0));
        byte[] valueOfNext = IndexedTable.valueOf(cells.get(0));
        cells.clear();
        // The scan begins at its first row, which is the first one that is not below.
        if (row.length < prefix.length) continue;
        byte[] next = Arrays.copyOfRange(row, prefix.length, row.length);
        if (!Key.startsWith(row, prefix)) continue;
        if (above.length > 0 && Key.compare(next, above) >= 0) continue;
        found(next, valueOfNext);
        return;
      }
      scanner.close();
      scanner = null;
    }
  }

  /** The entries of the range that are below `last`, from the last one down. */
  private boolean openDown() throws IOException {
    above = highs[range];
    if (last.length > 0 && (above.length == 0 || Key.compare(last, above) < 0)) above = last;
    byte[] low = lows[range];
    if (above.length > 0 && Key.compare(low, above) >= 0) return false;
    byte[] from = above.length > 0 ? Key.concat(prefix, above) : Key.prefixEnd(prefix);
    scanner = view.open(ReadView.scanDown(from, Key.concat(prefix, low)).addFamily(IndexedTable.FAMILY));
    ++counts.indexSeeks;
    return true;
  }

  private boolean open() throws IOException {
    byte[] behind = last.length == 0 ? last : Key.after(last);
    byte[] from = Key.concat(prefix, Key.compare(lows[range], behind) < 0 ? behind : lows[range]);
    byte[] high = highs[highs.length - 1];
    byte[] to = high.length > 0 ? Key.concat(prefix, high) : Key.prefixEnd(prefix);
    if (to.length > 0 && Key.compare(from, to) >= 0) {
      ended = true;
      return false;
    }
    scanner = view.open(ReadView.scanEntries(from, to));
    ++counts.indexSeeks;
    return true;
  }

  @Override
  public void close() throws IOException {
    if (scanner != null) scanner.close();
  }
}
