package tamis.feed;

import tamis.filter.CellSet;
import tamis.table.CellMap;

/**
 * Which cells of a map some entry of a region falls into, and from which cells entries were removed since anything
 * looked whether they are still occupied. Nothing counts the entries of a cell: it stays set until a search of the
 * index shows that it is empty (IndexFilter.beginClearing). Threads: exclusive access.
 */
final class RegionCells {
  final CellMap map;
  final CellSet occupied;
  final CellSet removedFrom;

  RegionCells(CellMap map) {
    this(map, new CellSet(map.cells()), new CellSet(map.cells()));
  }

  private RegionCells(CellMap map, CellSet occupied, CellSet removedFrom) {
    this.map = map;
    this.occupied = occupied;
    this.removedFrom = removedFrom;
  }

  RegionCells copy() {
    return new RegionCells(map, occupied.copy(), removedFrom.copy());
  }

  boolean mayContain(byte[] first) {
    return occupied.contains(map.cellOf(first));
  }

  /** An entry with this first value comes. Returns the cell if it was empty, else -1. */
  int add(byte[] first) {
    int cell = map.cellOf(first);
    return occupied.insert(cell) ? cell : -1;
  }

  /** An entry with this first value goes. */
  void remove(byte[] first) {
    removedFrom.insert(map.cellOf(first));
  }

  long sizeBytes() {
    return sizeBytes(map);
  }

  /** Null: there are no cells. */
  static long sizeBytes(CellMap map) {
    return map == null ? 0 : 2 * CellSet.sizeBytes(map.cells());
  }
}
