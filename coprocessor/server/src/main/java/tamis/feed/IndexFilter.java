package tamis.feed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import tamis.base.Fault;
import tamis.filter.BitLayers;
import tamis.filter.CellSet;
import tamis.filter.LayeredFilter;
import tamis.filter.ScalableSplitCountingBloomFilter;
import tamis.filter.SplitGeometry;
import tamis.pb.Cluster;
import tamis.pb.Cluster.Event;
import tamis.shaded.protobuf.ByteString;
import tamis.table.Hash;
import tamis.table.Schema;

/**
 * The values of one index in one opening of a region: the counters, which of their flips coordinators have not
 * acknowledged yet, and the smallest and largest value; described at tamis::IndexFilter. At most two generations of
 * counters: the published one, whose flips are sent, and one that is being built beside it. Where memory is short a
 * generation is bits alone. Where the index has a cell map, a generation has one bit a cell besides.
 *
 * A removal leaves the cell's bit, and the smallest and largest value. They are cleared and narrowed by the protocol
 * (a) to (e) of tamis::IndexFilter: a write registers by `add` before its commit, and leaves behind it, which in HBase
 * is after its MVCC number is complete, since the scanners of others do not see it before; one whose outcome is
 * unknown never leaves: it is registered until the entries are counted anew. `beginClearing` names cells without
 * registered writes, a search looks for their entries in a younger snapshot of the region, and `endClearing` clears
 * those for which no write has registered since. Nothing is cleared while entries may be missing in the index, in a
 * filter that is a copy of a parent's, or beside a generation that is being built.
 *
 * Threads: safe. Lock order: before the feed.
 */
public final class IndexFilter {
  private static final long LEAST_CAPACITY = 64;
  private static final long IGNORED_AN_ENTRY = 4;
  private static final long IGNORED_AN_ENTRY_OF_BITS = 1;
  private static final int WORN_LAYERS = 3;
  // How many times larger the next generation is when one was too small while it was counted. With a smaller factor
  // more generations would be counted; with a larger one the last would be too empty.
  private static final long OUTGROWN_TIMES = 4;
  private static final LayeredFilter.OnFlip UNTOLD = (layer, position, set) -> {};

  private final FilterFeed feed;
  private final Schema.Index index;
  private final long regionId;
  private final long epoch;

  private FilterGeneration current; // published
  private FilterGeneration next; // being built
  private final HeldRemovals heldRemovals = new HeldRemovals(); // of `next`
  private SplitGeometry outgrown; // geometry of the next generation after one was too small; null: none was
  private long generations;
  private boolean retired;
  private boolean missing; // none is published although one should be: there was no room, or counting it failed
  private final PendingFlips pending = new PendingFlips();
  private final ToldRanges toldRanges = new ToldRanges();
  private boolean spoilt; // bits of the published generation may be set that coordinators are never told of
  private long replaced; // number of the publication that replaced an older one, or of the drop

  private final ClearingRounds rounds = new ClearingRounds();
  private int clearingHolds;

  public IndexFilter(FilterFeed feed, Schema.Index index, long regionId, long epoch) {
    this.feed = feed;
    this.index = index;
    this.regionId = regionId;
    this.epoch = epoch;
  }

  /** Collects the flips of a batch, as an event has them, without an object for each. */
  private static final class Flips implements LayeredFilter.OnFlip {
    private final boolean tell; // false: they are flips of a generation that is not published
    private long[] flips = new long[32];
    private int size;

    Flips(boolean tell) {
      this.tell = tell;
    }

    @Override
    public void flip(int layer, long position, boolean set) {
      Fault.allocate();
      if (!tell) return;
      if (size == flips.length) flips = Arrays.copyOf(flips, 2 * size);
      flips[size++] = (((long) layer << 32) + position) * 2 + (set ? 1 : 0);
    }

    Event.Builder addTo(Event.Builder event) {
      for (int i = 0; i < size; ++i) event.addFlips(flips[i]);
      return event;
    }
  }

  private Event.Builder event(Event.Kind kind, FilterGeneration generation) {
    return Event.newBuilder().setKind(kind).setRegionId(regionId).setEpoch(epoch).setIndexId(index.id).setGeneration(
        generation.number);
  }

  // ---- Entries

