package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class HeldRemovalsTest {
  private static final long[] A = {1, 2};
  private static final long[] B = {1, 3};

  private final HeldRemovals held = new HeldRemovals();

  private List<Long> drained() {
    List<Long> last = new ArrayList<>();
    held.drain(entry -> last.add(entry[1]));
    last.sort(null);
    return last;
  }

  @Test
  void removalIsHeldUntilDrained() {
    assertEquals(HeldRemovals.Removal.HELD, held.remove(A));
    assertEquals(HeldRemovals.Removal.HELD, held.remove(A.clone()));
    assertEquals(HeldRemovals.Removal.HELD, held.remove(B));
    assertEquals(2, held.size());
    assertEquals(Arrays.asList(2L, 2L, 3L), drained());
    assertEquals(0, held.size());
    assertFalse(held.cancel(A));
  }

  @Test
  void entryThatWasAddedIsRemovedAtOnceAsOftenAsItWasAdded() {
    held.added(A);
    held.added(A.clone());
    assertEquals(HeldRemovals.Removal.HELD, held.remove(B));
    assertEquals(HeldRemovals.Removal.NOW, held.remove(A));
    assertEquals(HeldRemovals.Removal.NOW, held.remove(A));
    assertEquals(HeldRemovals.Removal.HELD, held.remove(A));
  }

  @Test
  void entryCancelsAHeldRemovalOnce() {
    held.remove(A);
    held.remove(A);
    assertTrue(held.cancel(A.clone()));
    assertFalse(held.cancel(B));
    assertTrue(held.cancel(A));
    assertFalse(held.cancel(A));
    assertTrue(drained().isEmpty());
  }

  @Test
  void afterADrainOrAClearNothingIsRemembered() {
    for (Runnable forget : new Runnable[] {() -> held.drain(entry -> {}), held::clear}) {
      held.added(A);
      held.remove(B);
      forget.run();
      assertEquals(0, held.size());
      assertFalse(held.cancel(B));
      assertEquals(HeldRemovals.Removal.HELD, held.remove(A), "it was added before");
      held.clear();
    }
  }

  /** Where a removal in the counters throws, it and those after it are still held. */
  @Test
  void drainThatThrowsKeepsTheRest() {
    held.remove(A);
    held.remove(B);
    int[] calls = new int[1];
    try {
      held.drain(entry -> {
        if (++calls[0] == 2) throw new OutOfMemoryError("for a test");
      });
    } catch (OutOfMemoryError e) {
      assertEquals(2, calls[0]);
    }
    assertEquals(1, held.size());
    assertEquals(1, drained().size());
  }

  @Test
  void removalBeyondTheBoundIsForgotten() {
    for (int i = 0; i < HeldRemovals.MOST; ++i) assertEquals(HeldRemovals.Removal.HELD, held.remove(new long[] {i}));
    assertEquals(HeldRemovals.Removal.FORGOTTEN, held.remove(A));
    assertEquals(HeldRemovals.Removal.HELD, held.remove(new long[] {0}), "its value is held already");
    assertTrue(held.cancel(new long[] {7}));
    assertEquals(HeldRemovals.Removal.HELD, held.remove(A));
    assertEquals(HeldRemovals.MOST, held.size());
  }
}
