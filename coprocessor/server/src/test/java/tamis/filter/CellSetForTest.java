package tamis.filter;

import tamis.table.ByteReader;
import tamis.table.DamagedBytesException;

/** Reads the bytes of cell sets, as coordinators do. */
public final class CellSetForTest {
  private CellSetForTest() {}

  /** Inserts the cells of a part that begins at `first`. */
  public static void decode(byte[] bytes, int first, CellSet into) throws DamagedBytesException {
    ByteReader in = new ByteReader(bytes);
    int lowBits = in.takeByte();
    long count = in.takeVarint();
    byte[] bits = in.rest();
    int at = 0;
    int next = first;
    for (long i = 0; i < count; ++i) {
      for (; (bits[at / 8] >>> at % 8 & 1) != 0; ++at) next += 1 << lowBits;
      ++at;
      for (int bit = 0; bit < lowBits; ++bit, ++at) next += (bits[at / 8] >>> at % 8 & 1) << bit;
      if (!into.insert(next++)) throw new AssertionError("a cell comes twice");
    }
  }
}
