package tamis.feed;

import tamis.filter.CellSet;
import tamis.filter.LayeredFilter;
import tamis.filter.SplitGeometry;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;
import tamis.table.ByteWriter;

/** One generation of an IndexFilter: counters or bits, cells, and the range of values. Threads: exclusive access. */
final class FilterGeneration {
  private static final long MOST_CELL_BYTES = 1 << 24; // in one projection

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
