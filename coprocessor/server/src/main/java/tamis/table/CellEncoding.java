package tamis.table;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.MathContext;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/**
 * How the value of a cell, or of a part of a row key, is encoded in a table that another program wrote
 * (docs/TABLES.md#encodings). The ordinals are stored in schemas and never change.
 */
public enum CellEncoding {
  NONE("none"),
  UTF8("utf8"),
  RAW("raw"),
  LONG("long"),
  INT("int"),
  SHORT("short"),
  BYTE("byte"),
  TEXT("text"),
  PHOENIX_LONG("phoenix_long"),
  PHOENIX_INT("phoenix_int"),
  DOUBLE("double"),
  FLOAT("float"),
  PHOENIX_DOUBLE("phoenix_double"),
  PHOENIX_FLOAT("phoenix_float"),
  PHOENIX("phoenix"),
  MILLIS("millis"),
  SECONDS("seconds"),
  MICROS("micros"),
  PHOENIX_DATE("phoenix_date"),
  BIG_DECIMAL("bigdecimal");

  /** A bigdecimal of more bytes does not decode, so that a cell costs a bounded time. */
  static final int MAX_BIG_DECIMAL_BYTES = 4096;

  public final String text;

  CellEncoding(String text) {
    this.text = text;
  }

  /** null when there is none. */
  public static CellEncoding of(int number) {
    return number >= 0 && number < values().length ? values()[number] : null;
  }

  public static CellEncoding of(String text) {
    for (CellEncoding encoding : values()) {
      if (encoding.text.equals(text)) return encoding;
    }
    return null;
  }

  /** Whether values of the type can stand in this encoding. */
  public boolean isOf(Type type) {
    switch (this) {
      case UTF8:
        return type == Type.TEXT;
      case RAW:
        return type == Type.BYTES;
      case LONG:
      case INT:
      case SHORT:
      case PHOENIX_LONG:
      case PHOENIX_INT:
        return type == Type.INT64;
      case BYTE:
        return type == Type.INT64 || type == Type.BOOL;
      case TEXT:
        return type != Type.TEXT && type != Type.BYTES;
      case DOUBLE:
      case FLOAT:
      case PHOENIX_DOUBLE:
      case PHOENIX_FLOAT:
        return type == Type.DOUBLE;
      case PHOENIX:
        return type == Type.BOOL;
      case MILLIS:
      case SECONDS:
      case MICROS:
      case PHOENIX_DATE:
        return type == Type.TIMESTAMP;
      case BIG_DECIMAL:
        return type == Type.DECIMAL;
      default:
        return false;
    }
  }

  /** Bytes that every value takes; 0 where it depends on the value. */
  public int width() {
    switch (this) {
      case LONG:
      case PHOENIX_LONG:
      case DOUBLE:
      case PHOENIX_DOUBLE:
      case MILLIS:
      case SECONDS:
      case MICROS:
      case PHOENIX_DATE:
        return 8;
      case INT:
      case PHOENIX_INT:
      case FLOAT:
      case PHOENIX_FLOAT:
        return 4;
      case SHORT:
        return 2;
      case BYTE:
      case PHOENIX:
        return 1;
      default:
        return 0;
    }
  }

  private boolean hasFlippedSign() {
    return this == PHOENIX_LONG || this == PHOENIX_INT || this == PHOENIX_DATE;
  }

  private long unitMicros() {
    return this == MICROS ? 1 : this == SECONDS ? 1_000_000 : 1000;
  }

  private long signBit() {
    return 1L << (8 * width() - 1);
  }

  private long mask() {
    return width() == 8 ? -1L : (1L << (8 * width())) - 1;
  }

  // ---- Bytes to a value

  /** null: the bytes do not decode. REQUIRES: isOf(type). */
  public Value decode(Type type, byte[] bytes) {
    switch (this) {
      case UTF8:
        return Value.text(bytes);
      case RAW:
        return Value.bytes(bytes);
      case TEXT:
        return decodeText(type, new String(bytes, StandardCharsets.ISO_8859_1));
      case BIG_DECIMAL:
        return decodeBigDecimal(bytes);
      case NONE:
        return null;
      default:
        return decodeNumber(type, bytes);
    }
  }

