package tamis.feed;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import tamis.base.Fault;
import tamis.base.StatusException;
import tamis.pb.Cluster;

/** Puts that wait for coordinators, and puts that queue behind them. */
class FilterFeedPutsTest extends FeedUnderTest {
  /** No lease and no patience ends before the test does: a waiter goes on because it is woken. */
  private void waitForEver() {
    options.lookNs = NEVER;
    options.leaseNs = NEVER;
    options.patienceNs = NEVER;
    options.maxQueuedNs = NEVER;
  }

  private Cluster.PollReply pollForEver(long coordinator, long applied) throws InterruptedException {
    return feed.poll(request(coordinator, applied).build(), () -> now + NEVER);
  }

  @Test
  void putsThatWaitCrowdTheServer() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    assertFalse(feed.isCrowded());
    pollForEver(1, 0);
    long number = closed(1);
    boolean[] acknowledged = new boolean[1];
    Thread put = new Thread(() -> {
      try {
        acknowledged[0] = feed.waitAcknowledged(number, now + NEVER);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    put.start();
    while (feed.waiting() == 0) Thread.yield();
    assertEquals(1, feed.waiting());
    assertTrue(feed.isCrowded());
    pollForEver(1, number);
    put.join();
    assertTrue(acknowledged[0]);
    assertEquals(0, feed.waiting());
    assertFalse(feed.isCrowded());
  }

  /** A thread that runs until it waits for something. */
  private static Thread waiting(Callable<Boolean> work, AtomicReference<Boolean> result) {
    Thread thread = new Thread(() -> {
      try {
        result.set(work.call());
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    });
    thread.start();
    while (thread.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    return thread;
  }

  @Test
  void putWaitsNoLongerForACoordinatorThatHasLeft() throws Exception {
    waitForEver();
    pollForEver(1, 0);
    pollForEver(2, 0);
    long number = closed(1);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + NEVER), acknowledged);
    pollForEver(2, number);
    Cluster.PollRequest.Builder leaving = request(1, 0).setLeaves(true);
    FilterFeed.Reader other = new FilterFeed.Reader("another user", "", null);
    assertThrows(StatusException.class, () -> feed.poll(leaving.build(), () -> now, other));
    feed.poll(request(3, 0).setLeaves(true).build(), () -> now); // one that the server has never heard
    assertEquals(1, feed.waiting());
    Cluster.PollReply reply = feed.poll(leaving.build(), () -> now + NEVER);
    assertEquals(0, reply.getLeaseNs());
    assertEquals(0, reply.getEventsCount());
    put.join();
    assertTrue(acknowledged.get());
    assertEquals(1, status(false).getCoordinatorsCount());
  }

  @Test
  void putBeyondTheMostThatWaitQueuesUntilOneIsAcknowledged() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    assertTrue(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + NEVER), acknowledged);
    now += SECOND;
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    assertEquals(1, feed.waiting());
    pollForEver(1, number);
    put.join();
    queued.join();
    assertTrue(acknowledged.get());
    assertTrue(room.get());
  }

