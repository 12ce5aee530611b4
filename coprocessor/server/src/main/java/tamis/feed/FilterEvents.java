package tamis.feed;

import java.util.Collection;
import java.util.List;
import tamis.base.Fault;
import tamis.filter.SplitGeometry;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;
import tamis.shaded.protobuf.ByteString;

/**
 * The reports about one filter to coordinators, by events of the feed, and those that are not acknowledged;
 * tamis::FilterEvents.
 *
 * A row may be acknowledged once coordinators have applied every event without which they could exclude its region:
 * those that reported the set bits of its values and of its cell, that of a range that covers its first value, and the
 * publication that replaced an older generation, or its drop. `waitFor` names the last one, whichever write it came
 * from.
 *
 * An OutOfMemoryError in a call that tells may leave coordinators without knowing of what the generation holds; the
 * filter must be dropped then. Threads: exclusive access. Lock order: the caller's lock before the feed's.
 */
final class FilterEvents {
  private final FilterFeed feed;
  private final int indexId;
  private final long regionId;
  private final long epoch;
  private final PendingFlips pending = new PendingFlips();
  private final ToldRanges toldRanges = new ToldRanges();
  private long replaced; // number of the publication that replaced an older one, or of the drop

  FilterEvents(FilterFeed feed, int indexId, long regionId, long epoch) {
    this.feed = feed;
    this.indexId = indexId;
    this.regionId = regionId;
    this.epoch = epoch;
  }

  private Event.Builder event(Event.Kind kind, FilterGeneration generation) {
    return Event.newBuilder().setKind(kind).setRegionId(regionId).setEpoch(epoch).setIndexId(indexId).setGeneration(
        generation.number);
  }

  /** Tells of additions to the published generation. */
  void tellAdded(FilterGeneration current, FilterGeneration.Changes changes) {
    if (changes.grown) {
      feed.append(event(Event.Kind.LAYER_ADDED, current).setLayers(current.filter.layers()));
    }
    if (!changes.flips.isEmpty() || !changes.cells.isEmpty()) {
      Event.Builder event = event(Event.Kind.FLIPS, current);
      changes.flips.forEach(event::addFlips);
      for (int cell : changes.cells) event.addCells(cell * 2 + 1);
      long sequence = feed.append(event);
      changes.flips.forEach(flip -> pending.add(flip / 2, sequence));
      for (int cell : changes.cells) pending.add(cellBit(cell), sequence);
    }
    if (changes.widened) tellRange(current);
  }

  /** The range became wider, or narrower. */
  void tellRange(FilterGeneration current) {
    Event.Builder event = event(Event.Kind.RANGE_WIDENED, current);
    setRange(current.range, event);
    long sequence = feed.append(event);
    Fault.allocate();
    toldRanges.add(sequence, current.range);
  }

  /** Bits were cleared, for which no write waits. */
  void tellRemoved(FilterGeneration current, FilterGeneration.Flips flips) {
    if (flips.isEmpty()) return;
    Event.Builder event = event(Event.Kind.FLIPS, current);
    flips.forEach(event::addFlips);
    feed.append(event, false);
  }

  void tellCellsCleared(FilterGeneration current, List<Integer> cells) {
    Event.Builder event = event(Event.Kind.FLIPS, current);
    for (int cell : cells) event.addCells(cell * 2);
    feed.append(event, false);
  }

  /**
   * The generation becomes the published one, in the place of an older one or of none. If it throws, nothing was
   * reported.
   */
  void tellPublished(FilterGeneration next, boolean replaces) {
    SplitGeometry geometry = next.filter.geometry();
    Event.Builder event = event(Event.Kind.INDEX_COMPLETE, next)
                              .setLayers(next.filter.layers())
                              .setGeometry(Cluster.Geometry.newBuilder()
                                               .setSlices(geometry.slices)
                                               .setSlicePositions((int) geometry.slicePositions));
    if (next.cells != null) event.setCellMap(next.cells.map.version()).setCellCount(next.cells.map.cells());
    setRange(next.range, event);
    // Nothing after this line takes memory: once the event is appended, the generation is published.
    long sequence = feed.append(event);
    if (replaces) replaced = sequence;
    pending.clear();
    toldRanges.begin(next.range);
  }

  /** The published generation goes. Returns the number of the event. */
  long tellDropped(FilterGeneration current) {
    long sequence = feed.append(event(Event.Kind.INDEX_DROPPED, current));
    pending.clear();
    toldRanges.begin(null);
    replaced = Fault.DROP_NOT_WAITED_FOR.isOn() ? 0 : sequence;
    return sequence;
  }

  /**
   * The number of the publication that replaced an older generation, or of the drop: coordinators without it exclude by
   * the old one. 0: there is no such event, or coordinators have applied it.
   */
  long replaced() {
    return replaced;
  }

  /**
   * The number of the event that coordinators must have applied before a row with these entries may be acknowledged; 0:
   * none. `current`: null if no generation is published.
   */
  long waitFor(FilterGeneration current, Collection<IndexEntry> entries) {
    forgetAcknowledged();
    long sequence = Fault.PUBLICATION_NOT_WAITED_FOR.isOn() ? 0 : replaced;
    if (current == null) return sequence; // dropped since the add: coordinators must have applied the drop
    SplitGeometry geometry = current.filter.geometry();
    for (IndexEntry entry : entries) {
      for (long hash : entry.hashes()) {
        if (pending.isEmpty()) break;
        int layer = current.filter.findLayer(hash);
        if (layer < 0) continue; // a later write has removed the value again
        for (int slice = 0; slice < geometry.slices; ++slice) {
          long bit = FilterGeneration.bitName(layer, geometry.position(hash, slice));
          sequence = Math.max(sequence, pending.toldAt(bit));
        }
      }
      if (current.cells != null && !pending.isEmpty() && !Fault.CELL_FLIPS_NOT_WAITED_FOR.isOn()) {
        sequence = Math.max(sequence, pending.toldAt(cellBit(current.cells.map.cellOf(entry.first()))));
      }
      sequence = Math.max(sequence, toldRanges.coversSince(entry.first()));
    }
    return sequence;
  }

  private void forgetAcknowledged() {
    long floor = feed.acknowledgedFloor();
    pending.forgetUpTo(floor);
    toldRanges.forgetUpTo(floor);
    if (replaced <= floor) replaced = 0;
  }

  /**
   * A projection with the range, and without bits, as of the feed's last event. REQUIRES: every event of the filter is
   * appended under the caller's lock.
   */
  Cluster.Projection.Builder newProjection(FilterGeneration current) {
    Cluster.Projection.Builder projection = Cluster.Projection.newBuilder()
                                                .setRegionId(regionId)
                                                .setEpoch(epoch)
                                                .setIndexId(indexId)
                                                .setGeneration(current.number)
                                                .setAsOf(feed.last());
    if (current.range == null) return projection;
    return projection.setHasRange(true)
        .setMin(ByteString.copyFrom(current.range.min))
        .setMax(ByteString.copyFrom(current.range.max));
  }

  private static void setRange(ValueRange range, Event.Builder event) {
    if (range == null) return;
    event.setHasRange(true).setMin(ByteString.copyFrom(range.min)).setMax(ByteString.copyFrom(range.max));
  }

  /** The name of a cell's bit among those of the filter's: a layer that no filter has. */
  private static long cellBit(int cell) {
    return (1L << 62) + cell;
  }
}
