package tamis.filter;

import tamis.table.Hash;
/** k slices of m positions each, and where a hash falls in them; tamis::SplitGeometry. A value. */
public final class SplitGeometry {
  static final int MAX_SLICES = 32;
  public static final long MAX_CAPACITY = 1L << 31;

  public final int slices;
  public final long slicePositions; // below 2^32

  public SplitGeometry(int slices, long slicePositions) {
    this.slices = slices;
    this.slicePositions = slicePositions;
  }

  /** The smallest one whose rate is at most fpr when it holds so many hashes. */
  public static SplitGeometry of(double fpr, long capacity) {
    double rate = fpr >= 0x1p-32 ? Math.min(fpr, 0.5) : 0x1p-32;
    double keys = Math.max(1, Math.min(capacity, MAX_CAPACITY));
    int slices = (int) Math.ceil(-Math.log(rate) / Math.log(2) - 1e-9);
    long positions = (long) Math.ceil(-1 / Math.expm1(-Math.log(2) / keys));
    return new SplitGeometry(slices, positions);
  }

  /** The number of hashes that fill half of each slice. */
  public long capacity() {
    if (slicePositions <= 2) return 1;
    return (long) (-Math.log(2) / Math.log1p(-1.0 / slicePositions) + 1e-6);
  }

  public long positions() {
    return slices * slicePositions;
  }

  public long position(long hash, int slice) {
    long offset = Hash.range(Hash.mix(hash + (slice + 1) * 0x9e3779b97f4a7c15L), slicePositions);
    return slice * slicePositions + offset;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SplitGeometry && ((SplitGeometry) other).slices == slices
        && ((SplitGeometry) other).slicePositions == slicePositions;
  }

  @Override
  public int hashCode() {
    return slices * 31 + Long.hashCode(slicePositions);
  }
}
