package tamis.region;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import tamis.base.Fault;
import tamis.table.Key;

/**
 * The rows that loaded files may have changed since the indexes of a region were complete. A file changes no row
 * outside of its first and its last one, so the entries of all other rows of such an index stand: writes kept them
 * meanwhile. This is forgotten with the region object: the next opening builds the whole index, since its marker
 * is gone. Threads: the caller holds IndexedRegion.marking.
 */
public final class LoadedRows {
  /** The rows from `from` on, before `to`. */
  public static final class Range {
    private final byte[] from;
    private final byte[] to;

    public Range(byte[] firstRow, byte[] lastRow) {
      from = firstRow;
      to = Key.after(lastRow);
    }

    public byte[] from() {
      return from;
    }

    public byte[] to() {
      return to;
    }

    public boolean contains(byte[] row) {
      return Key.compare(from, row) <= 0 && Key.compare(row, to) < 0;
    }
  }

  private final Set<Integer> indexes = new HashSet<>(); // complete but for the rows of `ranges`
  private final List<Range> ranges = new ArrayList<>();

  /** Files are about to be loaded; these indexes are complete until then. */
  public void begin(Collection<Integer> complete) {
    indexes.addAll(complete);
  }

  /** Files of these ranges were loaded; null: it is not known which. */
  public void add(List<Range> loaded) {
    if (Fault.LOADS_BEFORE_FORGOTTEN.isOn()) ranges.clear();
    if (loaded == null) {
      indexes.clear();
    } else {
      ranges.addAll(loaded);
    }
    if (indexes.isEmpty()) ranges.clear();
  }

  /** The indexes of which only the rows of `ranges` have to be looked at. */
  public Set<Integer> indexes() {
    return new HashSet<>(indexes);
  }

  public List<Range> ranges() {
    return new ArrayList<>(ranges);
  }

  /** The indexes are complete again. */
  public void end(Collection<Integer> complete) {
    indexes.removeAll(complete);
    if (indexes.isEmpty()) ranges.clear();
  }
}
