package tamis.table;

import java.util.Arrays;

/** Order-preserving, prefix-free byte encodings of values, row keys and index entries (docs/FORMATS.md#values). */
public final class Codec {
  /** Text and bytes longer than this are cut in index entries, and in what filters hash. */
  public static final int INDEX_VALUE_LIMIT = 1024;

  private static final long SIGN_BIT = 1L << 63;
  private static final int NULL_TAG = 1;
  private static final int VALUE_TAG = 2;
  private static final int ESCAPED_ZERO = 0xff;
  private static final int TEXT_END = 1;
  private static final int TEXT_CUT = 2;
  private static final int NEGATIVE = 1;
  private static final int ZERO = 2;
  private static final int POSITIVE = 3;
  private static final int DECIMAL_END = 0;
  private static final int DECIMAL_CUT = 101;

  private Codec() {}

  public static void appendOrdered(Value value, ByteWriter out) {
    append(value, Integer.MAX_VALUE, out);
  }

  /** True if the value was cut: two values that differ only after the cut have equal encodings. */
  public static boolean appendIndexed(Value value, ByteWriter out) {
    return append(value, INDEX_VALUE_LIMIT, out);
  }

  private static boolean append(Value value, int limit, ByteWriter out) {
    if (value == null) {
      out.put(NULL_TAG);
      return false;
    }
    out.put(VALUE_TAG);
    switch (value.type()) {
      case TEXT:
      case BYTES:
        return appendText(value.bytes(), limit, out);
      case DECIMAL:
        return appendDecimal(value.decimal(), limit, out);
      case DOUBLE: {
        long bits = Double.doubleToRawLongBits(value.real());
        out.putBig(bits < 0 ? ~bits : bits | SIGN_BIT, 8);
        return false;
      }
      case BOOL:
        out.put((int) value.number());
        return false;
      default:
        out.putBig(value.number() ^ SIGN_BIT, 8);
        return false;
    }
  }

  private static boolean appendText(byte[] text, int limit, ByteWriter out) {
    boolean cut = text.length > limit;
    int size = cut ? limit : text.length;
    int from = 0;
    for (int i = 0; i < size; ++i) {
      if (text[i] != 0) continue;
      out.put(text, from, i - from).put(0).put(ESCAPED_ZERO);
      from = i + 1;
    }
    out.put(text, from, size - from).put(0).put(cut ? TEXT_CUT : TEXT_END);
    return cut;
  }

  private static boolean appendDecimal(Decimal decimal, int limit, ByteWriter out) {
    if (decimal.digits.isEmpty()) {
      out.put(ZERO);
      return false;
    }
    out.put(decimal.negative ? NEGATIVE : POSITIVE);
    int begin = out.size();
    out.putBig((int) decimal.exponent ^ 0x80000000, 4);
    String digits = decimal.digits;
    int pairs = (digits.length() + 1) / 2;
    boolean cut = pairs > limit;
    for (int i = 0; i < (cut ? limit : pairs); ++i) {
      int high = digits.charAt(2 * i) - '0';
      int low = 2 * i + 1 < digits.length() ? digits.charAt(2 * i + 1) - '0' : 0;
      out.put(high * 10 + low + 1);
    }
    out.put(cut ? DECIMAL_CUT : DECIMAL_END);
    if (decimal.negative) out.flip(begin);
    return cut;
  }

  /** A value that may have been cut. */
  private static final class Taken {
    Value value;
    boolean cut;
  }

  private static DamagedBytesException damaged(String what) {
    return new DamagedBytesException("cannot decode " + what + ": the bytes are damaged or foreign");
  }

