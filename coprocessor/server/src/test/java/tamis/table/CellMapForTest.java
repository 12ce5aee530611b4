package tamis.table;

import java.util.Arrays;

/** Cell maps with chosen knots. */
public final class CellMapForTest {
  private CellMapForTest() {}

  /** "v10" and "v11" have cells of their own, as do all of two digits up to "v69". */
  public static CellMap ofTwoDigits(int cells) throws DamagedBytesException {
    byte[][] knots = new byte[60][];
    for (int i = 0; i < knots.length; ++i) {
      ByteWriter out = new ByteWriter();
      Codec.appendIndexed(Value.text("v" + (10 + i)), out);
      knots[i] = out.toBytes();
    }
    return of(cells, 1, knots);
  }

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
