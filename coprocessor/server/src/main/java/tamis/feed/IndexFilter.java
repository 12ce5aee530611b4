package tamis.feed;

import java.util.Collection;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import tamis.base.Fault;
import tamis.filter.CellSet;
import tamis.filter.LayeredFilter;
import tamis.pb.Cluster;
import tamis.table.Hash;
import tamis.table.Schema;

/**
 * The values of one index in one opening of a region: the counters, which of their flips coordinators have not
 * acknowledged yet, and the smallest and largest value; described at tamis::IndexFilter. At most two generations of
 * counters: the published one, whose flips are sent, and one that is being built beside it. Where memory is short a
 * generation is bits alone. Where the index has a cell map, a generation has one bit per cell besides.
 *
 * A removal leaves the cell's bit, and the smallest and largest value. They are cleared and narrowed by the protocol
 * (a) to (e) of tamis::IndexFilter: a write registers by `add` before its commit, and leaves behind it, which in HBase
 * is after its MVCC number is complete, since the scanners of others do not see it before; one whose outcome is
 * unknown never leaves: it is registered until the entries are counted again. `beginClearing` names cells without
 * registered writes, a search looks for their entries in a younger snapshot of the region, and `endClearing` clears
 * those for which no write has registered since. Nothing is cleared while entries may be missing in the index, in a
 * filter that is a copy of a parent's, or beside a generation that is being built.
 *
 * Threads: safe. Lock order: before the feed.
 */
public final class IndexFilter {
  private static final long IGNORED_AN_ENTRY = 4;
  private static final long IGNORED_AN_ENTRY_OF_BITS = 1;

  private final Schema.Index index;
  private final FilterSizing sizing;
  private final PublishedGeneration published;
  private final ClearingRounds rounds;
  private NextGeneration next; // null: none is being built
  private long generations;
  private boolean retired;
  private boolean missing; // none is published although one should be: there was no room, or counting it failed

