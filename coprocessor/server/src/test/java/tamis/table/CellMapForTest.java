package tamis.table;

import java.util.Arrays;

/** Cell maps with chosen knots. */
public final class CellMapForTest {
  private CellMapForTest() {}

  /** Values below the first knot have cell 0; the knots have cells 1, 1 + step, 1 + 2 step, ... */
  public static CellMap of(int cells, int step, byte[]... knots) throws DamagedBytesException {
    ByteWriter out = new ByteWriter();
    out.putVarint(cells);
    out.putVarint(knots.length);
    byte[] before = new byte[0];
    for (byte[] knot : knots) {
      int shared = 0;
      while (shared < Math.min(before.length, knot.length) && before[shared] == knot[shared]) ++shared;
      out.putVarint(shared);
      out.putVarint(knot.length - shared);
      out.put(Arrays.copyOfRange(knot, shared, knot.length));
      out.putVarint(before.length == 0 ? 1 : step);
      before = knot;
    }
    return new CellMap(out.toBytes());
  }
}
