package tamis.feed;

import java.util.HashSet;
import java.util.Set;

/** A round of clearing that is under way, as the filter keeps it. Threads: exclusive access. */
final class ClearingRound {
  final long number;
  final Set<Integer> cells = new HashSet<>(); // no write has registered for them
  final boolean range; // its ends are looked for
  ValueRange added; // the values of writes that have registered

  ClearingRound(long number, boolean range) {
    this.number = number;
    this.range = range;
  }

  /** A write registers: it may commit behind the snapshot of the round. */
  void note(byte[] first, RegionCells current) {
    if (current != null) cells.remove(current.map.cellOf(first));
    added = ValueRange.widened(added, first);
  }
}
