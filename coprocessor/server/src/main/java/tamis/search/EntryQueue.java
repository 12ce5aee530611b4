package tamis.search;

import java.util.ArrayDeque;

/**
 * Entries, or row keys of entries, that were read and are still to come, and their bytes. Threads: exclusive access.
 */
final class EntryQueue {
  /** More of one stream are not read ahead. */
  static final long MAX_BYTES = 4 << 20;

  private final ArrayDeque<byte[]> entries = new ArrayDeque<>();
  private long bytes;

  void add(byte[] entry) {
    entries.add(entry);
    bytes += entry.length;
  }

  /** Null when it is empty. */
  byte[] peek() {
    return entries.peek();
  }

  byte[] poll() {
    byte[] entry = entries.poll();
    if (entry != null) bytes -= entry.length;
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