  private static Taken take(Type type, ByteReader in) throws DamagedBytesException {
    Taken taken = new Taken();
    int tag = in.takeByte();
    if (tag == NULL_TAG) return taken;
    if (tag != VALUE_TAG) throw damaged("an encoded value");
    switch (type) {
      case TEXT:
      case BYTES: {
        ByteWriter text = new ByteWriter();
        int mark;
        while (true) {
          int b = in.takeByte();
          if (b != 0) {
            text.put(b);
            continue;
          }
          mark = in.takeByte();
          if (mark != ESCAPED_ZERO) break;
          text.put(0);
        }
        if (mark != TEXT_END && mark != TEXT_CUT) throw damaged("an encoded text");
        taken.cut = mark == TEXT_CUT;
        taken.value = type == Type.TEXT ? Value.text(text.toBytes()) : Value.bytes(text.toBytes());
        return taken;
      }
      case DECIMAL:
        takeDecimal(in, taken);
        return taken;
      case DOUBLE: {
        long ordered = in.takeBig(8);
        double d = Double.longBitsToDouble(ordered < 0 ? ordered & ~SIGN_BIT : ~ordered);
        if (Double.isNaN(d) || (d == 0 && ordered >= 0)) throw damaged("an encoded double");
        taken.value = Value.real(d);
        return taken;
      }
      case BOOL: {
        int truth = in.takeByte();
        if (truth > 1) throw damaged("an encoded truth value");
        taken.value = Value.bool(truth != 0);
        return taken;
      }
      default: {
        long n = in.takeBig(8) ^ SIGN_BIT;
        taken.value = type == Type.INT64 ? Value.int64(n) : Value.timestamp(n);
        return taken;
      }
    }
  }

  private static void takeDecimal(ByteReader in, Taken taken) throws DamagedBytesException {
    int sign = in.takeByte();
    if (sign == ZERO) {
      taken.value = Value.decimal(Decimal.ZERO);
      return;
    }
    if (sign != NEGATIVE && sign != POSITIVE) throw damaged("an encoded decimal");
    boolean negative = sign == NEGATIVE;
    int flip = negative ? 0xff : 0;
    int exponent = (int) in.takeBig(4) ^ (negative ? -1 : 0) ^ 0x80000000;
    StringBuilder digits = new StringBuilder();
    while (true) {
      int pair = in.takeByte() ^ flip;
      if (pair >= 1 && pair <= 100) {
        digits.append((char) ('0' + (pair - 1) / 10)).append((char) ('0' + (pair - 1) % 10));
        continue;
      }
      if (pair == DECIMAL_CUT) {
        taken.cut = true;
        return;
      }
      if (pair != DECIMAL_END || digits.length() == 0 || digits.charAt(0) == '0') throw damaged("an encoded decimal");
      break;
    }
    if (digits.charAt(digits.length() - 1) == '0') digits.setLength(digits.length() - 1);
    if (digits.charAt(digits.length() - 1) == '0' || Math.abs((long) exponent) > Decimal.MAX_EXPONENT) {
      throw damaged("an encoded decimal");
    }
    taken.value = Value.decimal(new Decimal(negative, digits.toString(), exponent));
  }

  /** Takes one value off the front. */
  public static Value readOrdered(Type type, ByteReader in) throws DamagedBytesException {
    Taken taken = take(type, in);
    if (taken.cut) throw new DamagedBytesException("cannot decode a key: it holds a value that was cut");
    return taken.value;
  }

  // ---- Index entries

  /** Takes one value of an entry into the row; false: it was cut, and is not the value that was put. */
  public static boolean readIndexed(Type type, ByteReader in, Value[] row, int column) throws DamagedBytesException {
    Taken taken = take(type, in);
    row[column] = taken.value;
    return !taken.cut;
  }

  /** Takes one value of an entry off the front without decoding it. */
  public static void skipIndexed(Type type, ByteReader in) throws DamagedBytesException {
    int tag = in.takeByte();
    if (tag == NULL_TAG) return;
    if (tag != VALUE_TAG) throw damaged("an encoded value");
    switch (type) {
      case TEXT:
      case BYTES:
        skipText(in);
        return;
      case DECIMAL:
        skipDecimal(in);
        return;
      case BOOL:
        in.takeByte();
        return;
      default:
        in.takeBig(8);
    }
  }

