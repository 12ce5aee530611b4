package tamis.search;

import java.util.Map;
import java.util.TreeMap;
import tamis.table.Key;

/**
 * The least of the entries that were added, as many as may be held, in their order; and their row keys. Threads:
 * exclusive access.
 */
final class LeastEntries {
  private final TreeMap<Key, byte[]> rows = new TreeMap<>(); // by entry
  private final long most;
  private long bytes; // of entries, which end with their row keys
  private boolean dropped;

  LeastEntries(long most) {
    this.most = most;
  }

  void add(byte[] entry, byte[] row) {
    rows.put(new Key(entry), row);
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
