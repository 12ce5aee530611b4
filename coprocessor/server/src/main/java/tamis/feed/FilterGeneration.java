package tamis.feed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.function.LongConsumer;
import tamis.base.Fault;
import tamis.filter.BitLayers;
import tamis.filter.CellSet;
import tamis.filter.LayeredFilter;
import tamis.filter.SplitGeometry;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;

/** One generation of an IndexFilter: counters or bits, cells, and the range of values. Threads: exclusive access. */
final class FilterGeneration {
  private static final long MOST_CELL_BYTES = 1 << 24; // in one projection
  private static final LayeredFilter.OnFlip UNTOLD = (layer, position, set) -> {};

  /** Changed bits, as an event has them: bit * 2, and 1 more where it was set; without an object for each. */
  static final class Flips implements LayeredFilter.OnFlip {
    private final boolean noted; // false: nothing tells of them
    private long[] flips = new long[32];
    private int size;

    private Flips(boolean noted) {
      this.noted = noted;
    }

    @Override
    public void flip(int layer, long position, boolean set) {
      Fault.allocate();
      if (!noted) return;
      if (size == flips.length) flips = Arrays.copyOf(flips, 2 * size);
      flips[size++] = bitName(layer, position) * 2 + (set ? 1 : 0);
    }

    boolean isEmpty() {
      return size == 0;
    }

    void forEach(LongConsumer tell) {
      for (int i = 0; i < size; ++i) tell.accept(flips[i]);
    }
  }

  /** An addition, as coordinators have to know it. */
  static final class Changes {
    final Flips flips;
    final List<Integer> cells = new ArrayList<>(); // that were set
    boolean grown; // by a layer
    boolean widened; // the range

    private Changes(boolean flipsNoted) {
      flips = new Flips(flipsNoted);
    }
  }

  /** The name of a bit in events. */
  static long bitName(int layer, long position) {
    return ((long) layer << 32) + position;
  }

  final long number;
  final LayeredFilter filter;
  final RegionCells cells; // null: the index has none
  ValueRange range;
  boolean rangeStale; // the smallest or the largest value was removed
  boolean counted; // from the entries that existed: the filter is not to grow by entries still to be counted
  long added; // hashes, since the generation was begun
  long entries; // added, and not removed again
  long forgotten; // removals that found no room to be held

  FilterGeneration(long number, LayeredFilter filter, RegionCells cells) {
    this.number = number;
    this.filter = filter;
    this.cells = cells;
  }

  long sizeBytes() {
    return filter.sizeBytes() + (cells == null ? 0 : cells.sizeBytes());
  }

  boolean mayContain(IndexEntry entry) {
    if (!ValueRange.covers(range, entry.first())) return false;
    if (cells != null && !cells.mayContain(entry.first())) return false;
    for (long hash : entry.hashes()) {
      if (filter.findLayer(hash) < 0) return false;
    }
    return true;
  }

  /** `flipsNoted`: false where nothing tells of them. */
  Changes add(Collection<IndexEntry> entries, boolean flipsNoted) {
    Changes changes = new Changes(flipsNoted);
    int layersBefore = filter.layers();
    for (IndexEntry entry : entries) {
      added += entry.hashes().length;
      ++this.entries;
      for (long hash : entry.hashes()) filter.insert(hash, changes.flips);
      changes.widened |= widen(entry.first());
      int cell = cells == null ? -1 : cells.add(entry.first());
      if (cell < 0) continue;
      Fault.allocate();
      changes.cells.add(cell);
    }
    changes.grown = filter.layers() != layersBefore;
    return changes;
  }

  Flips remove(Collection<IndexEntry> entries, boolean flipsNoted) {
    Flips flips = new Flips(flipsNoted);
    for (IndexEntry entry : entries) {
      --this.entries;
      leaveToClearer(entry.first());
      erase(entry.hashes(), flips);
    }
    return flips;
  }

  /** Uncounts an entry whose range and cell are left to the clearer already. Tells of nothing, and takes no memory. */
  void removeHashes(long[] hashes) {
    --entries;
    erase(hashes, UNTOLD);
  }

  private void erase(long[] hashes, LayeredFilter.OnFlip note) {
    for (long hash : hashes) {
      filter.erase(hash, note);
      if (Fault.BITS_CLEARED.isOn() && filter.bitsOnly()) ((BitLayers) filter).clear(hash, note);
    }
  }

  /** Returns whether the range has become wider. */
  boolean widen(byte[] first) {
    ValueRange before = range;
    range = ValueRange.widened(range, first);
    return range != before;
  }

  /** An entry with this first value goes: what of the range and of the cells rests upon it is to be looked at. */
  void leaveToClearer(byte[] first) {
    rangeStale |= ValueRange.endsWith(range, first);
    if (cells != null) cells.remove(first);
  }

  /** Distinct hashes, by how full the layers are. */
  long distinct() {
    double positions = filter.geometry().slicePositions;
    if (positions < 2) return filter.layers();
    double distinct = 0;
    double came = 1; // how many hashes came for each one that went to this layer; the others matched earlier layers
    for (int i = 0; i < filter.layers(); ++i) {
      double fill = Math.min(filter.fill(i), 1 - 1 / (2 * positions));
      distinct += came * Math.log1p(-fill) / Math.log1p(-1 / positions);
      came = Math.min(1000, came / (1 - Math.min(filter.expectedFpr(i), 0.9)));
    }
    return Math.round(distinct);
  }

  // ---- Bits, from the position that `from` names, or all if it names another generation

  /** Adds the occupied cells of a generation to a projection that has its number. */
  static void projectCells(
      CellSet occupied, Cluster.ColumnId from, long maxBytes, Cluster.Projection.Builder projection) {
    int first = from.getFirstCell();
    boolean goesOn = from.getGeneration() == projection.getGeneration() && first >= 0 && first < occupied.cells();
    CellSet.Part part = occupied.encode(goesOn ? first : 0, (int) Math.min(maxBytes, MOST_CELL_BYTES));
    projection.setCellCount(occupied.cells())
        .setFirstCell(part.first)
        .setEndCell(part.end)
        .setCells(ByteString.copyFrom(part.bytes));
  }

  void projectLayers(Cluster.ColumnId from, long maxBytes, Cluster.Projection.Builder projection) {
    SplitGeometry geometry = filter.geometry();
    int layerWords = filter.projectionWords();
    projection.setLayerCount(filter.layers())
        .setGeometry(
            Cluster.Geometry.newBuilder().setSlices(geometry.slices).setSlicePositions((int) geometry.slicePositions));
    int firstLayer = 0;
    int word = 0;
    boolean goesOn = from.getGeneration() == number && from.getFirstLayer() >= 0
        && from.getFirstLayer() < filter.layers() && from.getFirstWord() >= 0 && from.getFirstWord() < layerWords;
    if (goesOn) {
      firstLayer = from.getFirstLayer();
      word = (int) from.getFirstWord();
    }
    projection.setFirstLayer(firstLayer).setFirstWord(word);
    long left = Math.max(1, maxBytes / 8);
    for (int layer = firstLayer; layer < filter.layers() && left > 0; ++layer) {
      int end = (int) (word + Math.min(left, layerWords - word));
      left -= end - word;
      ByteWriter bytes = new ByteWriter();
      for (long bits : filter.projection(layer, word, end)) bytes.putLittle64(bits);
      projection.addLayers(ByteString.copyFrom(bytes.toBytes()));
      word = 0;
    }
  }
}
