package tamis.server;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.base.Fault;
import tamis.feed.Clearing;
import tamis.feed.IndexFilter;
import tamis.feed.ValueRange;
import tamis.region.EntryKeys;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.ReadView;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Clears the cells of filters that removals have emptied, and narrows the range of values, in the background: it looks
 * into the index. IndexFilter says why this misses no row.
 *
 * Where cells expire nothing is cleared: a write that makes an entry younger is not registered, since the entry was
 * counted before, and a search may find that it has expired already.
 *
 * A search reads tombstones, too: entries that are gone may stand in HBase's files until it compacts them, and HBase's
 * own scanners pass over any number of them in one call. After MOST_ENTRIES keys of either kind the search gives up.
 *
 * Threads: safe.
 */
final class FilterClearer {
  static final int MOST_ENTRIES = 64; // keys that are looked at for one cell, or for one end of the range
  private static final int CELLS_AT_ONCE = 64;

  private static final Logger LOG = LoggerFactory.getLogger(FilterClearer.class);

  /** The state of the pass over a filter that is to come or under way. */
  private enum Pass { WAITS, RUNS, RUNS_AND_IS_WANTED_AGAIN }

  private final Workers.Timer timer;
  private final Executor executor;
  private final long delayNs;
  private final Map<IndexFilter, Pass> passes = new ConcurrentHashMap<>();

  FilterClearer(Workers.Timer timer, Executor executor, long delayNs) {
    this.timer = timer;
    this.executor = executor;
    this.delayNs = delayNs;
  }

  /**
   * Looks at the index of the region after the delay, and again while there is more; once, if called again before. One
   * pass over a filter runs at a time: a second one would cancel the rounds of the first.
   */
  void enqueue(IndexedRegion region, Schema.Index index) {
    IndexFilter filter = region.filters.get(index.id);
    if (filter == null || region.table.expires) return;
    if (isToCome(filter)) return;
    orForget(filter, () -> timer.run(() -> handOver(region, index, filter), delayNs));
  }

  /** False: no pass over the filter was to come; one is now. */
  private boolean isToCome(IndexFilter filter) {
    boolean[] is = new boolean[1];
    passes.compute(filter, (same, pass) -> {
      is[0] = pass != null;
      return pass == null || pass == Pass.WAITS ? Pass.WAITS : Pass.RUNS_AND_IS_WANTED_AGAIN;
    });
    return is[0];
  }

  private void handOver(IndexedRegion region, Schema.Index index, IndexFilter filter) {
    orForget(filter, () -> executor.execute(() -> run(region, index, filter)));
  }

  private void orForget(IndexFilter filter, Runnable step) {
    boolean done = false;
    try {
      step.run();
      done = true;
    } finally {
      if (!done) passes.remove(filter); // memory may have run out, or threads: a later write calls again
    }
  }

  private void run(IndexedRegion region, Schema.Index index, IndexFilter filter) {
    if (!passes.replace(filter, Pass.WAITS, Pass.RUNS)) return; // given up when it was handed over
    boolean wantedAgain = false;
    try {
      // Cells that writes were registered for, and those of removals since.
      wantedAgain = clear(region, index, filter) && filter.wantsClearing();
    } catch (Throwable e) {
      // Nothing is cleared; a later write calls again.
      if (!region.isLeaving()) {
        LOG.warn("Cells of a filter of region {} are not cleared", region.info().getEncodedName(), e);
      }
    } finally {
      wantedAgain |= passes.remove(filter) == Pass.RUNS_AND_IS_WANTED_AGAIN;
    }
    if (wantedAgain) enqueue(region, index);
  }

  /** Clears all that may be cleared now. False: something was not decided, or no write allows it now. */
  boolean clear(IndexedRegion region, Schema.Index index, IndexFilter filter) throws IOException {
    int undecided = 0;
    while (mayClear(region, index, filter) && undecided < CELLS_AT_ONCE) {
      ReadView old = Fault.CLEARED_BY_OLD_SNAPSHOT.isOn() ? new ReadView(region.region) : null;
      Clearing clearing = filter.beginClearing(CELLS_AT_ONCE);
      try (ReadView view = old != null ? old : new ReadView(region.region)) {
        if (clearing == null) return false;
        new Search(region, index, view).run(clearing);
      }
      filter.endClearing(clearing);
      undecided += clearing.undecided.size() + (clearing.range && !clearing.rangeKnown ? 1 : 0);
      if (clearing.cells.length < CELLS_AT_ONCE) return undecided == 0;
    }
    return false;
  }

