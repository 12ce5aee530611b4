package tamis.table;

import java.util.Arrays;

/**
 * A monotone map from byte strings to the numbers of cells: a piecewise linear model of how the values of an index are
 * distributed, the same in all regions. Computed with integers only, to the same cells as tamis::CellMap, where the
 * arithmetic is explained. Threads: immutable.
 */
public final class CellMap {
  public static final int MAX_CELLS = 1 << 26;
  static final int MAX_KNOTS = 8192;
  static final int MAX_BYTES = 1 << 20;
  private static final int RUN_BITS = 31;
  private static final int BYTES_OF_GROWTH = 4;

  /** A straight line: `rise` cells for `run` steps of 2^shift. */
  private static final class Slope {
    final int skip;
    final long origin;
    final int shift;
    final long run; // less than 2^31
    final long rise;

    Slope(byte[] low, byte[] high, int skip, long rise, boolean fromHigh) {
      long width = window(high, skip) - window(low, skip);
      this.skip = skip;
      this.origin = window(fromHigh ? high : low, skip);
      this.shift = Math.max(0, 64 - Long.numberOfLeadingZeros(width) - RUN_BITS);
      this.run = width >>> shift;
      this.rise = rise;
    }
  }

  private final int cells;
  private final byte[][] values; // values of the knots
  private final int[] knotCells;
  private final Slope[] slopes; // after each knot but the last
  private final Slope last; // beyond the last knot; null where there are less than two
  private final byte[] bytes;
  private final long version;

  /** Reads the bytes of tamis::CellMap. */
  public CellMap(byte[] bytes) throws DamagedBytesException {
    if (bytes.length > MAX_BYTES) throw damaged();
    ByteReader in = new ByteReader(bytes);
    long allCells = in.takeVarint();
    long count = in.takeVarint();
    if (allCells < 1 || allCells > MAX_CELLS || count < 0 || count > MAX_KNOTS) throw damaged();
    cells = (int) allCells;
    byte[][] read = new byte[Math.min((int) count, bytes.length)][];
    knotCells = new int[read.length];
    byte[] value = new byte[0];
    long cell = 0;
    long kept = 0;
    for (int i = 0; i < count; ++i) {
      long shared = in.takeVarint();
      byte[] rest = in.takeLengthPrefixed();
      long rise = in.takeVarint();
      if (shared < 0 || shared > value.length || rise < 1 || rise > MAX_CELLS) throw damaged();
      byte[] next = Arrays.copyOf(value, (int) shared + rest.length);
      System.arraycopy(rest, 0, next, (int) shared, rest.length);
      // One map has one sequence of bytes.
      if (shared != commonPrefix(value, next) || i > 0 && Key.compare(value, next) >= 0) throw damaged();
      value = next;
      cell += rise;
      kept += value.length;
      if (cell >= cells || kept > 16L * MAX_BYTES) throw damaged();
      read[i] = value;
      knotCells[i] = (int) cell;
    }
    if (!in.isEmpty()) throw damaged();
    values = read;
    slopes = new Slope[Math.max(0, values.length - 1)];
    for (int i = 0; i < slopes.length; ++i) {
      int skip = commonPrefix(values[i], values[i + 1]);
      slopes[i] = new Slope(values[i], values[i + 1], skip, knotCells[i + 1] - knotCells[i], false);
    }
    if (slopes.length == 0) {
      last = null;
    } else {
      Slope before = slopes[slopes.length - 1];
      int skip = before.skip - Math.min(before.skip, BYTES_OF_GROWTH);
      last = new Slope(values[slopes.length - 1], values[slopes.length], skip, before.rise, true);
    }
    this.bytes = bytes.clone();
    version = Hash.of(this.bytes, 0);
    if (!Arrays.equals(serialize(), bytes)) throw damaged();
  }

  private static DamagedBytesException damaged() {
    return new DamagedBytesException("cannot read a cell map: its bytes are damaged");
  }

  public int cells() {
    return cells;
  }

  /** A hash of the map's bytes: two maps with one version are the same map. */
  public long version() {
    return version;
  }

  public byte[] toBytes() {
    return bytes.clone();
  }

  /** Less than cells(). a <= b gives cellOf(a) <= cellOf(b). */
  public int cellOf(byte[] value) {
    int above = 0; // the first knot above the value
    for (int end = values.length; above < end;) {
      int middle = (above + end) >>> 1;
      if (Key.compare(values[middle], value) > 0) {
        end = middle;
      } else {
        above = middle + 1;
      }
    }
    if (above == 0) return 0;
    if (above == values.length) return beyond(value);
    Slope slope = slopes[above - 1];
    if (slope.run == 0) return knotCells[above - 1];
    long steps = (window(value, slope.skip) - slope.origin) >>> slope.shift;
    return knotCells[above - 1] + (int) (steps * slope.rise / slope.run);
  }