  /**
   * Counts entries; to be called before they are committed. If it throws, they must not be committed; what was counted
   * of them stays counted, which does no harm. Returns the ticket under which the write is registered; 0: it need
   * not be.
   */
  public synchronized long add(Collection<IndexEntry> entries) {
    dropSpoilt();
    // Without a generation there is nothing to clear. One that begins later counts what is committed by then.
    if (current == null && next == null) return 0;
    long ticket = rounds.enter(entries, current == null ? null : current.cells);
    boolean done = false;
    try {
      if (next != null) addToNext(entries);
      if (current != null) addToCurrent(entries);
      done = true;
    } finally {
      if (!done || Fault.LEFT_BEFORE_COMMIT.isOn()) rounds.leave(ticket);
    }
    return ticket;
  }

  /** The entries are committed, and every scanner that is opened from now on sees them; or they never will be. */
  public synchronized void leave(long ticket) {
    rounds.leave(ticket);
  }

  private void addToCurrent(Collection<IndexEntry> entries) {
    boolean done = false;
    try {
      addTo(current, entries, true);
      done = true;
    } finally {
      if (!done) spoilt = !Fault.SPOILT_FILTER_KEPT.isOn();
    }
  }

  /**
   * Drops the filter if memory ran out between setting a bit and telling coordinators of it. A later write of the same
   * value would set no bit and so wait for nothing; so before it coordinators are told to forget the whole filter,
   * which is then counted anew.
   */
  private void dropSpoilt() {
    if (!spoilt) return;
    drop();
    missing = true;
    spoilt = false;
  }

  /** Uncounts entries; to be called after the commit that removed them. Returns wantsClearing(). */
  public synchronized boolean remove(Collection<IndexEntry> entries) {
    if (current != null) removeFrom(current, entries, true);
    if (next != null) removeFromNext(entries);
    return wantsClearing();
  }

  private void removeFromNext(Collection<IndexEntry> entries) {
    if (Fault.REMOVALS_NOT_HELD.isOn()) {
      removeFrom(next, entries, false);
      return;
    }
    for (IndexEntry entry : entries) {
      next.leaveToClearer(entry.first());
      switch (heldRemovals.remove(entry.hashes())) {
        case NOW:
          --next.entries;
          erase(next, entry.hashes(), UNTOLD);
          break;
        case FORGOTTEN:
          --next.entries;
          ++next.forgotten;
          break;
        default:
      }
    }
  }

  /**
   * An entry that cancels a held removal is not counted. The range is widened and the cell set for it all the same: the
   * scan may not have reached the entry that stays. Where memory runs out in between, too much is counted, never too
   * little.
   */
  private void addToNext(Collection<IndexEntry> entries) {
    List<IndexEntry> counted = new ArrayList<>(entries.size());
    for (IndexEntry entry : entries) {
      if (!Fault.REMOVALS_NOT_PAIRED.isOn() && heldRemovals.cancel(entry.hashes())) {
        next.widen(entry.first());
        if (next.cells != null) next.cells.add(entry.first());
      } else {
        counted.add(entry);
      }
    }
    addTo(next, counted, false);
    if (Fault.REMOVALS_NOT_PAIRED.isOn()) return;
    for (IndexEntry entry : counted) heldRemovals.added(entry.hashes());
  }

  private void addTo(FilterGeneration generation, Collection<IndexEntry> entries, boolean tell) {
    LayeredFilter filter = generation.filter;
    Flips flips = new Flips(tell);
    List<Integer> newCells = new ArrayList<>();
    boolean widened = false;
    int layersBefore = filter.layers();
    for (IndexEntry entry : entries) {
      generation.added += entry.hashes().length;
      ++generation.entries;
      for (long hash : entry.hashes()) filter.insert(hash, flips);
      widened |= generation.widen(entry.first());
      int cell = generation.cells == null ? -1 : generation.cells.add(entry.first());
      if (cell < 0) continue;
      Fault.allocate();
      newCells.add(cell);
    }
    if (!tell) return;
    if (filter.layers() != layersBefore) {
      feed.append(event(Event.Kind.LAYER_ADDED, generation).setLayers(filter.layers()));
    }
    if (flips.size > 0 || !newCells.isEmpty()) {
      Event.Builder event = event(Event.Kind.FLIPS, generation);
      flips.addTo(event);
      for (int cell : newCells) event.addCells(cell * 2 + 1);
      long sequence = feed.append(event);
      for (int i = 0; i < flips.size; ++i) pending.add(flips.flips[i] / 2, sequence);
      for (int cell : newCells) pending.add(cellBit(cell), sequence);
    }
    if (widened) tellRange(generation);
  }

