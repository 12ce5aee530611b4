package tamis.table;

import java.util.Arrays;

/** Reads fields from the front of a byte array. Throws DamagedBytesException when the bytes end too early. */
public final class ByteReader {
  private final byte[] bytes;
  private int at;

  public ByteReader(byte[] bytes) {
    this(bytes, 0);
  }

  public ByteReader(byte[] bytes, int at) {
    this.bytes = bytes;
    this.at = at;
  }

  public int at() {
    return at;
  }

  public int left() {
    return bytes.length - at;
  }

  public boolean isEmpty() {
    return at >= bytes.length;
  }

  public byte[] rest() {
    byte[] rest = Arrays.copyOfRange(bytes, at, bytes.length);
    at = bytes.length;
    return rest;
  }

  public int takeByte() throws DamagedBytesException {
    if (isEmpty()) throw damaged();
    return bytes[at++] & 0xff;
  }

  public byte[] take(int size) throws DamagedBytesException {
    if (size < 0 || size > left()) throw damaged();
    at += size;
    return Arrays.copyOfRange(bytes, at - size, at);
  }

  public long takeBig(int width) throws DamagedBytesException {
    long n = 0;
    for (int i = 0; i < width; ++i) n = n << 8 | takeByte();
    return n;
  }

  public long takeLittle64() throws DamagedBytesException {
    long n = 0;
    for (int i = 0; i < 8; ++i) n |= (long) takeByte() << (8 * i);
    return n;
  }

  public long takeVarint() throws DamagedBytesException {
    long n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      int b = takeByte();
      if (shift == 63 && b > 1) break;
      n |= (long) (b & 0x7f) << shift;
      if (b < 0x80) return n;
    }
    throw damaged();
  }

  public byte[] takeLengthPrefixed() throws DamagedBytesException {
    long size = takeVarint();
    if (size < 0 || size > left()) throw damaged();
    return take((int) size);
  }

  /** Position of the bytes from here on, or -1. */
  int find(byte[] what) {
    for (int i = at; i + what.length <= bytes.length; ++i) {
      int j = 0;
      while (j < what.length && bytes[i + j] == what[j]) ++j;
      if (j == what.length) return i;
    }
    return -1;
  }

  private static DamagedBytesException damaged() {
    return new DamagedBytesException("the bytes end too early, or are foreign");
  }
}