  private static void skipText(ByteReader in) throws DamagedBytesException {
    int mark;
    do {
      int b;
      do {
        b = in.takeByte();
      } while (b != 0);
      mark = in.takeByte();
    } while (mark == ESCAPED_ZERO);
    if (mark != TEXT_END && mark != TEXT_CUT) throw damaged("an encoded text");
  }

  private static void skipDecimal(ByteReader in) throws DamagedBytesException {
    int sign = in.takeByte();
    if (sign == ZERO) return;
    if (sign != NEGATIVE && sign != POSITIVE) throw damaged("an encoded decimal");
    int flip = sign == NEGATIVE ? 0xff : 0;
    in.takeBig(4); // the exponent
    int pair;
    do {
      pair = in.takeByte() ^ flip;
    } while (pair >= 1 && pair <= 100);
    if (pair != DECIMAL_END && pair != DECIMAL_CUT) throw damaged("an encoded decimal");
  }

  /** The included columns of an index as a stored row: the value of an entry. */
  public static byte[] encodeIncluded(Schema schema, Schema.Index index, Value[] row) {
    if (index.include.length == 0) return Key.EMPTY;
    boolean[] wanted = new boolean[row.length];
    for (int column : index.include) wanted[column] = true;
    return encodeRow(schema, row, wanted);
  }

  /** Whether the row has no entry in the index. */
  public static boolean isSkipped(Schema.Index index, Value[] row) {
    return (index.skipsNull && row[index.columns[0]] == null) || (index.where != null && !index.where.matches(row));
  }

  /**
   * The encoded values of an index for a row, one string a leading prefix: [a], [a b], [a b c] for an index on (a, b,
   * c). The last one is what stands in the entry; all are what the filter holds.
   */
  public static byte[][] indexPrefixes(Schema.Index index, Value[] row) {
    byte[][] prefixes = new byte[index.columns.length][];
    ByteWriter out = new ByteWriter(sizeOf(index, row));
    for (int i = 0; i < prefixes.length; ++i) {
      appendIndexed(row[index.columns[i]], out);
      prefixes[i] = out.toBytes();
    }
    return prefixes;
  }

  /** About the size of the encoded values: exact unless a text has zero bytes or is cut. */
  private static int sizeOf(Schema.Index index, Value[] row) {
    int size = 0;
    for (int column : index.columns) {
      Value value = row[column];
      boolean text = value != null && (value.type() == Type.TEXT || value.type() == Type.BYTES);
      size += value == null ? 1 : text ? Math.min(value.bytes().length, INDEX_VALUE_LIMIT) + 3 : 9;
    }
    return size;
  }

  /** The same of the encoded values of an entry. */
  public static byte[][] prefixesOf(Schema schema, Schema.Index index, byte[] values) throws DamagedBytesException {
    byte[][] prefixes = new byte[index.columns.length][];
    ByteReader in = new ByteReader(values);
    for (int i = 0; i < prefixes.length; ++i) {
      take(schema.columns[index.columns[i]].type, in);
      prefixes[i] = Arrays.copyOf(values, in.at());
    }
    return prefixes;
  }

  /** Where the row key begins in an entry whose encoded values begin at `from`. */
  public static int rowKeyOffset(Schema schema, Schema.Index index, byte[] entry, int from)
      throws DamagedBytesException {
    ByteReader in = new ByteReader(entry, from);
    for (int column : index.columns) take(schema.columns[column].type, in);
    return in.at();
  }

  /** The entry of the row: encoded values, then row key; null: the row has none in the index. */
  public static byte[] entryOf(Schema.Index index, Value[] row, byte[] key) {
    if (isSkipped(index, row)) return null;
    byte[][] prefixes = indexPrefixes(index, row);
    return Key.concat(prefixes[prefixes.length - 1], key);
  }

