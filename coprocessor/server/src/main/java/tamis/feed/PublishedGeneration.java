package tamis.feed;

import java.util.Collection;
import java.util.List;
import java.util.stream.Collectors;
import tamis.base.Fault;
import tamis.pb.Cluster;

/**
 * The published generation of an index filter, or none, and the events that report it to coordinators;
 * tamis::PublishedGeneration. Each of its bits that is set, and a range that covers each of its values, is reported
 * before the call that made it returns.
 *
 * If memory runs out between a change and its report, the generation is spoilt: a later write of the same value would
 * change nothing and so wait for nothing. It is to be dropped, which coordinators are told, before the next write.
 * Threads: exclusive access.
 */
final class PublishedGeneration {
  private final FilterEvents events;
  private FilterGeneration current; // null: none is published
  private boolean spoilt;

  PublishedGeneration(FilterFeed feed, int indexId, long regionId, long epoch) {
    events = new FilterEvents(feed, indexId, regionId, epoch);
  }

  /** Null: none is published. */
  FilterGeneration generation() {
    return current;
  }

  boolean isPublished() {
    return current != null;
  }

  /** Null: none is published, or it has no cells. */
  RegionCells cells() {
    return current == null ? null : current.cells;
  }

  boolean isSpoilt() {
    return spoilt;
  }

  // ---- Entries

  void add(Collection<IndexEntry> entries) {
    if (current == null) return;
    boolean done = false;
    try {
      events.tellAdded(current, current.add(entries, true));
      done = true;
    } finally {
      if (!done) spoilt = !Fault.SPOILT_FILTER_KEPT.isOn();
    }
  }

  void remove(Collection<IndexEntry> entries) {
    if (current != null) events.tellRemoved(current, current.remove(entries, true));
  }

  /** True if there is none. */
  boolean mayContain(IndexEntry entry) {
    return current == null || current.mayContain(entry);
  }

  /**
   * The number of the event that coordinators must have applied before a row with these entries may be acknowledged; 0:
   * none.
   */
  long waitFor(Collection<IndexEntry> entries) {
    return events.waitFor(current, entries);
  }

  // ---- Clearing

  /** Clears the bits of cells that have no entries. REQUIRES: the generation has cells. */
  void clearCells(List<Integer> cells) {
    List<Integer> cleared = cells.stream().filter(current.cells.occupied::contains).collect(Collectors.toList());
    if (cleared.isEmpty()) return;
    // The bits are cleared first: a coordinator that gets no report goes on asking.
    cleared.forEach(current.cells.occupied::erase);
    events.tellCellsCleared(current, cleared);
  }

  /**
   * Where memory runs out, a coordinator may know the range, and a later write not that it has to wait until the
   * coordinator knows a wider one.
   */
  void narrow(ValueRange range) {
    boolean done = false;
    try {
      current.range = range;
      events.tellRange(current);
      done = true;
    } finally {
      if (!done) spoilt = !Fault.SPOILT_FILTER_KEPT.isOn();
    }
  }

  // ---- Publication

  /** The generation takes the place of the published one, or of none. If it throws, it does not. */
  void publish(FilterGeneration next) {
    events.tellPublished(next, current != null);
    current = next;
    spoilt = false;
  }

  /**
   * Coordinators forget the generation. Returns the number of the event, also if an earlier call dropped it: a
   * coordinator that has applied this event does not exclude the region by the filter. 0: there is no such event, or
   * coordinators have applied it.
   */
  long drop() {
    if (current == null) return events.replaced();
    long sequence = events.tellDropped(current);
    current = null;
    spoilt = false;
    return sequence;
  }

  /** A projection without bits. REQUIRES: one is published. */
  Cluster.Projection.Builder newProjection() {
    return events.newProjection(current);
  }
}