  private void tellRange(FilterGeneration generation) {
    Event.Builder event = event(Event.Kind.RANGE_WIDENED, generation);
    if (generation.range != null) {
      event.setHasRange(true)
          .setMin(ByteString.copyFrom(generation.range.min))
          .setMax(ByteString.copyFrom(generation.range.max));
    }
    long sequence = feed.append(event);
    Fault.allocate();
    toldRanges.add(sequence, generation.range);
  }

  private void removeFrom(FilterGeneration generation, Collection<IndexEntry> entries, boolean tell) {
    Flips flips = new Flips(tell);
    for (IndexEntry entry : entries) {
      --generation.entries;
      generation.leaveToClearer(entry.first());
      erase(generation, entry.hashes(), flips);
    }
    if (flips.size > 0) feed.append(flips.addTo(event(Event.Kind.FLIPS, generation)), false);
  }

  private static void erase(FilterGeneration generation, long[] hashes, LayeredFilter.OnFlip note) {
    for (long hash : hashes) {
      generation.filter.erase(hash, note);
      if (Fault.BITS_CLEARED.isOn() && generation.filter.bitsOnly()) ((BitLayers) generation.filter).clear(hash, note);
    }
  }

  /** The name of a cell's bit among those of the filter's: a layer that no filter has. */
  private static long cellBit(int cell) {
    return (1L << 62) + cell;
  }

  /**
   * The number of the event that coordinators must have applied before a row with these entries may be acknowledged,
   * whichever write made the flips; 0: none.
   */
  public synchronized long waitFor(Collection<IndexEntry> entries) {
    dropSpoilt();
    Fault.allocate();
    forgetAcknowledged();
    long sequence = Fault.PUBLICATION_NOT_WAITED_FOR.isOn() ? 0 : replaced;
    if (current == null) return sequence; // dropped since our add: coordinators must have applied the drop
    SplitGeometry geometry = current.filter.geometry();
    for (IndexEntry entry : entries) {
      for (long hash : entry.hashes()) {
        if (pending.isEmpty()) break;
        int layer = current.filter.findLayer(hash);
        if (layer < 0) continue; // a later write has removed the value again
        for (int slice = 0; slice < geometry.slices; ++slice) {
          sequence = Math.max(sequence, pending.toldAt(((long) layer << 32) + geometry.position(hash, slice)));
        }
      }
      if (current.cells != null && !pending.isEmpty() && !Fault.CELL_FLIPS_NOT_WAITED_FOR.isOn()) {
        sequence = Math.max(sequence, pending.toldAt(cellBit(current.cells.map.cellOf(entry.first()))));
      }
      sequence = Math.max(sequence, toldRanges.coversSince(entry.first()));
    }
    return sequence;
  }

  /** Whether a row with these entries would have to wait if it were counted now. */
  public synchronized boolean wouldWait(Collection<IndexEntry> entries) {
    if (waitFor(entries) > 0) return true;
    if (current == null) return false;
    for (IndexEntry entry : entries) {
      if (!current.mayContain(entry)) return true;
    }
    return false;
  }

  private void forgetAcknowledged() {
    long floor = feed.acknowledgedFloor();
    pending.forgetUpTo(floor);
    toldRanges.forgetUpTo(floor);
    if (replaced <= floor) replaced = 0;
  }

  // ---- Generations

  /**
   * Begins an empty generation; from now on add and remove change both. Returns false, and begins none, if there is no
   * room for it or `allowed` says no. That is asked while the filter is locked, so that no generation of an index
   * begins after the index was dropped. REQUIRES: no writer is between its add and its commit, and the snapshot from
   * which the entries are counted shows all that stands of the writes that were (IndexedRegion.whileQuiet).
   */
  public synchronized boolean beginGeneration(BooleanSupplier allowed, FilterRoom room) {
    if (!allowed.getAsBoolean()) return false;
    SplitGeometry geometry = nextGeometry();
    long cellBytes = RegionCells.sizeBytes(index.cellMap);
    boolean counters =
        room.hasForCounters(ScalableSplitCountingBloomFilter.layerBytes(geometry) + cellBytes, isOfBits());
    long bitsBytes = BitLayers.layerBytes(geometry) + cellBytes;
    boolean saves = current != null && bitsBytes <= current.sizeBytes();
    missing = current == null;
    if (!counters && !saves && !room.hasForBits(bitsBytes)) return false;
    next = new FilterGeneration(++generations,
        counters ? new ScalableSplitCountingBloomFilter(geometry, index.seed) : new BitLayers(geometry),
        index.cellMap == null ? null : new RegionCells(index.cellMap));
    heldRemovals.clear();
    rounds.mark();
    if (!Fault.CLEARED_BESIDE_A_RECOUNT.isOn()) rounds.cancel(current);
    return true;
  }

