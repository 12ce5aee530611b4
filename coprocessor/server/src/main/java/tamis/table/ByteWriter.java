package tamis.table;

import java.util.Arrays;

/** Bytes that grow. */
public final class ByteWriter {
  private byte[] bytes;
  private int size;

  public ByteWriter() {
    this(64);
  }

  /** With room for so many bytes: exactly as many cost one array. */
  public ByteWriter(int capacity) {
    bytes = new byte[capacity];
  }

  private void reserve(int more) {
    if (bytes.length - size < more) bytes = Arrays.copyOf(bytes, Math.max(size + more, bytes.length * 2));
  }

  public ByteWriter put(int b) {
    reserve(1);
    bytes[size++] = (byte) b;
    return this;
  }

  public ByteWriter put(byte[] in) {
    return put(in, 0, in.length);
  }

  public ByteWriter put(byte[] in, int from, int count) {
    reserve(count);
    System.arraycopy(in, from, bytes, size, count);
    size += count;
    return this;
  }

  /** The lowest `width` bytes, the highest first. */
  public ByteWriter putBig(long n, int width) {
    for (int i = width - 1; i >= 0; --i) put((int) (n >>> (8 * i)));
    return this;
  }

  public ByteWriter putLittle64(long n) {
    for (int i = 0; i < 8; ++i) put((int) (n >>> (8 * i)));
    return this;
  }

  public ByteWriter putVarint(long n) {
    while ((n & ~0x7fL) != 0) {
      put((int) (n & 0x7f) | 0x80);
      n >>>= 7;
    }
    return put((int) n);
  }

  public ByteWriter putLengthPrefixed(byte[] in) {
    return putVarint(in.length).put(in);
  }

  /** Complements what was written from there on. */
  void flip(int from) {
    for (int i = from; i < size; ++i) bytes[i] = (byte) ~bytes[i];
  }

  public int size() {
    return size;
  }

  /** The bytes so far, which later ones do not change: these go to another array. */
  public byte[] toBytes() {
    return size == bytes.length ? bytes : Arrays.copyOf(bytes, size);
  }
}
