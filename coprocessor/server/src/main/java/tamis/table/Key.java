package tamis.table;

import java.util.Arrays;

/** A string of bytes, ordered as unsigned bytes: row keys, index entries, encoded values. A value. */
public final class Key implements Comparable<Key> {
  public static final byte[] EMPTY = new byte[0];

  private final byte[] bytes;

  public Key(byte[] bytes) {
    this.bytes = bytes;
  }

  public byte[] bytes() {
    return bytes;
  }

  public static int compare(byte[] a, byte[] b) {
    int size = Math.min(a.length, b.length);
    for (int i = 0; i < size; ++i) {
      int order = (a[i] & 0xff) - (b[i] & 0xff);
      if (order != 0) return order;
    }
    return a.length - b.length;
  }

  public static boolean startsWith(byte[] bytes, byte[] prefix) {
    if (bytes.length < prefix.length) return false;
    for (int i = 0; i < prefix.length; ++i) {
      if (bytes[i] != prefix[i]) return false;
    }
    return true;
  }

  public static byte[] concat(byte[]... parts) {
    int size = 0;
    for (byte[] part : parts) size += part.length;
    byte[] out = new byte[size];
    int at = 0;
    for (byte[] part : parts) {
      System.arraycopy(part, 0, out, at, part.length);
      at += part.length;
    }
    return out;
  }

  /** The least key after this one. */
  public static byte[] after(byte[] key) {
    return Arrays.copyOf(key, key.length + 1);
  }

  /** The least key after all that begin with the prefix; empty where there is none. */
  public static byte[] prefixEnd(byte[] prefix) {
    int size = prefix.length;
    while (size > 0 && prefix[size - 1] == (byte) 0xff) --size;
    byte[] end = Arrays.copyOf(prefix, size);
    if (size > 0) ++end[size - 1];
    return end;
  }

  @Override
  public int compareTo(Key other) {
    return compare(bytes, other.bytes);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Key && Arrays.equals(bytes, ((Key) other).bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }
}
