package tamis.search;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import tamis.table.Key;

/**
 * The first of the entries that were added, in their order or in the reverse order, as many as may be held; and their
 * row keys. Threads: exclusive access.
 */
final class LeastEntries {
  private final TreeMap<Key, byte[]> rows; // by entry
  private final long most;
  private long bytes; // bytes of entries, which end with their row keys
  private boolean dropped;

  LeastEntries(boolean descending, long most) {
    rows = descending ? new TreeMap<>(Comparator.reverseOrder()) : new TreeMap<>();
    this.most = most;
  }

  void add(byte[] entry, byte[] row) {
    if (rows.put(new Key(entry), row) != null) return;
    bytes += entry.length;
    while (rows.size() > most || (bytes > EntryQueue.MAX_BYTES && rows.size() > 1)) {
      bytes -= rows.pollLastEntry().getKey().bytes().length;
      dropped = true;
    }
  }

  /** Row keys by their entries. */
  Iterable<Map.Entry<Key, byte[]>> inOrder() {
    return rows.entrySet();
  }

  /** There were more. */
  boolean dropped() {
    return dropped;
  }
}
