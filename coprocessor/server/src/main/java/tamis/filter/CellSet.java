package tamis.filter;

import java.util.Arrays;
import tamis.table.ByteWriter;

/** One bit for each cell of a CellMap, and its compressed bytes; tamis::CellSet. Threads: exclusive access. */
public final class CellSet {
  /** A range of the cells, in bytes: [first, end). */
  public static final class Part {
    public final int first;
    public final int end;
    public final byte[] bytes;

    Part(int first, int end, byte[] bytes) {
      this.first = first;
      this.end = end;
      this.bytes = bytes;
    }
  }

  private final int cells;
  private final long[] words;
  private int count;

  public CellSet(int cells) {
    this(cells, new long[(cells + 63) / 64], 0);
  }

  private CellSet(int cells, long[] words, int count) {
    this.cells = cells;
    this.words = words;
    this.count = count;
  }

  public CellSet copy() {
    return new CellSet(cells, words.clone(), count);
  }

  public int cells() {
    return cells;
  }

  public int count() {
    return count;
  }

  public boolean contains(int cell) {
    return (words[cell >>> 6] >>> cell & 1) != 0;
  }

  /** False: it was there already. */
  public boolean insert(int cell) {
    if (contains(cell)) return false;
    words[cell >>> 6] |= 1L << cell;
    ++count;
    return true;
  }

  /** False: it was not there. */
  public boolean erase(int cell) {
    if (!contains(cell)) return false;
    words[cell >>> 6] &= ~(1L << cell);
    --count;
    return true;
  }

  public void clear() {
    Arrays.fill(words, 0);
    count = 0;
  }

  /** The first cell of the set at or after `from`; cells() when there is none. */
  public int next(int from) {
    for (int word = from >>> 6; word < words.length; ++word) {
      long bits = words[word];
      if (word == from >>> 6) bits &= -1L << from;
      if (bits != 0) return word * 64 + Long.numberOfTrailingZeros(bits);
    }
    return cells;
  }

  /** The size of a set of so many cells. */
  public static long sizeBytes(int cells) {
    return (cells + 63) / 64 * 8L;
  }

  /** The cells from `first` on in at most about maxBytes, but one cell at the least. */
  public Part encode(int first, int maxBytes) {
    long rest = 0;
    for (int cell = next(first); cell < cells; cell = next(cell + 1)) ++rest;
    long mean = rest == 0 ? 1 : Math.max(1, (cells - first) * 7L / 10 / rest);
    int lowBits = 63 - Long.numberOfLeadingZeros(mean);
    byte[] bits = new byte[64];
    long used = 0;
    int written = 0;
    int from = first;
    int end = cells;
    for (int cell = next(first); cell < cells; cell = next(cell + 1)) {
      int gap = cell - from;
      long size = (gap >>> lowBits) + 1L + lowBits;
      if (written > 0 && used + size > maxBytes * 8L) {
        end = from;
        break;
      }
      int needed = Math.toIntExact((used + size + 7) / 8);
      if (needed > bits.length) bits = Arrays.copyOf(bits, Math.max(needed, 2 * bits.length));
      for (int i = 0; i < gap >>> lowBits; ++i) set(bits, used++);
      ++used;
      for (int i = 0; i < lowBits; ++i, ++used) {
        if ((gap >>> i & 1) != 0) set(bits, used);
      }
      from = cell + 1;
      ++written;
    }
    ByteWriter out = new ByteWriter();
    out.put(lowBits);
    out.putVarint(written);
    out.put(Arrays.copyOf(bits, (int) ((used + 7) / 8)));
    return new Part(first, end, out.toBytes());
  }

  private static void set(byte[] bits, long at) {
    bits[(int) (at >>> 3)] |= (byte) (1 << (at & 7));
  }
}
