package tamis.feed;

import java.nio.LongBuffer;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The removals that a generation of an index filter defers while the entries of a snapshot are counted into it;
 * tamis::HeldRemovals. The scan may reach an entry after the entry was removed, and counters must not be lowered for
 * what they do not hold yet. So a removal is held until the scan is over, with two exceptions that leave the sum as it
 * is: an entry with the same values that was added since is removed at once, and an entry with the same values that is
 * added later cancels the removal. Without them a value that comes and goes would fill its counters, which stick once
 * they are full, and would take the room of other removals.
 *
 * Memory is bounded: MOST distinct values in each of two maps. A removal beyond that is forgotten, and its bits stay
 * until the filter is counted again. Threads: exclusive access.
 */
final class HeldRemovals {
  /** Distinct values whose removals are held, and as many that were added and not removed. */
  static final int MOST = 1 << 16;

  /** NOW: the caller removes the entry from the counters. */
  enum Removal { NOW, HELD, FORGOTTEN }

  private final Map<LongBuffer, Long> added = new HashMap<>(); // by the hashes of an entry, and not removed again
  private final Map<LongBuffer, Long> held = new HashMap<>();

  /**
   * An entry is about to be added. True: a removal with the same values was held and is dropped; the caller must not
   * count the entry.
   */
  boolean cancel(long[] entry) {
    return take(held, LongBuffer.wrap(entry));
  }

  /** The counters hold an entry that was not cancelled. Called after they do. */
  void added(long[] entry) {
    put(added, LongBuffer.wrap(entry));
  }

  Removal remove(long[] entry) {
    LongBuffer key = LongBuffer.wrap(entry);
    if (take(added, key)) return Removal.NOW;
    return put(held, key) ? Removal.HELD : Removal.FORGOTTEN;
  }

  /** Calls `remove` for each held removal and drops it. */
  void drain(Consumer<long[]> remove) {
    for (Iterator<Map.Entry<LongBuffer, Long>> rest = held.entrySet().iterator(); rest.hasNext();) {
      Map.Entry<LongBuffer, Long> next = rest.next();
      for (long i = 0; i < next.getValue(); ++i) remove.accept(next.getKey().array());
      rest.remove();
    }
    clear();
  }

  void clear() {
    added.clear();
    held.clear();
  }

  /** Distinct values. */
  int size() {
    return held.size();
  }

  private static boolean put(Map<LongBuffer, Long> counts, LongBuffer entry) {
    Long times = counts.get(entry);
    if (times == null && counts.size() >= MOST) return false;
    counts.put(entry, times == null ? 1 : times + 1);
    return true;
  }

  private static boolean take(Map<LongBuffer, Long> counts, LongBuffer entry) {
    Long times = counts.get(entry);
    if (times == null) return false;
    if (times == 1) counts.remove(entry);
    else counts.put(entry, times - 1);
    return true;
  }
}