  private SplitGeometry nextGeometry() {
    if (outgrown != null) return outgrown;
    return current == null ? SplitGeometry.of(index.fpr, index.expectedValues) : geometryFor(current.distinct());
  }

  /**
   * Counts entries that existed before beginGeneration. False: they are too many for the generation, which is given up;
   * the next one is larger. (How many values an index has is not known before, and a generation with many layers would
   * be slow, since each layer is probed for each entry.)
   */
  public synchronized boolean countExisting(Collection<IndexEntry> entries) {
    if (next == null) return true;
    next.counted = true;
    addTo(next, entries, false);
    return next.filter.layers() < WORN_LAYERS || !outgrow();
  }

  /** True if the generation that is being counted is larger than the published one, and than the room for it. */
  public synchronized boolean isTooLarge(FilterRoom room) {
    if (next == null || (current != null && next.sizeBytes() <= current.sizeBytes())) return false;
    long bytes = next.sizeBytes();
    return next.filter.bitsOnly() ? !room.hasForBits(bytes) : !room.hasForCounters(bytes, false);
  }

  /** Gives up the generation that is being counted, and makes the next one larger. False: no larger one is possible. */
  public synchronized boolean outgrow() {
    if (next == null) return false;
    SplitGeometry geometry = next.filter.geometry();
    SplitGeometry larger = geometryFor(OUTGROWN_TIMES * geometry.capacity());
    if (larger.slicePositions <= geometry.slicePositions) return false;
    abandonGeneration();
    outgrown = larger;
    return true;
  }

  synchronized int heldRemovals() {
    return heldRemovals.size();
  }

  public synchronized void publish() {
    if (next == null || retired) return;
    heldRemovals.drain(hashes -> {
      --next.entries;
      erase(next, hashes, UNTOLD);
    });
    SplitGeometry geometry = next.filter.geometry();
    Event.Builder event = event(Event.Kind.INDEX_COMPLETE, next)
                              .setLayers(next.filter.layers())
                              .setGeometry(Cluster.Geometry.newBuilder()
                                               .setSlices(geometry.slices)
                                               .setSlicePositions((int) geometry.slicePositions));
    if (next.cells != null) event.setCellMap(next.cells.map.version()).setCellCount(next.cells.map.cells());
    if (next.range != null) {
      event.setHasRange(true).setMin(ByteString.copyFrom(next.range.min)).setMax(ByteString.copyFrom(next.range.max));
    }
    // Nothing behind this line takes memory: once the event is appended, the generation is published.
    long sequence = feed.append(event);
    if (current != null) replaced = sequence;
    current = next;
    next = null;
    missing = false;
    spoilt = false;
    outgrown = null;
    pending.clear();
    toldRanges.begin(current.range);
    rounds.forgetMarked(); // those of unknown outcome among them: what stands is counted
  }

  /**
   * Makes the filter of a daughter of this region: a copy of the published generation is its next generation. Null:
   * none is published. REQUIRES: nothing is added to this filter any more, and nothing was written to the daughter yet.
   */
  public synchronized IndexFilter inheritedBy(FilterFeed feed, Schema.Index index, long regionId, long epoch) {
    if (current == null) return null;
    IndexFilter heir = new IndexFilter(feed, index, regionId, epoch);
    boolean sameCells =
        current.cells != null && index.cellMap != null && current.cells.map.version() == index.cellMap.version();
    heir.next =
        new FilterGeneration(++heir.generations, current.filter.copy(), sameCells ? current.cells.copy() : null);
    heir.next.range = current.range;
    heir.next.added = current.added;
    heir.next.entries = current.entries;
    return heir;
  }

  public synchronized void abandonGeneration() {
    next = null;
    heldRemovals.clear();
  }

  /** The region closes: nothing is published any more. */
  public synchronized void retire() {
    retired = true;
  }