  /** The row key of such an entry. */
  public static byte[] rowKeyOf(Schema schema, Schema.Index index, byte[] entry) throws DamagedBytesException {
    return Arrays.copyOfRange(entry, rowKeyOffset(schema, index, entry, 0), entry.length);
  }

  // ---- Rows (docs/FORMATS.md#rows)

  private static final int VARINT = 0;
  private static final int FIXED64 = 1;
  private static final int STRING = 2;

  private static int payloadOf(Type type) {
    switch (type) {
      case INT64:
      case TIMESTAMP:
      case BOOL:
        return VARINT;
      case DOUBLE:
        return FIXED64;
      default:
        return STRING;
    }
  }

  /** The row without its key columns; of the others those that are wanted (null = all). */
  public static byte[] encodeRow(Schema schema, Value[] row, boolean[] wanted) {
    ByteWriter out = new ByteWriter();
    for (int i = 0; i < row.length; ++i) {
      Value value = row[i];
      if (value == null || schema.isKey(i) || (wanted != null && !wanted[i])) continue;
      int payload = payloadOf(value.type());
      out.putVarint((schema.columns[i].id & 0xffffffffL) << 2 | payload);
      switch (payload) {
        case VARINT:
          out.putVarint(value.number() << 1 ^ value.number() >> 63);
          break;
        case FIXED64:
          out.putLittle64(Double.doubleToRawLongBits(value.real()));
          break;
        default:
          out.putLengthPrefixed(value.type() == Type.DECIMAL
                  ? value.decimal().toString().getBytes(java.nio.charset.StandardCharsets.ISO_8859_1)
                  : value.bytes());
      }
    }
    return out.toBytes();
  }

  /** Sets the columns that are not in the key. */
  public static void decodeRow(Schema schema, byte[] bytes, Value[] row) throws DamagedBytesException {
    for (int i = 0; i < row.length; ++i) {
      if (!schema.isKey(i)) row[i] = null;
    }
    ByteReader in = new ByteReader(bytes);
    while (!in.isEmpty()) {
      long tag = in.takeVarint();
      int payload = (int) (tag & 3);
      Integer column = schema.columnOfId(tag >>> 2);
      if (column == null) { // a column that the schema does not know
        if (payload == VARINT) {
          in.takeVarint();
        } else if (payload == FIXED64) {
          in.takeLittle64();
        } else if (payload == STRING) {
          in.takeLengthPrefixed();
        } else {
          throw damaged("a stored row");
        }
        continue;
      }
      Type type = schema.columns[column].type;
      if (schema.isKey(column) || payload != payloadOf(type)) throw damaged("a stored row");
      row[column] = readPayload(type, in);
    }
  }

  private static Value readPayload(Type type, ByteReader in) throws DamagedBytesException {
    switch (type) {
      case INT64:
      case TIMESTAMP:
      case BOOL: {
        long zigzag = in.takeVarint();
        long n = zigzag >>> 1 ^ -(zigzag & 1);
        if (type == Type.INT64) return Value.int64(n);
        if (type == Type.TIMESTAMP) return Value.timestamp(n);
        if (n != 0 && n != 1) throw damaged("a stored truth value");
        return Value.bool(n != 0);
      }
      case DOUBLE: {
        Value value = Value.real(Double.longBitsToDouble(in.takeLittle64()));
        if (value == null) throw damaged("a stored double");
        return value;
      }
      case TEXT:
        return Value.text(in.takeLengthPrefixed());
      case BYTES:
        return Value.bytes(in.takeLengthPrefixed());
      default: {
        Decimal decimal =
            Decimal.parse(new String(in.takeLengthPrefixed(), java.nio.charset.StandardCharsets.ISO_8859_1));
        if (decimal == null) throw damaged("a stored decimal");
        return Value.decimal(decimal);
      }
    }
  }
}