  private Value decodeNumber(Type type, byte[] bytes) {
    int width = width();
    if (bytes.length != width) return null;
    long bits = 0;
    for (byte b : bytes) bits = bits << 8 | (b & 0xff);
    long sign = signBit();
    switch (type) {
      case BOOL:
        if (this == PHOENIX && bits > 1) return null;
        return Value.bool(bits != 0);
      case DOUBLE:
        if (this == PHOENIX_DOUBLE || this == PHOENIX_FLOAT) {
          bits = (bits - 1) & mask();
          bits = (bits & sign) != 0 ? bits ^ sign : ~bits & mask();
        }
        return Value.real(width == 8 ? Double.longBitsToDouble(bits) : Float.intBitsToFloat((int) bits));
      default:
        break;
    }
    if (hasFlippedSign()) bits ^= sign;
    long n = (bits ^ sign) - sign; // sign-extended
    if (type == Type.INT64) return Value.int64(n);
    long unit = unitMicros();
    if (unit > 1 && (n < Long.MIN_VALUE / unit || n > Long.MAX_VALUE / unit)) return null;
    return Value.timestamp(n * unit);
  }

  private static Value decodeText(Type type, String text) {
    switch (type) {
      case INT64:
        if (text.startsWith("+")) return null;
        try {
          return Value.int64(Long.parseLong(text));
        } catch (NumberFormatException e) {
          return null;
        }
      case DOUBLE:
        return decodeDouble(text);
      case BOOL: {
        String lower = text.toLowerCase(Locale.ROOT);
        return lower.equals("true") ? Value.bool(true) : lower.equals("false") ? Value.bool(false) : null;
      }
      case TIMESTAMP: {
        Long micros = Timestamps.parse(text);
        return micros == null ? null : Value.timestamp(micros);
      }
      default: {
        Decimal decimal = Decimal.parse(text);
        return decimal == null ? null : Value.decimal(decimal);
      }
    }
  }

  private static Value decodeDouble(String text) {
    if (text.equals("Infinity")) return Value.real(Double.POSITIVE_INFINITY);
    if (text.equals("-Infinity")) return Value.real(Double.NEGATIVE_INFINITY);
    String digits = text.startsWith("-") ? text.substring(1) : text;
    if (digits.isEmpty() || digits.startsWith("+") || digits.startsWith("-")) return null;
    boolean nonZero = false;
    boolean mantissa = true;
    for (int i = 0; i < digits.length(); ++i) {
      char c = digits.charAt(i);
      if ("0123456789.eE+-".indexOf(c) < 0) return null;
      if (c == 'e' || c == 'E') mantissa = false;
      if (mantissa && c >= '1' && c <= '9') nonZero = true;
    }
    double d;
    try {
      d = Double.parseDouble(text);
    } catch (NumberFormatException e) {
      return null;
    }
    if (Double.isInfinite(d) || (d == 0 && nonZero)) return null;
    return Value.real(d);
  }

  private static Value decodeBigDecimal(byte[] bytes) {
    if (bytes.length < 5 || bytes.length > MAX_BIG_DECIMAL_BYTES) return null;
    int scale = (bytes[0] & 0xff) << 24 | (bytes[1] & 0xff) << 16 | (bytes[2] & 0xff) << 8 | (bytes[3] & 0xff);
    BigInteger unscaled = new BigInteger(java.util.Arrays.copyOfRange(bytes, 4, bytes.length));
    Decimal decimal = Decimal.parse(unscaled + "e" + -(long) scale);
    return decimal == null ? null : Value.decimal(decimal);
  }

  // ---- A value to bytes

  /** REQUIRES: a value of a type that isOf takes, not NULL. */
  public byte[] encode(Value value) throws RefusedValueException {
    switch (this) {
      case UTF8:
      case RAW:
        return value.bytes();
      case TEXT:
        return textOf(value).getBytes(StandardCharsets.ISO_8859_1);
      case BIG_DECIMAL:
        return encodeBigDecimal(value);
      case NONE:
        throw refused(value, "it has no encoding");
      default:
        return encodeNumber(value);
    }
  }

  private RefusedValueException refused(Value value, String why) {
    String text = value.toString();
    if (text.length() > 60) text = text.substring(0, 60);
    return new RefusedValueException("\"" + text + "\" cannot be stored as " + this.text + ": " + why);
  }