  public IndexFilter(FilterFeed feed, Schema.Index index, long regionId, long epoch) {
    this.index = index;
    sizing = new FilterSizing(index);
    published = new PublishedGeneration(feed, index.id, regionId, epoch);
    rounds = new ClearingRounds(published);
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
    if (!published.isPublished() && next == null) return 0;
    long ticket = rounds.enter(entries);
    boolean done = false;
    try {
      if (next != null) next.add(entries);
      published.add(entries);
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

  /** A spoilt generation is counted again, and coordinators forget it before the next write. */
  private void dropSpoilt() {
    if (!published.isSpoilt()) return;
    drop();
    missing = true;
  }

  /** Uncounts entries; to be called after the commit that removed them. Returns wantsClearing(). */
  public synchronized boolean remove(Collection<IndexEntry> entries) {
    published.remove(entries);
    if (next != null) next.remove(entries);
    return wantsClearing();
  }

  /**
   * The number of the event that coordinators must have applied before a row with these entries may be acknowledged,
   * whichever write made the flips; 0: none.
   */
  public synchronized long waitFor(Collection<IndexEntry> entries) {
    dropSpoilt();
    Fault.allocate();
    return published.waitFor(entries);
  }

  /** Whether a row with these entries would have to wait if it were counted now. */
  public synchronized boolean wouldWait(Collection<IndexEntry> entries) {
    if (waitFor(entries) > 0) return true;
    for (IndexEntry entry : entries) {
      if (!published.mayContain(entry)) return true;
    }
    return false;
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
    missing = !published.isPublished();
    LayeredFilter filter = sizing.newFilter(published.generation(), room);
    if (filter == null) return false;
    RegionCells cells = index.cellMap == null ? null : new RegionCells(index.cellMap);
    next = new NextGeneration(new FilterGeneration(++generations, filter, cells));
    rounds.mark();
    if (!Fault.CLEARED_BESIDE_A_RECOUNT.isOn()) rounds.cancel();
    return true;
  }

  /**
   * Counts entries that existed before beginGeneration. False: they are too many for the generation, which is given up;
   * the next one is larger. (How many values an index has is not known before, and a generation with many layers would
   * be slow, since each layer is probed for each entry.)
   */
  public synchronized boolean countExisting(Collection<IndexEntry> entries) {
    if (next == null) return true;
    next.countExisting(entries);
    return !sizing.isWorn(next.generation().filter) || !outgrow();
  }

  /** True if the generation that is being counted is larger than the published one, and than the room for it. */
  public synchronized boolean isTooLarge(FilterRoom room) {
    return next != null && sizing.isTooLarge(next.generation(), published.generation(), room);
  }

  /** Gives up the generation that is being counted, and makes the next one larger. False: no larger one is possible. */
  public synchronized boolean outgrow() {
    if (next == null || !sizing.outgrow(next.generation())) return false;
    abandonGeneration();
    return true;
  }

  synchronized int heldRemovals() {
    return next == null ? 0 : next.heldRemovals();
  }

  public synchronized void publish() {
    if (next == null || retired) return;
    next.removeHeld();
    published.publish(next.generation());
    next = null;
    missing = false;
    sizing.published();
    rounds.forgetMarked(); // writes of unknown outcome among them: their entries that stand are counted
  }

  /**
   * Makes the filter of a daughter of this region: a copy of the published generation is its next generation. Null:
   * none is published. REQUIRES: nothing is added to this filter any more, and nothing was written to the daughter yet.
   */
  public synchronized IndexFilter inheritedBy(FilterFeed feed, Schema.Index index, long regionId, long epoch) {
    FilterGeneration current = published.generation();
    if (current == null) return null;
    IndexFilter heir = new IndexFilter(feed, index, regionId, epoch);
    boolean sameCells =
        current.cells != null && index.cellMap != null && current.cells.map.version() == index.cellMap.version();
    FilterGeneration copy =
        new FilterGeneration(++heir.generations, current.filter.copy(), sameCells ? current.cells.copy() : null);
    copy.range = current.range;
    copy.added = current.added;
    copy.entries = current.entries;
    heir.next = new NextGeneration(copy);
    return heir;
  }

  public synchronized void abandonGeneration() {
    next = null;
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
    missing = false;
    long sequence = published.drop();
    rounds.forget();
    return sequence;
  }

  /**
   * Drops the filter since there is no room for it. It is counted again once there is room for a filter of all its
   * present values.
   */
  public synchronized void giveUp() {
    if (!published.isPublished()) return;
    sizing.remember(published.generation());
    drop();
    missing = true;
  }

  /** Bytes of the published generation. */
  public synchronized long publishedBytes() {
    return sizeOf(published.generation());
  }

  /**
   * Whether the published generation should be replaced by one counted again, or is missing and there is room. Ignored
   * removals are a reason only once they are several times as many as the entries, and at least `ignored`: counting
   * reads all entries, also deleted ones in memory, and a full counter that was not lowered does no harm while rows
   * have its value. In a filter of bits alone each ignored removal may have left a value, so there the factor is
   * smaller. Writes of unknown outcome are a reason, too, once they leave little room for others.
   */
  public synchronized boolean wantsRebuild(long ignored, FilterRoom room) {
    if (next != null || retired) return false;
    FilterGeneration current = published.generation();
    if (current == null) return missing && sizing.hasRoomForFirst(room);
    if (rounds.isStuck()) return true;
    LayeredFilter filter = current.filter;
    long anEntry = filter.bitsOnly() ? IGNORED_AN_ENTRY_OF_BITS : IGNORED_AN_ENTRY;
    long stayed = filter.ignoredErases() + current.forgotten;
    return stayed >= Math.max(ignored, anEntry * current.entries) || sizing.wantsOtherForm(current, room)
        || sizing.wantsOtherSize(current);
  }

  public synchronized boolean isPublished() {
    return published.isPublished();
  }

  /** True if a generation is published that was counted from the region's own entries, not inherited. */
  public synchronized boolean isCounted() {
    return published.isPublished() && published.generation().counted;
  }

  /** True if the published generation is bits alone. */
  public synchronized boolean isOfBits() {
    return published.isPublished() && published.generation().filter.bitsOnly();
  }

  /** True if no filter is published although one should be, since there was no room for it or counting it failed. */
  public synchronized boolean isMissing() {
    return missing && next == null;
  }

  public synchronized long sizeBytes() {
    return sizeOf(published.generation()) + (next == null ? 0 : next.generation().sizeBytes());
  }

  private static long sizeOf(FilterGeneration generation) {
    return generation == null ? 0 : generation.sizeBytes();
  }

  public synchronized boolean mayContain(IndexEntry entry) {
    return published.mayContain(entry);
  }

  /** Upper bound for the number of entries with these encoded values of leading columns; -1: none is known. */
  public synchronized long countBound(byte[] prefix) {
    if (!published.isPublished()) return -1;
    return published.generation().filter.countBound(Hash.of(prefix, index.seed));
  }

  /** The answers of the published filter as of now, unchanged by later writes; null: none is published. */
  public synchronized Predicate<IndexEntry> frozen() {
    FilterGeneration current = published.generation();
    if (current == null) return null;
    RegionCells cells = current.cells == null ? null : current.cells.copy();
    FilterGeneration copy = new FilterGeneration(current.number, current.filter.copy(), cells);
    copy.range = current.range;
    return copy::mayContain;
  }

  /** The number of entries in the published filter; 0: none is published. */
  public synchronized long entries() {
    return published.isPublished() ? published.generation().entries : 0;
  }

  /** Cells of the published generation that are set. */
  public synchronized int occupiedCells() {
    return published.cells() == null ? 0 : published.cells().occupied.count();
  }

  // ---- Clearing

  private boolean mayClear() {
    boolean alone = next == null || Fault.CLEARED_BESIDE_A_RECOUNT.isOn();
    return alone && !retired && rounds.mayClear();
  }

  /** True if beginClearing may find something to do. */
  public synchronized boolean wantsClearing() {
    return mayClear() && rounds.isWanted();
  }

  /** Begins a round of at most so many cells; a round before it ends. Null: there is nothing to be cleared now. */
  public synchronized Clearing beginClearing(int mostCells) {
    rounds.cancel();
    return mayClear() ? rounds.begin(mostCells) : null;
  }

  /** The search has ended, and `clearing` has its results. */
  public synchronized void endClearing(Clearing clearing) {
    if (mayClear()) rounds.end(clearing);
  }

  /** From now on entries of rows may be missing in the index, until as many calls of releaseClearing. */
  public synchronized void holdClearing() {
    rounds.hold();
  }

  public synchronized void releaseClearing() {
    rounds.release();
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
      FilterGeneration current = published.generation();
      if (current == null || (from.getCells() && current.cells == null)) return null;
      projection = published.newProjection();
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
}
