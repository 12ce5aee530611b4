package tamis.table;

/**
 * How the key columns of a table are encoded in the bytes of a row key (docs/TABLES.md#keys). A key is read only if
 * encoding its values would give the same bytes; any other key is not a key of the table.
 */
public final class KeyFormat {
  private KeyFormat() {}

  public static byte[] encode(Schema schema, Value[] row) throws RefusedValueException {
    ByteWriter key = new ByteWriter();
    for (int i = 0; i < schema.key.length; ++i) append(schema, i, row[schema.key[i]], key);
    if (key.size() == 0) throw new RefusedValueException("a row key cannot be empty");
    return key.toBytes();
  }

  private static void append(Schema schema, int i, Value value, ByteWriter key) throws RefusedValueException {
    Schema.KeyPart part = schema.keyParts[i];
    if (part.form == Schema.KeyPart.Form.ORDERED) {
      Codec.appendOrdered(value, key);
      return;
    }
    String column = "key column \"" + schema.columns[schema.key[i]].name + "\": ";
    if (value == null) throw new RefusedValueException(column + "it cannot be NULL");
    byte[] bytes = part.encoding.encode(value);
    if (part.width != 0 && bytes.length != part.width) {
      throw new RefusedValueException(
          column + "a value of " + bytes.length + " bytes; the key has " + part.width + " for it");
    }
    if (part.form == Schema.KeyPart.Form.UNTIL) {
      // The first place at which the delimiter would be found, were it put after them.
      if (new ByteReader(Key.concat(bytes, part.delimiter)).find(part.delimiter) != bytes.length) {
        throw new RefusedValueException(column + "the value holds the delimiter that ends it in the key");
      }
    }
    key.put(bytes);
    if (part.form == Schema.KeyPart.Form.UNTIL) key.put(part.delimiter);
  }

  /** Fills the key columns of the row; false when the bytes are no key of this format. */
  public static boolean decode(Schema schema, byte[] key, Value[] row) {
    if (key.length == 0) return false;
    ByteReader in = new ByteReader(key);
    try {
      for (int i = 0; i < schema.key.length; ++i) {
        Value value = take(schema, i, in);
        if (value == null && schema.keyParts[i].form != Schema.KeyPart.Form.ORDERED) return false;
        row[schema.key[i]] = value;
      }
    } catch (DamagedBytesException | RefusedValueException e) {
      return false;
    }
    return in.isEmpty();
  }

  private static Value take(Schema schema, int i, ByteReader in) throws DamagedBytesException, RefusedValueException {
    Schema.KeyPart part = schema.keyParts[i];
    Type type = schema.columns[schema.key[i]].type;
    int size;
    int behind = 0;
    switch (part.form) {
      case ORDERED:
        return Codec.readOrdered(type, in);
      case UNTIL:
        size = in.find(part.delimiter) - in.at();
        behind = part.delimiter.length;
        if (size < 0) return null;
        break;
      case FIXED:
        size = part.width != 0 ? part.width : part.encoding.width();
        break;
      default:
        size = in.left();
    }
    byte[] bytes = in.take(size);
    Value value = part.encoding.decode(type, bytes);
    if (value == null || !java.util.Arrays.equals(part.encoding.encode(value), bytes)) return null;
    in.take(behind);
    return value;
  }
}