  @Test
  void queuedPutGoesOnOnceItsOwnEventIsAcknowledged() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    long ofQueued = closed(1);
    long ofWaiting = closed(2);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    AtomicReference<Boolean> goesOn = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(ofWaiting, now + NEVER), acknowledged);
    Thread queued = waiting(() -> feed.awaitRoom(ofQueued, () -> false), goesOn);
    pollForEver(1, ofQueued);
    queued.join();
    assertTrue(goesOn.get());
    assertEquals(1, feed.waiting());
    assertTrue(feed.awaitRoom(ofQueued, () -> false), "nothing to wait for");
    pollForEver(1, ofWaiting);
    put.join();
    assertTrue(acknowledged.get());
  }

  /** Each place that becomes free is another one's, also where one poll frees several. */
  @Test
  void eachFreePlaceWakesAnotherQueuedPut() throws Exception {
    waitForEver();
    options.maxWaiting = 2;
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> done = new AtomicReference<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; ++i) threads.add(waiting(() -> feed.waitAcknowledged(number, now + NEVER), done));
    List<AtomicReference<Boolean>> rooms = new ArrayList<>();
    for (int i = 0; i < 2; ++i) {
      AtomicReference<Boolean> room = new AtomicReference<>();
      rooms.add(room);
      threads.add(waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room));
    }
    pollForEver(1, number);
    for (Thread thread : threads) thread.join();
    for (AtomicReference<Boolean> room : rooms) assertTrue(room.get());
  }

  @Test
  void coordinatorIsStuckOnceNoPutWasAcknowledgedForAWhile() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    options.patienceNs = SECOND;
    pollForEver(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> done = new AtomicReference<>();
    assertFalse(feed.isStuck());
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + NEVER), done);
    assertFalse(feed.isStuck());
    now += SECOND;
    assertTrue(feed.isStuck());
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    pollForEver(1, number);
    put.join();
    assertFalse(feed.isStuck());
  }

  /** The place of the one that waited is free, and the first one that queued does not need it. */
  @Test
  void acknowledgedPutLeavesItsPlaceToTheNextOne() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    long ofWaiting = closed(1);
    long ofQueued = closed(2);
    AtomicReference<Boolean> done = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(ofWaiting, now + NEVER), done);
    Thread queued = waiting(() -> feed.awaitRoom(ofQueued, () -> false), done);
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread next = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    pollForEver(1, ofQueued);
    put.join();
    queued.join();
    next.join();
    assertTrue(room.get());
  }

  @Test
  void onePollAcknowledgesAllPutsThatWait() throws Exception {
    waitForEver();
    pollForEver(1, 0);
    List<AtomicReference<Boolean>> acknowledged = new ArrayList<>();
    List<Thread> puts = new ArrayList<>();
    for (int i = 0; i < 8; ++i) {
      long number = closed(i);
      acknowledged.add(new AtomicReference<>());
      puts.add(waiting(() -> feed.waitAcknowledged(number, now + NEVER), acknowledged.get(i)));
    }
    assertEquals(8, feed.waiting());
    pollForEver(1, feed.last());
    for (Thread put : puts) put.join();
    for (AtomicReference<Boolean> each : acknowledged) assertTrue(each.get());
    assertEquals(0, feed.waiting());
  }

  /** Each wakes the next one; the order in which they began to wait does not matter. */
  @Test
  void putsAreWokenByTheirOwnEvents() throws Exception {
    waitForEver();
    pollForEver(1, 0);
    long[] numbers = {closed(1), closed(2), closed(3)};
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread[] puts = new Thread[3];
    for (int i : new int[] {2, 0, 1}) {
      puts[i] = waiting(() -> feed.waitAcknowledged(numbers[i], now + NEVER), acknowledged);
    }
    for (int i = 0; i < 3; ++i) {
      pollForEver(1, numbers[i]);
      puts[i].join();
      assertEquals(2 - i, feed.waiting());
    }
  }

  @Test
  void putsThatQueueAreWokenOneAfterTheOther() throws Exception {
    waitForEver();
    options.maxWaiting = 1;
    pollForEver(1, 0);
    AtomicReference<Boolean> result = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(closed(1), now + NEVER), result);
    List<Thread> queued = new ArrayList<>();
    for (int i = 0; i < 3; ++i) {
      long region = i + 2;
      queued.add(waiting(
          ()
              -> feed.awaitRoom(Long.MAX_VALUE, () -> false) && feed.waitAcknowledged(closed(region), now + NEVER),
          result));
    }
    for (Thread next : queued) {
      pollForEver(1, feed.last());
      put.join();
      put = next;
      while (feed.waiting() == 0) Thread.yield();
      assertEquals(1, feed.waiting());
    }
    pollForEver(1, feed.last());
    put.join();
    assertTrue(feed.awaitRoom(Long.MAX_VALUE, () -> false));
  }

  /** Returns whether a put is refused while another one waits for a coordinator that says nothing. */
  private boolean isRefusedBehindAStuckOne() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    poll(2, 0);
    long number = closed(1);
    long later = closed(2);
    poll(2, number); // only one of them is stuck
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + SECOND), acknowledged);
    now += options.patienceNs;
    poll(2, later); // which acknowledges no put
    AtomicReference<Boolean> room = new AtomicReference<>(true);
    Thread queued = new Thread(() -> {
      try {
        room.set(feed.awaitRoom(Long.MAX_VALUE, () -> false));
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    });
    queued.start();
    while (queued.isAlive() && queued.getState() != Thread.State.TIMED_WAITING) Thread.yield();
    poll(1, number);
    put.join();
    queued.join();
    return !room.get();
  }

  @Test
  void noPutQueuesWhileACoordinatorIsStuck() throws Exception {
    assertTrue(isRefusedBehindAStuckOne());
  }

  @Test
  void putQueuesForAStuckCoordinatorWithoutTheRule() throws Exception {
    Fault.only(Fault.QUEUED_FOR_THE_STUCK);
    try {
      assertFalse(isRefusedBehindAStuckOne());
    } finally {
      Fault.only();
    }
  }

  @Test
  void putQueuesForABoundedTime() throws Exception {
    options.maxWaiting = 0;
    options.patienceNs = 100 * SECOND;
    options.maxQueuedNs = 0;
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
  }

  @Test
  void putQueuesUntilItsLongestTimeIsOver() throws Exception {
    options.lookNs = 1_000_000;
    options.maxWaiting = 0;
    options.patienceNs = 100_000 * SECOND;
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    now += options.maxQueuedNs;
    queued.join();
    assertFalse(room.get());
  }

  /** A put waits no longer than the lease that keeps it waiting. */
  @Test
  void putIsAcknowledgedWhenTheLeaseOfTheSilentEnds() throws Exception {
    options.lookNs = NEVER;
    feed.poll(request(1, 0).build(), () -> now + 1_000_000);
    poll(2, 0);
    long number = closed(1);
    poll(2, number);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + 100_000 * SECOND), acknowledged);
    now += 1_000_000 + options.leaseMarginNs;
    put.join();
    assertTrue(acknowledged.get());
  }

  @Test
  void aPutThatIsAcknowledgedShowsThatNoCoordinatorIsStuck() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    long first = closed(1);
    long second = closed(2);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(first, now + SECOND), acknowledged);
    Thread other = waiting(() -> feed.waitAcknowledged(second, now + SECOND), acknowledged);
    now += options.patienceNs - 1;
    poll(1, first);
    put.join();
    now += 1;
    AtomicReference<Boolean> room = new AtomicReference<>();
    Thread queued = waiting(() -> feed.awaitRoom(Long.MAX_VALUE, () -> false), room);
    poll(1, second);
    other.join();
    queued.join();
    assertTrue(room.get());
  }

  /** A put whose event is acknowledged before it waits shows nothing: no coordinator has said anything. */
  @Test
  void aPutThatNeedNotWaitIsNoSignOfProgress() throws Exception {
    options.maxWaiting = 1;
    poll(1, 0);
    long number = closed(1);
    AtomicReference<Boolean> acknowledged = new AtomicReference<>();
    Thread put = waiting(() -> feed.waitAcknowledged(number, now + SECOND), acknowledged);
    now += options.patienceNs;
    assertTrue(feed.waitAcknowledged(number - 1, now));
    assertFalse(feed.awaitRoom(Long.MAX_VALUE, () -> false));
    poll(1, number);
    put.join();
  }

  /** Another thread that needs the lock would wait for ever. */
  private void assertIsFree() throws Exception {
    CompletableFuture.supplyAsync(feed::last).get(60, TimeUnit.SECONDS);
  }

  @Test
  void noCallKeepsTheLock() throws Exception {
    feed.last();
    assertIsFree();
    feed.tellTable(1, 1);
    assertIsFree();
    feed.tellTable(1, 1); // known
    assertIsFree();
    poll(1, 0);
    assertIsFree();
    assertThrows(StatusException.class,
        () -> feed.poll(request(1, 0).build(), () -> now, new FilterFeed.Reader("other", "", null)));
    assertIsFree();
    status(true);
    assertIsFree();
    assertTrue(feed.awaitRoom(0, () -> false));
    assertIsFree();
    assertTrue(feed.waitAcknowledged(0, now));
    assertIsFree();
    assertFalse(feed.waitAcknowledged(feed.last(), now));
    assertIsFree();
  }
}
