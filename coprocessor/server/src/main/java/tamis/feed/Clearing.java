package tamis.feed;

import java.util.HashSet;
import java.util.Set;
import tamis.table.CellMap;

/**
 * One round of clearing (IndexFilter.beginClearing): what to look for in the index, and what was found there. A clearer
 * fills in the results. Threads: one at a time.
 */
public final class Clearing {
  final long round;
  /** Null: the filter has no cells. */
  public final CellMap map;
  /** Ascending: cells from which entries were removed. */
  public final int[] cells;
  /** The smallest or the largest entry was removed. */
  public final boolean range;

  /** The cells without an entry. */
  public final Set<Integer> empty = new HashSet<>();
  /** The cells of which that is not known: a later round names them again. */
  public final Set<Integer> undecided = new HashSet<>();
  /** Whether the search for the smallest and the largest entry came to an end. */
  public boolean rangeKnown;
  /** Their first values; null: there is no entry. */
  public ValueRange found;

  Clearing(long round, CellMap map, int[] cells, boolean range) {
    this.round = round;
    this.map = map;
    this.cells = cells;
    this.range = range;
  }
}
