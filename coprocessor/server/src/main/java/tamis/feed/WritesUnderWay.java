package tamis.feed;

import java.util.TreeMap;
import java.util.function.Consumer;

/**
 * The first values of the entries that writes have counted in a filter and may not have committed yet. A search of the
 * index need not find them, so nothing may be concluded from what it does not find there. A write whose outcome is
 * unknown stays, until the entries are counted anew. Threads: exclusive access.
 */
final class WritesUnderWay {
  private final TreeMap<Long, byte[][]> writes = new TreeMap<>(); // by ticket
  private long last;

  /** Returns a ticket, which is not 0. */
  long enter(byte[][] firsts) {
    writes.put(last + 1, firsts);
    return ++last;
  }

  void leave(long ticket) {
    writes.remove(ticket);
  }

  /** Drops the writes with tickets up to this one. */
  void forgetUpTo(long ticket) {
    while (!writes.isEmpty() && writes.firstKey() <= ticket) writes.pollFirstEntry();
  }

  /** The ticket that was given last. */
  long last() {
    return last;
  }

  int size() {
    return writes.size();
  }

  /** Calls fn with the first value of each entry. */
  void forEach(Consumer<byte[]> fn) {
    for (byte[][] firsts : writes.values()) {
      for (byte[] first : firsts) fn.accept(first);
    }
  }
}