  private int beyond(byte[] value) {
    int knot = values.length - 1;
    int cell = knotCells[knot];
    if (last == null) return cell;
    if (commonPrefix(value, values[knot]) < last.skip) return cells - 1;
    long distance = window(value, last.skip) - last.origin;
    if (last.run == 0) return distance == 0 ? cell : cells - 1;
    long steps = distance >>> last.shift;
    long room = cells - 1 - cell;
    long whole = Long.divideUnsigned(steps, last.run);
    if (Long.compareUnsigned(whole, room) > 0) return cells - 1;
    long rise = whole * last.rise + Long.remainderUnsigned(steps, last.run) * last.rise / last.run;
    return cell + (int) Math.min(rise, room);
  }

  /** Every value that falls into the cell, or into a later one, is at least this; all but few from here on do. */
  public byte[] lowestOf(int cell) {
    if (cell == 0 || values.length == 0) return new byte[0];
    if (cell <= knotCells[0]) return values[0].clone();
    if (cell > knotCells[knotCells.length - 1]) return lowestBeyond(cell);
    int upper = Arrays.binarySearch(knotCells, cell);
    if (upper < 0) upper = -upper - 1;
    Slope slope = slopes[upper - 1];
    if (slope.run == 0) return values[upper].clone();
    long steps = ceilDiv((cell - knotCells[upper - 1]) * slope.run, slope.rise);
    return withWindow(values[upper], slope.skip, slope.origin + (steps << slope.shift));
  }

  private byte[] lowestBeyond(int cell) {
    int knot = values.length - 1;
    if (last == null) return values[knot].clone();
    long steps = last.run == 0 ? 1 : ceilDiv((cell - knotCells[knot]) * last.run, last.rise);
    if (Long.compareUnsigned(steps, (-1L - last.origin) >>> last.shift) > 0) {
      byte[] end = prefixEnd(Arrays.copyOf(values[knot], last.skip));
      return end.length == 0 ? values[knot].clone() : end;
    }
    byte[] lowest = withWindow(values[knot], last.skip, last.origin + (steps << last.shift));
    return Key.compare(lowest, values[knot]) < 0 ? values[knot].clone() : lowest;
  }

  private byte[] serialize() {
    ByteWriter out = new ByteWriter();
    out.putVarint(cells);
    out.putVarint(values.length);
    byte[] before = new byte[0];
    int cellBefore = 0;
    for (int i = 0; i < values.length; ++i) {
      int shared = commonPrefix(before, values[i]);
      out.putVarint(shared);
      out.putVarint(values[i].length - shared);
      out.put(Arrays.copyOfRange(values[i], shared, values[i].length));
      out.putVarint(knotCells[i] - cellBefore);
      before = values[i];
      cellBefore = knotCells[i];
    }
    return out.toBytes();
  }

  private static int commonPrefix(byte[] a, byte[] b) {
    int size = Math.min(a.length, b.length);
    int shared = 0;
    while (shared < size && a[shared] == b[shared]) ++shared;
    return shared;
  }

  private static long window(byte[] value, int skip) {
    long window = 0;
    for (int i = skip; i < skip + 8; ++i) window = window << 8 | (i < value.length ? value[i] & 0xff : 0);
    return window;
  }

  /** The least string with the prefix, which is skip bytes long, and the window. */
  private static byte[] withWindow(byte[] prefix, int skip, long window) {
    byte[] value = Arrays.copyOf(Arrays.copyOf(prefix, skip), skip + 8);
    for (int i = 0; i < 8; ++i) value[skip + i] = (byte) (window >>> (56 - 8 * i));
    int size = value.length;
    while (size > skip && value[size - 1] == 0) --size;
    return Arrays.copyOf(value, size);
  }

  /** The least string above all that begin with the prefix; empty when there is none. */
  private static byte[] prefixEnd(byte[] prefix) {
    int size = prefix.length;
    while (size > 0 && prefix[size - 1] == (byte) 0xff) --size;
    byte[] end = Arrays.copyOf(prefix, size);
    if (size > 0) ++end[size - 1];
    return end;
  }

  private static long ceilDiv(long a, long b) {
    return (a + b - 1) / b;
  }
}
