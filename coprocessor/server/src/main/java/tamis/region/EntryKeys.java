package tamis.region;

import java.util.Arrays;
import tamis.feed.IndexEntry;
import tamis.table.ByteWriter;
import tamis.table.Codec;
import tamis.table.DamagedBytesException;
import tamis.table.Key;
import tamis.table.Schema;

/**
 * The keys of the entries of one region: prefix, index id (4 bytes), encoded values, row key. The prefix is the
 * region's start key and as many zero bytes as the table's attribute says; so entries lie within the region (see fit).
 * Index id 0 holds the markers of complete indexes, one per index. A value.
 */
public final class EntryKeys {
  private final byte[] start;
  private final byte[] end;
  private final byte[] prefix;

  public EntryKeys(byte[] start, byte[] end, int zeros) {
    this.start = start;
    this.end = end;
    prefix = Arrays.copyOf(start, start.length + zeros);
  }

  /** False if the region's end key leaves no room for entries: then searches scan the region. */
  public boolean fit() {
    byte[] last = Key.concat(prefix, new byte[] {-1, -1, -1, -1});
    return end.length == 0 || Key.compare(last, end) < 0;
  }

  public byte[] index(int indexId) {
    return new ByteWriter().put(prefix).putBig(indexId, 4).toBytes();
  }

  public byte[] entry(int indexId, byte[] values, byte[] row) {
    byte[] key = Arrays.copyOf(prefix, prefix.length + 4 + values.length + row.length);
    int at = prefix.length;
    for (int shift = 24; shift >= 0; shift -= 8) key[at++] = (byte) (indexId >>> shift);
    System.arraycopy(values, 0, key, at, values.length);
    System.arraycopy(row, 0, key, at + values.length, row.length);
    return key;
  }

  public byte[] marker(int indexId) {
    return new ByteWriter().put(prefix).putBig(0, 4).putBig(indexId, 4).toBytes();
  }

  public boolean contains(byte[] row) {
    return Key.compare(row, start) >= 0 && (end.length == 0 || Key.compare(row, end) < 0);
  }

  /** The kind of a row of the index family. */
  public enum Kind { ENTRY, MARKER, GARBAGE, DAMAGED }

  /**
   * GARBAGE: an entry of another region, of a dropped index, or of a row outside of the region. DAMAGED: a key that has
   * the id of an index but cannot be decoded.
   */
  public Kind kindOf(Schema schema, byte[] key) {
    if (!Key.startsWith(key, prefix) || key.length < prefix.length + 4) return Kind.GARBAGE;
    int id = indexOf(key);
    if (id == 0) {
      return key.length == prefix.length + 8 && schema.index(idAt(key, prefix.length + 4)) != null ? Kind.MARKER
                                                                                                   : Kind.GARBAGE;
    }
    Schema.Index index = schema.index(id);
    if (index == null) return Kind.GARBAGE;
    try {
      return contains(rowOf(schema, index, key)) ? Kind.ENTRY : Kind.GARBAGE;
    } catch (DamagedBytesException e) {
      return Kind.DAMAGED;
    }
  }

  /** The id of an entry's index. */
  public int indexOf(byte[] key) {
    return idAt(key, prefix.length);
  }

  /** The row of an entry. */
  public byte[] rowOf(Schema schema, Schema.Index index, byte[] key) throws DamagedBytesException {
    return Arrays.copyOfRange(key, Codec.rowKeyOffset(schema, index, key, prefix.length + 4), key.length);
  }

  /** The entry that a key stands for, without what the key does not tell: the time stamp and the included columns. */
  public IndexEntry read(Schema schema, Schema.Index index, byte[] key) throws DamagedBytesException {
    int end = Codec.rowKeyOffset(schema, index, key, prefix.length + 4);
    byte[] values = Arrays.copyOfRange(key, prefix.length + 4, end);
    return new IndexEntry(index, key, Codec.prefixesOf(schema, index, values), 0, true);
  }

  private static int idAt(byte[] key, int at) {
    return (key[at] & 0xff) << 24 | (key[at + 1] & 0xff) << 16 | (key[at + 2] & 0xff) << 8 | (key[at + 3] & 0xff);
  }
}
