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
    final byte[] value; // the entry's value: a mark, or its included columns

    Item(byte[] bytes, byte[] value) {
      this.bytes = bytes;
      this.value = value;
    }

    long size() {
      return bytes.length + value.length;
    }
  }

  private final ArrayDeque<Item> entries = new ArrayDeque<>();
  private long bytes;

  void add(byte[] entry, byte[] value) {
    Item item = new Item(entry, value);
    entries.add(item);
    bytes += item.size();
  }

  /** Null when it is empty. */
  Item peek() {
    return entries.peek();
  }

  /** Null when it is empty. */
  Item poll() {
    Item entry = entries.poll();
    if (entry != null) bytes -= entry.size();
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
