package tamis.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** A check of the server's ownership holds one of its handlers. */
class OwnershipTest {
  /** The log's sync hangs, say. */
  @Test
  void hangingProofBlocksNoCaller() {
    CountDownLatch ends = new CountDownLatch(1);
    Ownership ownership = new Ownership(ends::await, 1);
    for (int i = 0; i < 20; ++i) {
      ownership.want();
      assertFalse(ownership.ensure());
      assertTrue(ownership.verifiedUntil() - System.nanoTime() <= 0); // no lease
    }
    ends.countDown();
  }

  @Test
  void settingTheWallClockEndsOnlyEarlierProofs() {
    AtomicInteger proofs = new AtomicInteger();
    AtomicLong wallMs = new AtomicLong();
    AtomicLong nanos = new AtomicLong();
    Ownership ownership = new Ownership(proofs::incrementAndGet, nanos::incrementAndGet, wallMs::get);
    assertTrue(ownership.ensure());
    assertTrue(ownership.verifiedUntil() > nanos.get());
    long days = TimeUnit.DAYS.toMillis(400);
    for (long jump : new long[] {days, -2 * days, days}) {
      wallMs.addAndGet(jump);
      assertFalse(ownership.verifiedUntil() > nanos.get());
      int before = proofs.get();
      assertTrue(ownership.ensure());
      assertEquals(before + 1, proofs.get());
      assertTrue(ownership.verifiedUntil() > nanos.get());
    }
  }

  @Test
  void oneProofServesAllCallers() throws Exception {
    CountDownLatch ends = new CountDownLatch(1);
    AtomicInteger proofs = new AtomicInteger();
    AtomicInteger owners = new AtomicInteger();
    Ownership ownership = new Ownership(() -> {
      proofs.incrementAndGet();
      ends.await();
    }, () -> 0, () -> 0); // it holds for ever
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      Thread thread = new Thread(() -> {
        if (ownership.ensure()) owners.incrementAndGet();
      });
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      while (thread.getState() != Thread.State.WAITING && thread.getState() != Thread.State.TIMED_WAITING)
        Thread.yield();
    }
    ends.countDown();
    for (Thread thread : threads) thread.join();
    assertEquals(8, owners.get());
    assertEquals(1, proofs.get());
  }
}
