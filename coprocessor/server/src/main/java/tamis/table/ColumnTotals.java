package tamis.table;

import java.math.BigInteger;
import java.util.Map;
import java.util.TreeMap;
import tamis.pb.Cluster;
import tamis.shaded.protobuf.ByteString;

/**
 * How many values a column has over many rows, their sum, the least and the greatest; tamis::ColumnTotals tells how
 * they are summed. Threads: exclusive access.
 */
public final class ColumnTotals {
  private static final int DIGITS = 9; // decimal digits of a position

  private final Type type;
  private long values;
  private final Map<Integer, BigInteger> parts = new TreeMap<>(); // the sum: each x 10^(9 x its position)
  private double real;
  private Value least; // null: there is none
  private Value greatest;

  public ColumnTotals(Type type) {
    this.type = type;
  }

  /** The value of so many rows. */
  public void add(Value value, long count) {
    if (value == null) return;
    values += count;
    switch (type) {
      case INT64:
      case BOOL:
        add(0, value.number(), count);
        break;
      case DOUBLE:
        real += value.real() * count;
        break;
      case DECIMAL:
        add(value.decimal(), count);
        break;
      default:
        break;
    }
    if (least == null || value.compareTo(least) < 0) least = value;
    if (greatest == null || value.compareTo(greatest) > 0) greatest = value;
  }

  private void add(int position, long number, long count) {
    parts.merge(position, BigInteger.valueOf(number).multiply(BigInteger.valueOf(count)), BigInteger::add);
  }

  /** Digit i, from 1, weighs 10^(exponent - i). */
  private void add(Decimal decimal, long count) {
    long weight = decimal.exponent;
    for (int i = 0; i < decimal.digits.length();) {
      long position = Math.floorDiv(weight - 1, (long) DIGITS);
      long number = 0;
      for (; i < decimal.digits.length() && weight > position * DIGITS; ++i) {
        number = number * 10 + (decimal.digits.charAt(i) - '0');
        --weight;
      }
      for (long rest = weight - position * DIGITS; rest > 0; --rest) number *= 10;
      weight = position * DIGITS;
      add((int) position, decimal.negative ? -number : number, count);
    }
  }

  /** Rough. */
  long sizeBytes() {
    final long overhead = 64;
    return overhead + overhead * parts.size() + sizeOf(least) + sizeOf(greatest);
  }

  private static long sizeOf(Value value) {
    if (value == null) return 0;
    if (value.decimal() != null) return value.decimal().digits.length();
    return value.bytes() == null ? 0 : value.bytes().length;
  }

  public Cluster.Totals message() {
    Cluster.Totals.Builder out = Cluster.Totals.newBuilder()
                                     .setValues(values)
                                     .setReal(real)
                                     .setLeast(encoded(least))
                                     .setGreatest(encoded(greatest));
    parts.forEach((position, number)
                      -> out.addParts(Cluster.Totals.Part.newBuilder()
                                          .setPosition(position)
                                          .setHigh(number.shiftRight(Long.SIZE).longValue())
                                          .setLow(number.longValue())));
    return out.build();
  }

  private static ByteString encoded(Value value) {
    if (value == null) return ByteString.EMPTY;
    ByteWriter bytes = new ByteWriter();
    Codec.appendOrdered(value, bytes);
    return ByteString.copyFrom(bytes.toBytes());
  }
}
