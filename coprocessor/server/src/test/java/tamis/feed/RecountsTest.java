package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RecountsTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);
  private static final long BEGAN = Long.MAX_VALUE - 10 * SECOND; // nanoTime may overflow

  private final Recounts recounts = new Recounts();

  @Test
  void recountsRunOneAfterTheOther() {
    assertFalse(recounts.isUnderWay());
    assertTrue(recounts.begin(BEGAN));
    assertTrue(recounts.isUnderWay());
    assertFalse(recounts.begin(BEGAN));
    recounts.end();
    assertFalse(recounts.isUnderWay());
    assertTrue(recounts.begin(BEGAN));
  }

  @Test
  void recountThatFailsIsRetriedLaterAndLater() {
    long now = BEGAN;
    long[] pauses = {1, 2, 4, 8, 16, 32, 64, 128, 240, 240};
    for (int i = 0; i < pauses.length; ++i) {
      assertEquals(i, recounts.failures());
      assertTrue(recounts.begin(now));
      recounts.failed(now);
      recounts.end();
      now += pauses[i] * SECOND;
      assertFalse(recounts.begin(now - 1));
    }
    assertTrue(recounts.begin(now));
    recounts.done(now, now);
    recounts.end();
    assertEquals(0, recounts.failures());
    assertTrue(recounts.begin(now - SECOND), "nothing failed since");
  }

  @Test
  void recountIsFollowedByARestOfNineTimesItsLength() {
    assertFalse(recounts.rests(0));
    long done = BEGAN + 20 * SECOND; // beyond the overflow
    recounts.done(BEGAN, done);
    assertTrue(recounts.rests(done));
    assertTrue(recounts.rests(done + 180 * SECOND - 1));
    assertFalse(recounts.rests(done + 180 * SECOND));
    recounts.done(done, done);
    assertFalse(recounts.rests(done));
  }

  @Test
  void lookThatIsPutOffIsTakenOnce() {
    assertFalse(recounts.takePutOff());
    recounts.putOff();
    assertTrue(recounts.takePutOff());
    assertFalse(recounts.takePutOff());
  }
}
