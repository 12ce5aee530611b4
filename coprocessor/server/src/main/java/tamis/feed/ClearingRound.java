package tamis.feed;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import tamis.base.Fault;

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

  /** A write registers: it may commit after the snapshot of the round. */
  void note(byte[] first, RegionCells current) {
    if (current != null) cells.remove(current.map.cellOf(first));
    added = ValueRange.widened(added, first);
  }

  /** The cells that were found empty, and for which no write has registered. */
  List<Integer> emptyOf(Clearing clearing) {
    List<Integer> found = new ArrayList<>();
    for (int cell : clearing.cells) {
      boolean unwritten = cells.contains(cell) || Fault.CLEARED_DESPITE_WRITES.isOn();
      if (clearing.empty.contains(cell) && unwritten) found.add(cell);
    }
    return found;
  }

  /** The cells to be looked at again: it is not known whether they are empty, or a write may have filled them. */
  Set<Integer> undecidedOf(Clearing clearing) {
    Set<Integer> again = new HashSet<>(clearing.undecided);
    for (int cell : clearing.empty) {
      if (!cells.contains(cell)) again.add(cell);
    }
    return again;
  }
}
