package tamis.table;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * One typed cell of a row; NULL is Java's null. Values of one column compare by their type's order; equal values are
 * one value: -0.0 is 0.0, decimal "1.00" is "1". A value.
 */
public final class Value implements Comparable<Value> {
  private final Type type;
  private final long number; // int64, bool, timestamp
  private final double real; // double
  private final byte[] bytes; // text, bytes
  private final Decimal decimal;

  private Value(Type type, long number, double real, byte[] bytes, Decimal decimal) {
    this.type = type;
    this.number = number;
    this.real = real;
    this.bytes = bytes;
    this.decimal = decimal;
  }

  public static Value text(byte[] text) {
    return new Value(Type.TEXT, 0, 0, text, null);
  }

  public static Value text(String text) {
    return text(text.getBytes(StandardCharsets.UTF_8));
  }

  public static Value bytes(byte[] bytes) {
    return new Value(Type.BYTES, 0, 0, bytes, null);
  }

  public static Value int64(long n) {
    return new Value(Type.INT64, n, 0, null, null);
  }

  public static Value bool(boolean truth) {
    return new Value(Type.BOOL, truth ? 1 : 0, 0, null, null);
  }

  public static Value timestamp(long micros) {
    return new Value(Type.TIMESTAMP, micros, 0, null, null);
  }

  /** Nothing (null) for NaN. */
  public static Value real(double d) {
    return Double.isNaN(d) ? null : new Value(Type.DOUBLE, 0, d == 0 ? 0.0 : d, null, null);
  }

  public static Value decimal(Decimal decimal) {
    return new Value(Type.DECIMAL, 0, 0, null, decimal);
  }

  public Type type() {
    return type;
  }

  public long number() {
    return number;
  }

  public double real() {
    return real;
  }

  public byte[] bytes() {
    return bytes;
  }

  public Decimal decimal() {
    return decimal;
  }

  /** NULL before all others. REQUIRES: the same type. */
  public static int compare(Value a, Value b) {
    if (a == null || b == null) return (a == null ? 0 : 1) - (b == null ? 0 : 1);
    return a.compareTo(b);
  }

  @Override
  public int compareTo(Value other) {
    if (type != other.type) return type.compareTo(other.type);
    switch (type) {
      case TEXT:
      case BYTES:
        return Key.compare(bytes, other.bytes);
      case DOUBLE:
        return Double.compare(real, other.real);
      case DECIMAL:
        return decimal.compareTo(other.decimal);
      default:
        return Long.compare(number, other.number);
    }
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Value && compareTo((Value) other) == 0;
  }

  @Override
  public int hashCode() {
    switch (type) {
      case TEXT:
      case BYTES:
        return Arrays.hashCode(bytes);
      case DOUBLE:
        return Double.hashCode(real);
      case DECIMAL:
        return decimal.toString().hashCode();
      default:
        return Long.hashCode(number);
    }
  }

  @Override
  public String toString() {
    switch (type) {
      case TEXT:
        return new String(bytes, StandardCharsets.UTF_8);
      case BYTES:
        return Arrays.toString(bytes);
      case DOUBLE:
        return Double.toString(real);
      case DECIMAL:
        return decimal.toString();
      default:
        return Long.toString(number);
    }
  }
}
