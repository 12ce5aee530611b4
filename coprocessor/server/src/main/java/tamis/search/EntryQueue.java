package tamis.search;

import java.util.ArrayDeque;

/**
 * Entries, or row keys of entries, that were read and are still to come, and their bytes. Threads: exclusive access.
 */
final class EntryQueue {
  /** More of one stream are not read ahead. */
  static final long MAX_BYTES = 4 << 20;

  /** One of them. A value. */
  static final class Item {
    final byte[] bytes;
    final boolean certain; // the entry has no mark: its row had one state when it was written

    Item(byte[] bytes, boolean certain) {
      this.bytes = bytes;
      this.certain = certain;
    }
  }

  private final ArrayDeque<Item> entries = new ArrayDeque<>();
  private long bytes;

  void add(byte[] entry, boolean certain) {
    entries.add(new Item(entry, certain));
    bytes += entry.length;
  }

  /** Null when it is empty. */
  Item peek() {
    return entries.peek();
  }

  /** Null when it is empty. */
  Item poll() {
    Item entry = entries.poll();
    if (entry != null) bytes -= entry.bytes.length;
    return entry;
  }

  boolean isEmpty() {
    return entries.isEmpty();
  }

  int size() {
    return entries.size();
  }

  long bytes() {
    return bytes;
  }
}
