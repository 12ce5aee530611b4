package tamis.feed;

import tamis.table.Key;

/** The smallest and the largest encoded value of some, both included. A value. */
public final class ValueRange {
  public final byte[] min;
  public final byte[] max;

  public ValueRange(byte[] min, byte[] max) {
    this.min = min;
    this.max = max;
  }

  /** Null, here and below: a range without a value. */
  static boolean covers(ValueRange range, byte[] value) {
    return range != null && Key.compare(range.min, value) <= 0 && Key.compare(value, range.max) <= 0;
  }

  /** The range with this value besides; the same object if it covers the value. */
  static ValueRange widened(ValueRange range, byte[] value) {
    if (covers(range, value)) return range;
    if (range == null) return new ValueRange(value, value);
    return Key.compare(value, range.min) < 0 ? new ValueRange(value, range.max) : new ValueRange(range.min, value);
  }

  /** The smallest range that covers both. */
  static ValueRange union(ValueRange a, ValueRange b) {
    return b == null ? a : widened(widened(a, b.min), b.max);
  }

  static boolean isSame(ValueRange a, ValueRange b) {
    if (a == null || b == null) return a == b;
    return Key.compare(a.min, b.min) == 0 && Key.compare(a.max, b.max) == 0;
  }

  /** Whether the value is an end of the range. */
  static boolean endsWith(ValueRange range, byte[] value) {
    return range != null && (Key.compare(range.min, value) == 0 || Key.compare(range.max, value) == 0);
  }
}
