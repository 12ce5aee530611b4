package tamis.table;

import tamis.shaded.openhft.hashing.LongHashFunction;

/** The one seeded hash of bytes: XXH3-64, as tamis/base/hash.h. */
public final class Hash {
  /** A hash function with its seed. Kept, since preparing one takes longer than hashing a value, and seeds are few. */
  private static final class Seeded {
    final long seed;
    final LongHashFunction function;

    Seeded(long seed) {
      this.seed = seed;
      function = LongHashFunction.xx3(seed);
    }
  }

  // A cache. Threads write to it without a lock: an entry that is overwritten is only made again.
  private static final Seeded[] RECENT = new Seeded[256];

  private Hash() {}

  public static long of(byte[] bytes, long seed) {
    int slot = (int) mix(seed) & RECENT.length - 1;
    Seeded seeded = RECENT[slot];
    if (seeded == null || seeded.seed != seed) {
      seeded = new Seeded(seed);
      RECENT[slot] = seeded;
    }
    return seeded.function.hashBytes(bytes);
  }

  /** The finalizer of SplitMix64. */
  public static long mix(long x) {
    x = (x ^ x >>> 30) * 0xbf58476d1ce4e5b9L;
    x = (x ^ x >>> 27) * 0x94d049bb133111ebL;
    return x ^ x >>> 31;
  }

  /** The high half of the 128-bit product of a word and n, which has 32 bits. */
  public static long range(long word, long n) {
    long low = (word & 0xffffffffL) * n;
    return ((word >>> 32) * n + (low >>> 32)) >>> 32;
  }
}
