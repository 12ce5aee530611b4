package tamis.table;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import tamis.shaded.openhft.hashing.LongHashFunction;

/** The hash is a part of the formats: coordinators that are not written in Java compute the same. */
class HashTest {
  private static final BigInteger WORD = BigInteger.ONE.shiftLeft(64);

  private static BigInteger unsigned(long word) {
    return new BigInteger(Long.toUnsignedString(word));
  }

  /** Seeds that share a slot of the cache do not share its function. */
  @Test
  void eachSeedHasItsFunctionWhicheverWasUsedBefore() {
    byte[] bytes = "value".getBytes(StandardCharsets.UTF_8);
    for (int round = 0; round < 2; ++round) {
      for (long seed = 0; seed < 2000; ++seed) {
        assertEquals(LongHashFunction.xx3(seed).hashBytes(bytes), Hash.of(bytes, seed), "seed " + seed);
        assertEquals(Hash.of(bytes, seed), Hash.of(bytes, seed), "seed " + seed);
      }
    }
  }

  @Test
  void rangeIsTheHighHalfOfTheProduct() {
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < 10_000; ++i) {
      long word = i == 0 ? -1 : random.nextLong();
      long n = i == 0 ? 0xffffffffL : random.nextLong(1L << 32);
      BigInteger product = unsigned(word).multiply(unsigned(n));
      assertEquals(product.divide(WORD).longValueExact(), Hash.range(word, n));
    }
  }

  /** The first numbers of SplitMix64 from the seed 0, as published with it. */
  @Test
  void mixIsTheFinalizerOfSplitMix64() {
    assertEquals(0xe220a8397b1dcdafL, Hash.mix(0x9e3779b97f4a7c15L));
    assertEquals(0x6e789e6aa1b965f4L, Hash.mix(2 * 0x9e3779b97f4a7c15L));
    assertEquals(0x06c45d188009454fL, Hash.mix(3 * 0x9e3779b97f4a7c15L));
  }
}