  private byte[] encodeNumber(Value value) throws RefusedValueException {
    int width = width();
    long bits;
    switch (value.type()) {
      case BOOL:
        bits = value.number() == 0 ? 0 : this == BYTE ? 0xff : 1;
        break;
      case DOUBLE: {
        double d = value.real();
        if (width == 4 && (double) (float) d != d) throw refused(value, "it has no exact place there");
        bits = width == 8 ? Double.doubleToRawLongBits(d) : Float.floatToRawIntBits((float) d) & 0xffffffffL;
        if (this == PHOENIX_DOUBLE || this == PHOENIX_FLOAT) {
          long sign = signBit();
          bits = (((bits & sign) != 0 ? ~bits : bits | sign) + 1) & mask();
        }
        break;
      }
      default: {
        long n = value.number();
        if (value.type() == Type.TIMESTAMP) {
          if (n % unitMicros() != 0) throw refused(value, "it lies between two times of that unit");
          n /= unitMicros();
        }
        if (width < 8 && (n < -signBit() || n >= signBit())) throw refused(value, "it is out of range");
        bits = hasFlippedSign() ? n ^ signBit() : n;
        break;
      }
    }
    return new ByteWriter().putBig(bits, width).toBytes();
  }

  private static String textOf(Value value) {
    switch (value.type()) {
      case DOUBLE:
        return doubleText(value.real());
      case BOOL:
        return value.number() != 0 ? "true" : "false";
      case TIMESTAMP:
        return Timestamps.format(value.number());
      case DECIMAL:
        return value.decimal().toString();
      default:
        return Long.toString(value.number());
    }
  }

  /** The fewest digits that read back; plain or scientific, whichever is shorter. */
  private static String doubleText(double d) {
    if (Double.isInfinite(d)) return d < 0 ? "-Infinity" : "Infinity";
    if (d == 0) return "0";
    BigDecimal exact = new BigDecimal(d);
    BigDecimal shortest = null;
    for (int digits = 1; shortest == null; ++digits) {
      for (RoundingMode mode : new RoundingMode[] {RoundingMode.HALF_EVEN, RoundingMode.FLOOR, RoundingMode.CEILING}) {
        BigDecimal rounded = exact.round(new MathContext(digits, mode));
        if (rounded.doubleValue() == d) {
          shortest = rounded.stripTrailingZeros();
          break;
        }
      }
    }
    String unscaled = shortest.unscaledValue().abs().toString();
    int exponent = unscaled.length() - shortest.scale() - 1;
    StringBuilder scientific = new StringBuilder(unscaled);
    if (unscaled.length() > 1) scientific.insert(1, '.');
    scientific.append(exponent < 0 ? "e-" : "e+");
    if (Math.abs(exponent) < 10) scientific.append('0');
    scientific.append(Math.abs(exponent));
    String plain = shortest.abs().toPlainString();
    if (plain.length() > scientific.length()) return (d < 0 ? "-" : "") + scientific;
    // A large whole number is written with all of its digits, not filled up with zeros.
    if (shortest.scale() <= 0) plain = exact.abs().toPlainString();
    return (d < 0 ? "-" : "") + plain;
  }

  /** The shortest form: no zeros at the end of the unscaled number. */
  private byte[] encodeBigDecimal(Value value) throws RefusedValueException {
    Decimal decimal = value.decimal();
    long scale = decimal.digits.length() - decimal.exponent;
    if (decimal.digits.length() > 2 * MAX_BIG_DECIMAL_BYTES + 1700 || scale > Integer.MAX_VALUE
        || scale < Integer.MIN_VALUE) {
      throw refused(value, "it has too many digits");
    }
    BigInteger unscaled = decimal.digits.isEmpty() ? BigInteger.ZERO : new BigInteger(decimal.digits);
    if (decimal.negative) unscaled = unscaled.negate();
    byte[] out = new ByteWriter().putBig(decimal.digits.isEmpty() ? 0 : scale, 4).put(unscaled.toByteArray()).toBytes();
    if (out.length > MAX_BIG_DECIMAL_BYTES) throw refused(value, "it has too many digits");
    return out;
  }
}
