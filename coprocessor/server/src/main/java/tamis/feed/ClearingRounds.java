package tamis.feed;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.TreeSet;
import tamis.base.Fault;

/**
 * The writes that are registered in a filter, and the round of clearing that is under way beside them: rules (a), (b),
 * (d) and (e) of tamis::IndexFilter, but that nothing is cleared beside a generation that is being built. Threads:
 * exclusive access.
 */
final class ClearingRounds {
  private final PublishedGeneration published;
  private final WritesUnderWay writes = new WritesUnderWay();
  private long rounds;
  private ClearingRound round; // null: none is under way
  private int nextCell; // after the last one that a round was to look at
  private int holds; // while there are any, entries of rows may be missing in the index

  ClearingRounds(PublishedGeneration published) {
    this.published = published;
  }

  // ---- Writes

  /** Registers a write before its commit. */
  long enter(Collection<IndexEntry> entries) {
    RegionCells cells = published.cells();
    byte[][] firsts = new byte[entries.size()][];
    int count = 0;
    for (IndexEntry entry : entries) firsts[count++] = entry.first();
    if (round != null && !Fault.CLEARED_DESPITE_WRITES.isOn()) {
      for (byte[] first : firsts) round.note(first, cells);
    }
    return writes.enter(firsts);
  }

  void leave(long ticket) {
    writes.leave(ticket);
  }

  /** Writes of unknown outcome leave little room for others. */
  boolean isStuck() {
    return writes.isStuck();
  }

  /** A generation begins, which is to count what the writes so far have left. */
  void mark() {
    writes.mark();
  }

  /** It is published. */
  void forgetMarked() {
    writes.forgetMarked();
    round = null;
  }

  // ---- Rounds

  /** From now on entries of rows may be missing in the index, until as many calls of release. */
  void hold() {
    ++holds;
    if (!Fault.CLEARED_WHILE_INCOMPLETE.isOn()) cancel();
  }

  void release() {
    --holds;
  }

  /** Whether the published generation is of the region's own entries, and its index has all of them. */
  boolean mayClear() {
    if (!published.isPublished() || published.isSpoilt()) return false;
    boolean complete = holds == 0 || Fault.CLEARED_WHILE_INCOMPLETE.isOn();
    boolean own = published.generation().counted || Fault.PARENTS_CELLS_CLEARED.isOn();
    return complete && own;
  }

  /** Whether begin may find something to look at. REQUIRES: mayClear(). */
  boolean isWanted() {
    FilterGeneration current = published.generation();
    return current.rangeStale || (current.cells != null && current.cells.removedFrom.count() > 0);
  }

  /** Null: there is nothing to look at. REQUIRES: mayClear(), and no round is under way. */
  Clearing begin(int mostCells) {
    FilterGeneration current = published.generation();
    if (writes.hasUnlisted() && !Fault.CLEARED_AMID_WRITES.isOn()) return null;
    ClearingRound begun = new ClearingRound(rounds + 1, current.rangeStale);
    RegionCells cells = current.cells;
    Set<Integer> busy = new HashSet<>();
    if (!Fault.CLEARED_AMID_WRITES.isOn()) {
      writes.forEach(first -> {
        if (cells != null) busy.add(cells.map.cellOf(first));
        begun.added = ValueRange.widened(begun.added, first);
      });
    }
    int[] named = cells == null ? new int[0] : take(cells, busy, mostCells);
    if (named.length == 0 && !begun.range) return null;
    for (int cell : named) begun.cells.add(cell);
    current.rangeStale = false;
    rounds = begun.number;
    round = begun;
    return new Clearing(begun.number, cells == null ? null : cells.map, named, begun.range);
  }

  /**
   * Takes cells out of those that entries were removed from, from the one after the last that was taken on, so that
   * cells that are never decided do not keep others waiting.
   */
  private int[] take(RegionCells cells, Set<Integer> busy, int most) {
    Set<Integer> named = new TreeSet<>();
    int all = cells.map.cells();
    int begin = Math.min(nextCell, all);
    for (int part = 0; part < 2; ++part) {
      int end = part == 0 ? all : begin;
      int cell = cells.removedFrom.next(part == 0 ? begin : 0);
      for (; cell < end && named.size() < most; cell = cells.removedFrom.next(cell + 1)) {
        if (busy.contains(cell)) continue;
        if (cells.occupied.contains(cell)) named.add(cell);
        cells.removedFrom.erase(cell);
        nextCell = cell + 1;
      }
    }
    return named.stream().mapToInt(Integer::intValue).toArray();
  }

  /**
   * Ends the round, if it is under way still, and clears what its search has proven to be empty. REQUIRES: mayClear().
   */
  void end(Clearing clearing) {
    if (round == null || round.number != clearing.round) return;
    ClearingRound ended = forget();
    FilterGeneration current = published.generation();
    if (current.cells != null) {
      published.clearCells(ended.emptyOf(clearing));
      ended.undecidedOf(clearing).forEach(current.cells.removedFrom::insert);
    }
    if (!clearing.range) return;
    if (!clearing.rangeKnown) { // deleted entries may be in the way, until HBase compacts them
      current.rangeStale = true;
      return;
    }
    ValueRange range = ValueRange.union(clearing.found, ended.added);
    if (ValueRange.isSame(current.range, range)) return;
    // A write that bounds it may have been undone meanwhile, when its value was none of the ends.
    current.rangeStale |= !ValueRange.isSame(range, clearing.found);
    published.narrow(range);
  }

  /** The round that is under way clears nothing any more. Returns it; null: there was none. */
  ClearingRound forget() {
    ClearingRound ended = round;
    round = null;
    return ended;
  }

  /** Nothing is cleared by the round any more; what it was to look at is to be looked at again. */
  void cancel() {
    ClearingRound cancelled = forget();
    FilterGeneration current = published.generation();
    if (cancelled == null || current == null) return;
    if (current.cells != null) cancelled.cells.forEach(current.cells.removedFrom::insert);
    current.rangeStale |= cancelled.range;
  }
}