  /**
   * Drops the filter: coordinators forget it, and nothing is counted before the next generation. Returns the number of
   * the event of the drop, also if an earlier call dropped it: a coordinator that has applied this event does not
   * exclude the region by the filter. 0: there is no such event, or coordinators have applied it.
   */
  public synchronized long drop() {
    next = null;
    heldRemovals.clear();
    missing = false;
    if (current == null) return replaced;
    long sequence = feed.append(event(Event.Kind.INDEX_DROPPED, current));
    current = null;
    rounds.end();
    pending.clear();
    toldRanges.begin(null);
    replaced = Fault.DROP_NOT_WAITED_FOR.isOn() ? 0 : sequence;
    return sequence;
  }

  /**
   * Drops the filter since there is no room for it. It is counted again once there is room for a filter of all its
   * present values.
   */
  public synchronized void giveUp() {
    if (current == null) return;
    outgrown = geometryFor(current.distinct());
    drop();
    missing = true;
  }

  /** Bytes of the published generation. */
  public synchronized long publishedBytes() {
    return current == null ? 0 : current.sizeBytes();
  }

  /**
   * Whether the published generation should be replaced by one counted anew, or is missing and there is room. Ignored
   * removals are a reason only once they are several times as many as the entries, and at least `ignored`: counting
   * reads all entries, also deleted ones in memory, and a full counter that was not lowered does no harm while rows
   * have its value. In a filter of bits alone each ignored removal may have left a value, so there the factor is
   * smaller. Writes of unknown outcome are a reason, too, once they leave little room for others.
   */
  public synchronized boolean wantsRebuild(long ignored, FilterRoom room) {
    if (next != null || retired) return false;
    if (current == null) {
      return missing && room.hasForBits(BitLayers.layerBytes(nextGeometry()) + RegionCells.sizeBytes(index.cellMap));
    }
    if (rounds.isStuck()) return true;
    LayeredFilter filter = current.filter;
    long anEntry = filter.bitsOnly() ? IGNORED_AN_ENTRY_OF_BITS : IGNORED_AN_ENTRY;
    long stayed = filter.ignoredErases() + current.forgotten;
    if (stayed >= Math.max(ignored, anEntry * current.entries) || wantsOtherForm(room)) return true;
    boolean small = filter.layers() >= WORN_LAYERS;
    boolean large = filter.layers() == 1 && filter.fill(0) < 0.25
        && (current.counted || current.added >= filter.geometry().capacity());
    // A new generation of the same geometry would gain nothing.
    return (small || large) && !geometryFor(current.distinct()).equals(filter.geometry());
  }