  private static boolean mayClear(IndexedRegion region, Schema.Index index, IndexFilter filter) {
    boolean complete = region.complete().contains(index.id) || Fault.CLEARED_WHILE_INCOMPLETE.isOn();
    return complete && !region.table.expires && !region.isClosing() && region.filters.get(index.id) == filter;
  }

  /** The search for the entries that a round of clearing asks for, in one snapshot. */
  private final class Search {
    final IndexedRegion region;
    final Schema schema;
    final Schema.Index index;
    final ReadView view;
    final byte[] prefix;
    final byte[] end;

    Search(IndexedRegion region, Schema.Index index, ReadView view) {
      this.region = region;
      this.schema = region.table.schema;
      this.index = index;
      this.view = view;
      prefix = region.keys.index(index.id);
      end = Key.prefixEnd(prefix);
    }

    void run(Clearing clearing) throws IOException {
      for (int cell : clearing.cells) lookAt(clearing, cell);
      if (!clearing.range) return;
      End first = findEnd(false);
      End last = findEnd(true);
      clearing.rangeKnown = first.known && last.known;
      if (clearing.rangeKnown && first.value != null) clearing.found = new ValueRange(first.value, last.value);
    }

    void lookAt(Clearing clearing, int cell) throws IOException {
      try (RegionScanner keys = keys(Key.concat(prefix, clearing.map.lowestOf(cell)), false)) {
        for (int seen = 0; seen < MOST_ENTRIES; ++seen) {
          byte[] key = next(keys);
          int of = key == null ? Integer.MAX_VALUE : clearing.map.cellOf(firstOf(key));
          if (of > cell) clearing.empty.add(cell);
          if (of > cell || (of == cell && stands(key))) return;
        }
        if (next(keys) == null || Fault.UNDECIDED_IS_EMPTY.isOn()) clearing.empty.add(cell);
        else clearing.undecided.add(cell);
      } catch (DamagedBytesException e) {
        clearing.undecided.add(cell);
      }
    }

    End findEnd(boolean last) throws IOException {
      try (RegionScanner keys = keys(last ? end : prefix, last)) {
        for (int seen = 0; seen < MOST_ENTRIES; ++seen) {
          byte[] key = next(keys);
          if (key == null) return new End(true, null);
          if (stands(key)) return new End(true, firstOf(key));
        }
      } catch (DamagedBytesException e) {
        // It is not known.
      }
      return new End(false, null);
    }

    /** The keys of the index from this one on, or down from it, of which anything is left. */
    RegionScanner keys(byte[] from, boolean down) throws IOException {
      Scan scan = down ? ReadView.scanDown(from, prefix) : ReadView.scan(from, end);
      return view.open(scan.addFamily(IndexedTable.FAMILY).setRaw(true).setFilter(new FirstKeyOnlyFilter()));
    }

    /** Null: there are no more. */
    byte[] next(RegionScanner keys) throws IOException {
      List<Cell> cells = new ArrayList<>();
      for (boolean more = true; more;) {
        more = keys.nextRaw(cells);
        if (cells.isEmpty()) continue;
        byte[] key = CellUtil.cloneRow(cells.get(0));
        cells.clear();
        if (Key.startsWith(key, prefix)) return key;
      }
      return null;
    }

    byte[] firstOf(byte[] key) throws DamagedBytesException {
      return region.keys.read(schema, index, key).first();
    }

    /** Whether the key is that of an entry of a row of the region, and not deleted. */
    boolean stands(byte[] key) throws IOException {
      EntryKeys.Kind kind = region.keys.kindOf(schema, key);
      if (kind != EntryKeys.Kind.ENTRY) return kind == EntryKeys.Kind.DAMAGED;
      Scan scan = new Scan().addFamily(IndexedTable.FAMILY).withStartRow(key).withStopRow(key, true);
      List<Cell> cells = new ArrayList<>();
      try (RegionScanner scanner = view.open(scan)) {
        scanner.nextRaw(cells);
      }
      return !cells.isEmpty();
    }
  }

  /** The first value of the smallest or the largest entry. A value. */
  private static final class End {
    final boolean known;
    final byte[] value; // null: there is no entry

    End(boolean known, byte[] value) {
      this.known = known;
      this.value = value;
    }
  }
}
