package tamis.feed;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import tamis.base.Fault;

/**
 * A generation of an index filter that is being built beside the published one: writes update it, and a scan counts the
 * entries that were there before. Nothing of it is reported. Removals may have to wait for the scan (HeldRemovals);
 * tamis::NextGeneration. Threads: exclusive access.
 */
final class NextGeneration {
  private final FilterGeneration generation;
  private final HeldRemovals heldRemovals = new HeldRemovals();

  NextGeneration(FilterGeneration generation) {
    this.generation = generation;
  }

  FilterGeneration generation() {
    return generation;
  }

  /**
   * An entry that cancels a held removal is not counted. The range is widened and the cell set for it all the same: the
   * scan may not have reached the entry that stays. Where memory runs out in between, too much is counted, never too
   * little.
   */
  void add(Collection<IndexEntry> entries) {
    List<IndexEntry> counted = new ArrayList<>(entries.size());
    for (IndexEntry entry : entries) {
      if (!Fault.REMOVALS_NOT_PAIRED.isOn() && heldRemovals.cancel(entry.hashes())) {
        generation.widen(entry.first());
        if (generation.cells != null) generation.cells.add(entry.first());
      } else {
        counted.add(entry);
      }
    }
    generation.add(counted, false);
    if (Fault.REMOVALS_NOT_PAIRED.isOn()) return;
    for (IndexEntry entry : counted) heldRemovals.added(entry.hashes());
  }

  void countExisting(Collection<IndexEntry> entries) {
    generation.counted = true;
    generation.add(entries, false);
  }

  void remove(Collection<IndexEntry> entries) {
    if (Fault.REMOVALS_NOT_HELD.isOn()) {
      generation.remove(entries, false);
      return;
    }
    for (IndexEntry entry : entries) {
      generation.leaveToClearer(entry.first());
      switch (heldRemovals.remove(entry.hashes())) {
        case NOW:
          generation.removeHashes(entry.hashes());
          break;
        case FORGOTTEN:
          --generation.entries;
          ++generation.forgotten;
          break;
        default:
      }
    }
  }

  /** The scan is over: carries out the removals that waited for it. */
  void removeHeld() {
    heldRemovals.drain(generation::removeHashes);
  }

  int heldRemovals() {
    return heldRemovals.size();
  }
}
