package tamis.feed;

import java.util.ArrayDeque;

/**
 * The range of values that coordinators have applied, and those that were reported to them since. Ranges become wider
 * and narrower. Threads: exclusive access.
 */
final class ToldRanges {
  private static final class Told {
    final long sequence;
    final ValueRange range;

    Told(long sequence, ValueRange range) {
      this.sequence = sequence;
      this.range = range;
    }
  }

  private ValueRange acknowledged;
  private final ArrayDeque<Told> told = new ArrayDeque<>();

  /** Coordinators that have not applied what this follows from exclude nothing by a range. Takes no memory. */
  void begin(ValueRange range) {
    told.clear();
    acknowledged = range;
  }

  void add(long sequence, ValueRange range) {
    told.add(new Told(sequence, range));
  }

  /** Coordinators have applied all events up to this number. */
  void forgetUpTo(long sequence) {
    while (!told.isEmpty() && told.peek().sequence <= sequence) acknowledged = told.poll().range;
  }

  /**
   * The number of the event from which on every reported range covers the value; 0: so does the
   * one that they have applied, or the last one does not, since a later write has removed the value again.
   */
  long coversSince(byte[] value) {
    boolean covered = ValueRange.covers(acknowledged, value);
    long since = 0;
    for (Told next : told) {
      boolean covers = ValueRange.covers(next.range, value);
      if (covers && !covered) since = next.sequence;
      covered = covers;
    }
    return covered ? since : 0;
  }
}
