package tamis.feed;

import tamis.filter.BitLayers;
import tamis.filter.LayeredFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.table.Schema;

/**
 * Which size and form the generations of one index filter get; tamis::FilterSizing.
 *
 * The first one is made for the values expected; each later one for the distinct hashes that the counters in use show,
 * whatever the number of entries; one that follows a generation which was too small while it was counted for several
 * times as many. A generation is counters where there is room for them, else bits alone. Threads: exclusive access.
 */
final class FilterSizing {
  private static final long LEAST_CAPACITY = 64;
  private static final int WORN_LAYERS = 3;
  // How many times larger the next generation is when one was too small while it was counted. With a smaller factor
  // more generations would be counted; with a larger one the last would be too empty.
  private static final long OUTGROWN_TIMES = 4;

  private final Schema.Index index;
  private SplitGeometry outgrown; // geometry of the next generation after one was too small; null: none was

  FilterSizing(Schema.Index index) {
    this.index = index;
  }

  /**
   * An empty filter for a generation that is to replace the published one, which may be null. Null: there is no room
   * for it.
   */
  LayeredFilter newFilter(FilterGeneration current, FilterRoom room) {
    SplitGeometry geometry = nextGeometry(current);
    boolean hasBits = current != null && current.filter.bitsOnly();
    if (room.hasForCounters(counterBytes(geometry), hasBits)) {
      return new ScalableSplitCountingBloomFilter(geometry, index.seed);
    }
    long bytes = bitBytes(geometry);
    boolean saves = current != null && bytes <= current.sizeBytes();
    return saves || room.hasForBits(bytes) ? new BitLayers(geometry) : null;
  }

  /** Whether there is room for the bits of a filter, where none is published. */
  boolean hasRoomForFirst(FilterRoom room) {
    return room.hasForBits(bitBytes(nextGeometry(null)));
  }

  /** Whether the generation that is being counted is larger than the published one, and than the room for it. */
  boolean isTooLarge(FilterGeneration next, FilterGeneration current, FilterRoom room) {
    long bytes = next.sizeBytes();
    if (current != null && bytes <= current.sizeBytes()) return false;
    return next.filter.bitsOnly() ? !room.hasForBits(bytes) : !room.hasForCounters(bytes, false);
  }

  /** Whether the filter has so many layers that it is slow: each is probed for each entry. */
  boolean isWorn(LayeredFilter filter) {
    return filter.layers() >= WORN_LAYERS;
  }

  /** The next generation is to be larger than this one. False: no larger one is possible. */
  boolean outgrow(FilterGeneration next) {
    SplitGeometry geometry = next.filter.geometry();
    SplitGeometry larger = geometryFor(OUTGROWN_TIMES * geometry.capacity());
    if (larger.slicePositions <= geometry.slicePositions) return false;
    outgrown = larger;
    return true;
  }

  /** The next generation is to have room for the values of this one, which will not be there any more by then. */
  void remember(FilterGeneration current) {
    outgrown = geometryFor(current.distinct());
  }

  /** A generation is published: it shows how large the next one is to be. */
  void published() {
    outgrown = null;
  }

  /** Whether a new generation would be bits alone instead of counters, or the other way. */
  boolean wantsOtherForm(FilterGeneration current, FilterRoom room) {
    boolean bits = current.filter.bitsOnly();
    // A cheap test that nearly always decides.
    if (room.hasForCounters(current.sizeBytes(), bits) != bits) return false;
    return room.hasForCounters(counterBytes(nextGeometry(current)), bits) == bits;
  }

  /** Whether the generation is too small or too large, and a new one would have another geometry. */
  boolean wantsOtherSize(FilterGeneration current) {
    LayeredFilter filter = current.filter;
    boolean large = filter.layers() == 1 && filter.fill(0) < 0.25
        && (current.counted || current.added >= filter.geometry().capacity());
    // A new generation of the same geometry would gain nothing.
    return (isWorn(filter) || large) && !geometryFor(current.distinct()).equals(filter.geometry());
  }

  private SplitGeometry nextGeometry(FilterGeneration current) {
    if (outgrown != null) return outgrown;
    return current == null ? SplitGeometry.of(index.fpr, index.expectedValues) : geometryFor(current.distinct());
  }

  private long counterBytes(SplitGeometry geometry) {
    return ScalableSplitCountingBloomFilter.layerBytes(geometry) + RegionCells.sizeBytes(index.cellMap);
  }

  private long bitBytes(SplitGeometry geometry) {
    return BitLayers.layerBytes(geometry) + RegionCells.sizeBytes(index.cellMap);
  }

  /** Capacities grow in steps of the square root of two: so there are few sizes, and filters of one share a matrix. */
  private SplitGeometry geometryFor(long distinct) {
    long least = Math.max(1, Math.min(index.expectedValues, LEAST_CAPACITY));
    long capacity = least;
    for (int halfSteps = 1; capacity < distinct && capacity < SplitGeometry.MAX_CAPACITY; ++halfSteps) {
      capacity = (long) Math.ceil(least * Math.pow(2, halfSteps / 2.0));
    }
    return SplitGeometry.of(index.fpr, capacity);
  }
}
