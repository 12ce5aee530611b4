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

/** The entries of one index of one region that lie in given ranges, in their order. Threads: exclusive access. */
final class EntryStream implements Closeable {
  private final ReadView view;
  private final byte[] prefix;
  private final byte[] last;
  private final SearchCounts counts;
  private final byte[][] lows;
  private final byte[][] highs; // empty: to the end of the index
  private final EntryQueue ahead = new EntryQueue();
  private RegionScanner scanner; // over all ranges: who comes to the next one seeks there
  private int range;
  private boolean ended;
  private boolean certain; // the entry returned last

  /** Reads the entries after `last`; all entries when it is empty. */
  EntryStream(ReadView view, byte[] indexPrefix, Cluster.IndexStream stream, byte[] last, SearchCounts counts) {
    this.view = view;
    this.prefix = indexPrefix;
    this.last = last;
    this.counts = counts;
    lows = new byte[stream.getRangesCount()][];
    highs = new byte[stream.getRangesCount()][];
    for (int i = 0; i < lows.length; ++i) {
      lows[i] = stream.getRanges(i).getLow().toByteArray();
      highs[i] = stream.getRanges(i).getHigh().toByteArray();
    }
    while (range < highs.length && isBehind(last)) ++range;
  }

  /** The values and row key lie behind the range that is read now. */
  private boolean isBehind(byte[] entry) {
    return highs[range].length > 0 && Key.compare(entry, highs[range]) >= 0;
  }

  /** Encoded values, then row key; null when there are no more. */
  byte[] next() throws IOException {
    if (ahead.isEmpty()) read();
    EntryQueue.Item entry = ahead.poll();
    certain = entry != null && entry.certain;
    return entry == null ? null : entry.bytes;
  }

  /** Whether the entry that `next` returned last has no mark. */
  boolean isCertain() {
    return certain;
  }

  /**
   * Holds the next n entries, or all that there are, which is true then; fewer where the time is over, or where they
   * are as many bytes as may be held. `next` reads none of them again.
   */
  boolean readAhead(long n, BooleanSupplier timeIsOver) throws IOException {
    while (ahead.size() < n) {
      if (ahead.bytes() >= EntryQueue.MAX_BYTES) return false;
      if (ahead.size() % KeyStream.LOOK_AT_CLOCK == 0 && timeIsOver.getAsBoolean()) return false;
      int before = ahead.size();
      read();
      if (ahead.size() == before) return true;
    }
    return false;
  }

  long ahead() {
    return ahead.size();
  }

  /** Adds the next entry, if there is one. */
  private void read() throws IOException {
    List<Cell> cells = new ArrayList<>();
    while (!ended && range < lows.length) {
      if (scanner == null && !open()) return;
      cells.clear();
      ended = !scanner.nextRaw(cells);
      if (cells.isEmpty()) continue;
      byte[] row = CellUtil.cloneRow(cells.get(0));
      byte[] entry = Arrays.copyOfRange(row, prefix.length, row.length);
      while (range < lows.length && isBehind(entry)) ++range;
      if (range == lows.length) return;
      if (Key.compare(entry, lows[range]) >= 0) {
        ++counts.entriesRead;
        ahead.add(entry, IndexedTable.isCertain(cells.get(0)));
        return;
      }
      if (ended) return;
      scanner.reseek(ReadView.firstRow(Key.concat(prefix, lows[range])));
      ++counts.indexSeeks;
    }
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
    scanner = view.open(ReadView.scan(from, to).addFamily(IndexedTable.FAMILY));
    ++counts.indexSeeks;
    return true;
  }

  @Override
  public void close() throws IOException {
    if (scanner != null) scanner.close();
  }
}