  private boolean wantsOtherForm(FilterRoom room) {
    boolean bits = current.filter.bitsOnly();
    // A cheap test that nearly always decides.
    if (room.hasForCounters(current.sizeBytes(), bits) != bits) return false;
    long cellBytes = RegionCells.sizeBytes(index.cellMap);
    return room.hasForCounters(ScalableSplitCountingBloomFilter.layerBytes(nextGeometry()) + cellBytes, bits) == bits;
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

  public synchronized boolean isPublished() {
    return current != null;
  }

  /** True if a generation is published that was counted from the region's own entries, not inherited. */
  public synchronized boolean isCounted() {
    return current != null && current.counted;
  }

  /** True if the published generation is bits alone. */
  public synchronized boolean isOfBits() {
    return current != null && current.filter.bitsOnly();
  }

  /** True if no filter is published although one should be, since there was no room for it or counting it failed. */
  public synchronized boolean isMissing() {
    return missing && next == null;
  }

  public synchronized long sizeBytes() {
    return (current == null ? 0 : current.sizeBytes()) + (next == null ? 0 : next.sizeBytes());
  }

  public synchronized boolean mayContain(IndexEntry entry) {
    return current == null || current.mayContain(entry);
  }

  /** Upper bound for the number of entries with these encoded values of leading columns; -1: none is known. */
  public synchronized long countBound(byte[] prefix) {
    return current == null ? -1 : current.filter.countBound(Hash.of(prefix, index.seed));
  }

  /** The answers of the published filter as of now, unchanged by later writes; null: none is published. */
  public synchronized Predicate<IndexEntry> frozen() {
    if (current == null) return null;
    RegionCells cells = current.cells == null ? null : current.cells.copy();
    FilterGeneration copy = new FilterGeneration(current.number, current.filter.copy(), cells);
    copy.range = current.range;
    return copy::mayContain;
  }

  /** The number of entries in the published filter; 0: none is published. */
  public synchronized long entries() {
    return current == null ? 0 : current.entries;
  }

  /** Cells of the published generation that are set. */
  public synchronized int occupiedCells() {
    return current == null || current.cells == null ? 0 : current.cells.occupied.count();
  }

  // ---- Clearing

  private boolean mayClear() {
    if (current == null || retired || spoilt) return false;
    boolean complete = clearingHolds == 0 || Fault.CLEARED_WHILE_INCOMPLETE.isOn();
    boolean alone = next == null || Fault.CLEARED_BESIDE_A_RECOUNT.isOn();
    boolean own = current.counted || Fault.PARENTS_CELLS_CLEARED.isOn();
    return complete && alone && own;
  }

  /** True if beginClearing may find something to do. */
  public synchronized boolean wantsClearing() {
    return mayClear() && (current.rangeStale || (current.cells != null && current.cells.removedFrom.count() > 0));
  }

  /** Begins a round of at most so many cells; a round before it ends. Null: there is nothing to be cleared now. */
  public synchronized Clearing beginClearing(int mostCells) {
    rounds.cancel(current);
    return mayClear() ? rounds.begin(current, mostCells) : null;
  }

  /** The search has ended, and `clearing` has its results. */
  public synchronized void endClearing(Clearing clearing) {
    if (!rounds.isUnderWay(clearing) || !mayClear()) return;
    ClearingRound round = rounds.end();
    if (current.cells != null) {
      clearCells(round.emptyOf(clearing));
      round.undecidedOf(clearing).forEach(current.cells.removedFrom::insert);
    }
    if (!clearing.range) return;
    if (!clearing.rangeKnown) { // deleted entries may be in the way, until HBase compacts them
      current.rangeStale = true;
      return;
    }
    ValueRange range = ValueRange.union(clearing.found, round.added);
    if (ValueRange.isSame(current.range, range)) return;
    // A write that bounds it may have been undone meanwhile, when its value was none of the ends.
    current.rangeStale |= !ValueRange.isSame(range, clearing.found);
    narrow(range);
  }

  /**
   * Where memory runs out, a coordinator may know the range, and a later write not that it has to wait until the
   * coordinator knows a wider one.
   */
  private void narrow(ValueRange range) {
    boolean done = false;
    try {
      current.range = range;
      tellRange(current);
      done = true;
    } finally {
      if (!done) spoilt = !Fault.SPOILT_FILTER_KEPT.isOn();
    }
  }

  private void clearCells(List<Integer> cells) {
    Event.Builder event = event(Event.Kind.FLIPS, current);
    for (int cell : cells) {
      if (current.cells.occupied.contains(cell)) event.addCells(cell * 2);
    }
    if (event.getCellsCount() == 0) return;
    // The bits are cleared first: a coordinator that is not told goes on asking.
    for (int flip : event.getCellsList()) current.cells.occupied.erase(flip / 2);
    feed.append(event, false);
  }

  /** From now on entries of rows may be missing in the index, until as many calls of releaseClearing. */
  public synchronized void holdClearing() {
    ++clearingHolds;
    if (!Fault.CLEARED_WHILE_INCOMPLETE.isOn()) rounds.cancel(current);
  }

  public synchronized void releaseClearing() {
    --clearingHolds;
  }

  // ---- Bits

  /**
   * The bits from the position that `from` names, at most maxBytes of them, but at least one word. All bits if `from`
   * names another generation. Null: no filter is published.
   */
  public Cluster.Projection project(Cluster.ColumnId from, long maxBytes) {
    Cluster.Projection.Builder projection;
    CellSet cells;
    synchronized (this) {
      if (current == null || (from.getCells() && current.cells == null)) return null;
      projection = projection();
      if (!from.getCells()) {
        current.projectLayers(from, maxBytes, projection);
        return projection.build();
      }
      projection.setCellMap(current.cells.map.version());
      cells = current.cells.occupied.copy(); // a large set is encoded while writes go on
    }
    FilterGeneration.projectCells(cells, from, maxBytes, projection);
    return projection.build();
  }

  /** With the range, and without bits. */
  private Cluster.Projection.Builder projection() {
    Cluster.Projection.Builder projection =
        Cluster.Projection.newBuilder()
            .setRegionId(regionId)
            .setEpoch(epoch)
            .setIndexId(index.id)
            .setGeneration(current.number)
            // Every append for this filter happens under this lock, so the bits are as of the feed's last number.
            .setAsOf(feed.last());
    if (current.range == null) return projection;
    return projection.setHasRange(true)
        .setMin(ByteString.copyFrom(current.range.min))
        .setMax(ByteString.copyFrom(current.range.max));
  }
}
