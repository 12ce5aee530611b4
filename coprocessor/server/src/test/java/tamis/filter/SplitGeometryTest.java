package tamis.filter;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.junit.jupiter.api.Test;

class SplitGeometryTest {
  @Test
  void slicesHalveTheRateEach() {
    double[] rates = {0.9, 0.5, 0.3, 0.25, 0.02, 0.001, 0x1p-10, 0x1p-32, 0x1p-33, 0};
    int[] slices = {1, 1, 2, 2, 6, 10, 10, 32, 32, 32};
    for (int i = 0; i < rates.length; ++i) {
      assertEquals(slices[i], SplitGeometry.of(rates[i], 100).slices, "for " + rates[i]);
    }
  }

  @Test
  void capacityIsTheNumberOfHashesThatItWasMadeFor() {
    // With the last two, the formula gives less than 10^-6 above the number.
    for (long hashes : new long[] {1, 2, 3, 7, 64, 1000, 65_536, 1_000_000, 418_079, 2_090_395}) {
      SplitGeometry geometry = SplitGeometry.of(0.001, hashes);
      assertEquals(hashes, geometry.capacity());
      assertEquals(10 * geometry.slicePositions, geometry.positions());
    }
    assertEquals(2, SplitGeometry.of(0.001, 0).slicePositions);
    assertEquals(1, new SplitGeometry(10, 1).capacity());
    assertEquals(1, new SplitGeometry(10, 2).capacity());
  }

  @Test
  void eachSliceHasItsOwnPositions() {
    SplitGeometry geometry = new SplitGeometry(3, 100);
    for (long hash = 1; hash < 1000; ++hash) {
      for (int slice = 0; slice < 3; ++slice) {
        assertEquals(slice, geometry.position(hash * 0x9e3779b97f4a7c15L, slice) / 100);
      }
    }
  }

  /** The bits of a filter travel to coordinators that are not written in Java: each position must be the same there. */
  @Test
  void positionsAreThoseOfTheFormat() {
    SplitGeometry geometry = new SplitGeometry(3, 1000);
    long[][] positions = {{883, 1431, 2026}, {83, 1833, 2185}, {22, 1051, 2948}, {175, 1622, 2487}};
    for (int i = 0; i < positions.length; ++i) {
      long hash = i * 0x123456789abcdefL;
      for (int slice = 0; slice < 3; ++slice) assertEquals(positions[i][slice], geometry.position(hash, slice));
    }
  }

  @Test
  void equalGeometriesHaveEqualHashCodes() {
    SplitGeometry geometry = new SplitGeometry(3, 100);
    assertEquals(geometry, new SplitGeometry(3, 100));
    assertEquals(geometry.hashCode(), new SplitGeometry(3, 100).hashCode());
    assertNotEquals(geometry, new SplitGeometry(4, 100));
    assertNotEquals(geometry, new SplitGeometry(3, 101));
    assertNotEquals(geometry.hashCode(), new SplitGeometry(4, 100).hashCode());
    assertNotEquals(geometry.hashCode(), new SplitGeometry(3, 101).hashCode());
  }
}
