package tamis.feed;

import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * The first values of the entries that writes have counted in a filter and may not have committed yet. A search of the
 * index need not find them, so nothing may be concluded from what it does not find there. A write whose outcome is
 * unknown stays, until the entries are counted again.
 *
 * Memory is bounded: a write for whose values there is no room is only counted, and as long as it has not left it may
 * add entries with any values. Threads: exclusive access.
 */
final class WritesUnderWay {
  static final long MAX_BYTES = 1 << 20;
  static final long WRITE_BYTES = 96; // about
  static final long ENTRY_BYTES = 32; // beside its value

  private static final long UNLISTED = 1L << 62; // in the tickets of writes that are only counted
  private static final long MANY = 4096; // more writes than there ever are under way at a time

  private final TreeMap<Long, byte[][]> writes = new TreeMap<>(); // by ticket
  private long last;
  private long bytes; // bytes of `writes`
  private long unlisted;
  private long unlistedSince; // the first ticket when there were none before
  private long marked; // the last ticket when `mark` was called
  private long unlistedMarked; // the number of unlisted ones up to it
  private long forgotten;

  /** Returns a ticket, which is not 0. */
  long enter(byte[][] firsts) {
    long size = bytesOf(firsts);
    if (size > MAX_BYTES - bytes) return enterUnlisted();
    writes.put(last + 1, firsts);
    bytes += size;
    return ++last;
  }

  private long enterUnlisted() {
    ++last;
    if (unlisted++ == 0) unlistedSince = last;
    return last | UNLISTED;
  }

  private static long bytesOf(byte[][] firsts) {
    long size = WRITE_BYTES;
    for (byte[] first : firsts) size += first.length + ENTRY_BYTES;
    return size;
  }

  void leave(long ticket) {
    if ((ticket & UNLISTED) != 0) {
      leaveUnlisted(ticket & ~UNLISTED);
    } else {
      drop(writes.remove(ticket));
    }
  }

  private void leaveUnlisted(long ticket) {
    if (ticket <= forgotten) return;
    --unlisted;
    if (ticket <= marked) --unlistedMarked;
  }

  private void drop(byte[][] firsts) {
    if (firsts != null) bytes -= bytesOf(firsts);
  }

  /** The entries are to be counted again from a snapshot that shows the writes so far. */
  void mark() {
    marked = last;
    unlistedMarked = unlisted;
  }

  /** They are: drops the writes up to the mark. */
  void forgetMarked() {
    while (!writes.isEmpty() && writes.firstKey() <= marked) drop(writes.pollFirstEntry().getValue());
    unlisted -= unlistedMarked;
    unlistedMarked = 0;
    forgotten = marked;
    unlistedSince = Math.max(unlistedSince, forgotten + 1);
  }

  /** Whether writes whose values are not known have not left. */
  boolean hasUnlisted() {
    return unlisted > 0;
  }

  /**
   * There is little room, and many writes have registered since those that take it. So these will not leave: their
   * outcome is unknown.
   */
  boolean isStuck() {
    if (unlisted > 0 && last - unlistedSince >= MANY) return true;
    return bytes > MAX_BYTES / 2 && last - writes.firstKey() >= MANY;
  }

  long sizeBytes() {
    return bytes;
  }

  /** Calls fn with the first value of each entry of the writes that are listed. */
  void forEach(Consumer<byte[]> fn) {
    for (byte[][] firsts : writes.values()) {
      for (byte[] first : firsts) fn.accept(first);
    }
  }
}
