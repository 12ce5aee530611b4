package tamis.server;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import tamis.feed.FilterFeed;
import tamis.feed.IndexFilter;
import tamis.index.IndexBuilder;
import tamis.region.IndexedRegion;
import tamis.region.IndexedTable;
import tamis.region.InheritedFilters;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * Keeps the filters of regions that this server closed cleanly, for the daughters of a split: a parent's filter
 * has every value that a daughter can hold. So a copy of it serves a daughter until its own filter is counted, which
 * for the upper daughter follows the building of its entries.
 *
 * A copy is used only if nothing was written in between: at the first opening of a daughter after the last closing of
 * its parent. HBase opens a region with the sequence number that follows the last edit of it or of its parent, and
 * every edit, opening and closing takes a number.
 *
 * Threads: safe.
 */
final class ParentFilters {
  private static final Logger LOG = LoggerFactory.getLogger(ParentFilters.class);

  private static final class Left {
    final IndexedTable table;
    final byte[] start;
    final byte[] end;
    final Map<Integer, IndexFilter> filters;
    final long lastEdit;
    final String restored; // the last restoring of the table
    long bytes;

    Left(IndexedRegion region, long lastEdit, String restored) {
      table = region.table;
      start = region.info().getStartKey();
      end = region.info().getEndKey();
      filters = region.filters;
      this.lastEdit = lastEdit;
      this.restored = restored;
      for (IndexFilter filter : filters.values()) bytes += filter.sizeBytes();
    }

    boolean covers(IndexedRegion daughter) {
      byte[] heirEnd = daughter.info().getEndKey();
      return Key.compare(start, daughter.info().getStartKey()) <= 0
          && (end.length == 0 || (heirEnd.length > 0 && Key.compare(heirEnd, end) <= 0));
    }
  }

  private final long maxBytes;
  private final Map<String, Left> left = new LinkedHashMap<>(); // by the region's name, the oldest first
  private long bytes;

  ParentFilters(long maxBytes) {
    this.maxBytes = maxBytes;
  }

  /** In postClose of a clean close: no write comes any more. */
  void leave(IndexedRegion region) {
    if (!(region.region instanceof HRegion)) return;
    try {
      leave(region, ((HRegion) region.region).getMVCC().getReadPoint(), IndexBuilder.lastRestoring(region));
    } catch (IOException e) {
      LOG.warn("The filters of region {} are not kept for what may be made of it", region.info().getEncodedName(), e);
    }
  }

  synchronized void leave(IndexedRegion region, long lastEdit, String restored) {
    String name = region.info().getEncodedName();
    forget(name);
    Left closed = new Left(region, lastEdit, restored);
    if (closed.bytes == 0) return;
    left.put(name, closed);
    bytes += closed.bytes;
    Iterator<String> oldest = left.keySet().iterator();
    while (bytes > maxBytes && oldest.hasNext()) {
      bytes -= left.get(oldest.next()).bytes;
      oldest.remove();
    }
  }

  synchronized long bytes() {
    return bytes;
  }

  private void forget(String name) {
    Left old = left.remove(name);
    if (old != null) bytes -= old.bytes;
  }

  /** Called in postOpen: nothing is written to the region yet. Null: no filter of its parent can be used. */
  InheritedFilters take(IndexedRegion daughter, FilterFeed feed) {
    try {
      return take(daughter, feed, IndexBuilder.origins(daughter), IndexBuilder.lastRestoring(daughter));
    } catch (IOException e) {
      LOG.warn("Region {} has no filter before its own are counted", daughter.info().getEncodedName(), e);
      return null;
    }
  }

  synchronized InheritedFilters take(IndexedRegion daughter, FilterFeed feed, Set<String> origins, String restored) {
    forget(daughter.info().getEncodedName()); // the region is opened again: its own old filters are out of date
    if (origins.size() != 1) return null;
    Left parent = left.get(origins.iterator().next());
    if (parent == null || parent.table.tableId != daughter.table.tableId || !parent.covers(daughter)
        || !parent.restored.equals(restored)) {
      return null;
    }
    Map<Integer, IndexFilter> filters = new HashMap<>();
    for (Schema.Index index : daughter.table.schema.indexes) {
      Schema.Index theirs = parent.table.schema.index(index.id);
      IndexFilter filter = parent.filters.get(index.id);
      boolean same =
          theirs != null && filter != null && theirs.seed == index.seed && Arrays.equals(theirs.columns, index.columns);
      IndexFilter copy = same ? filter.inheritedBy(feed, index, daughter.id, daughter.epoch) : null;
      if (copy != null) filters.put(index.id, copy);
    }
    return filters.isEmpty() ? null : new InheritedFilters(filters, parent.lastEdit);
  }
}
