package tamis.filter;

import tamis.shaded.openhft.hashing.LongHashFunction;

/** The one seeded hash of bytes: XXH3-64, as tamis/base/hash.h. */
public final class Hash {
  private Hash() {}

  public static long of(byte[] bytes, long seed) {
    return LongHashFunction.xx3(seed).hashBytes(bytes);
  }

  /** The finalizer of SplitMix64. */
  static long mix(long x) {
    x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
    x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
    return x ^ x >>> 31;
  }

  /** The high half of the 128-bit product of a word and n, which has 32 bits. */
  static long range(long word, long n) {
    long low = (word & 0xffffffffL) * n;
    return ((word >>> 32) * n + (low >>> 32)) >>> 32;
  }
}
